// The limits of Envoy's files, ready to be asked: which one holds a descriptor, and what it is counted by.
//
//   auto rules = weir::EnvoyRules::compile(*config, weir::Algorithm::fixed_window);
//   weir::EnvoyFound found;
//   (*rules)->find("edge", entries, found);                // found.rule is null if no limit is about it
//
// The search is the reference service's: of each entry in turn `key_value`, then the wildcards in the order of the
// file, then `key`; and only a limit as deep as the descriptor is long applies. Windows begin at multiples of the unit
// since the epoch. Immutable: a reload makes another one. Any thread. Tested by envoy_rules_test.cc, there also against
// a slow matcher.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "envoy/envoy_config.h"
#include "envoy/wildcard.h"
#include "weir/limit.h"
#include "weir/request.h"
#include "weir/result.h"

namespace weir {

// A limit, with all that is said of its descriptor.
struct EnvoyRule {
  std::size_t place = 0;  // among all
  std::string domain{};
  std::string stat{};  // what metrics call it, without the domain: `user_alice.path`
  EnvoyLimit said{};
  Limit limit{};             // not of an unlimited one
  std::uint64_t family = 0;  // of the limit; see weir::Charge
  bool shadow_mode = false;
  bool quota_mode = false;
  bool detailed_metric = false;
  std::string quota{};  // for people: `10/minute`
  std::string label{};  // by which answers name it: its name, else the stat; fit for a header field
};

// The room is used again.
struct EnvoyFound {
  const EnvoyRule* rule = nullptr;  // null: no limit
  std::string key{};                // that is counted by; empty if there is nothing to count
  std::string stat{};               // with the values that metrics are to name, fit for them; empty: the rule's
};

class EnvoyRules {
 public:
  // Every limit by this algorithm, which must suit a quota of permits and a period.
  static Result<std::shared_ptr<const EnvoyRules>> compile(const EnvoyConfig& config, Algorithm algorithm);

  bool knows(std::string_view domain) const { return domains_.find(domain) != domains_.end(); }
  void find(std::string_view domain, std::span<const Attribute> entries, EnvoyFound& out) const;

  std::size_t domains() const { return domains_.size(); }
  const std::deque<EnvoyRule>& rules() const { return rules_; }

 private:
  struct Level;
  struct Branch {
    const EnvoyRule* rule = nullptr;
    bool value_to_metric = false;
    bool share_threshold = false;
    std::string composite{};
    std::unique_ptr<Level> below{};  // null: nothing
  };
  struct Level {
    std::map<std::string, Branch, std::less<>> branches{};        // by composite key
    std::vector<std::pair<Wildcard, const Branch*>> wildcards{};  // in the order of the file
  };
  // How an entry met its branch.
  enum class By { value, wildcard, key };
  struct Step {
    const Branch* branch = nullptr;
    By by = By::value;
  };

  Result<std::unique_ptr<Level>> level_of(const EnvoyDomain& domain, const std::vector<EnvoyDescriptor>& descriptors,
                                          const std::string& parent, Algorithm algorithm);
  static Step step(const Level& level, const Attribute& entry, std::string& room);
  static std::string_view counted_value(const Step& step, const Attribute& entry);
  static void write_stat(std::span<const Attribute> entries, std::span<const Step> steps, EnvoyFound& out);

  std::deque<EnvoyRule> rules_;  // which stay where they are
  std::map<std::string, std::unique_ptr<Level>, std::less<>> domains_;
};

}  // namespace weir
