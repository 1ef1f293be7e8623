// The limits of Envoy's files, compiled for lookup: which limit applies to a descriptor, and under which key it
// counts.
//
//   auto rules = weir::envoy::EnvoyRules::compile(*config, weir::Algorithm::fixed_window);
//   weir::envoy::EnvoyFound found;
//   (*rules)->find("edge", entries, found);                // found.rule is null if no limit applies
//
// The search is that of the reference service. For each entry in turn it tries `key_value`, then the wildcards in the
// order of the file, then `key`. A limit applies only if it is as deep in the tree as the descriptor has entries.
// Windows start at multiples of the unit since the epoch. Immutable: a reload builds a new object. Any thread may
// call it. Tested by envoy_rules_test.cc, also against a slow matcher.
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
#include "policy/path_pattern.h"
#include "weir/limit.h"
#include "weir/request.h"
#include "weir/result.h"

namespace weir::envoy {

// A pattern for values: each `*` matches any text, including none.
//
// The pattern is split in the constructor, so matching allocates nothing.
class Wildcard {
 public:
  explicit Wildcard(std::string_view pattern) {
    for (std::size_t star = 0; (star = pattern.find('*')) != pattern.npos; pattern.remove_prefix(star + 1)) {
      parts_.emplace_back(pattern.substr(0, star));
    }
    parts_.emplace_back(pattern);
  }

  bool matches(std::string_view text) const {
    return parts_.size() == 1 ? text == parts_[0] : policy::accepts_glob(parts_, text);
  }

 private:
  std::vector<std::string> parts_;  // between the stars
};

// A limit, with the settings of its descriptor.
struct EnvoyRule {
  std::size_t place = 0;  // index among all rules
  std::string domain{};
  std::string stat{};  // its name in metrics, without the domain: `user_alice.path`
  EnvoyLimit said{};
  Limit limit{};             // not set if unlimited
  std::uint64_t family = 0;  // of the limit; see weir::Charge
  bool shadow_mode = false;
  bool quota_mode = false;
  bool detailed_metric = false;
  std::string quota{};  // display text: `10/minute`
  std::string label{};  // its name in responses: the limit's name, or else the stat; safe in a header field
};

// The result of find(). Reuse it to avoid allocations.
struct EnvoyFound {
  const EnvoyRule* rule = nullptr;  // null: no limit applies
  std::string key{};                // the key to charge; empty if nothing is counted
  std::string stat{};               // the metric name with values of the request, made safe; empty: use the rule's stat
};

class EnvoyRules {
 public:
  // Compiles every limit with this algorithm, which must support a quota of permits and a period.
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
    std::unique_ptr<Level> below{};  // null if there is no level below
  };
  struct Level {
    std::map<std::string, Branch, std::less<>> branches{};        // by composite key
    std::vector<std::pair<Wildcard, const Branch*>> wildcards{};  // in the order of the file
  };
  // How an entry matched its branch.
  enum class By { value, wildcard, key };
  struct Step {
    const Branch* branch = nullptr;
    By by = By::value;
  };

  Result<std::unique_ptr<Level>> level_of(const EnvoyDomain& domain, const std::vector<EnvoyDescriptor>& descriptors,
                                          const std::string& parent, Algorithm algorithm);
  static Step step(const Level& level, const Attribute& entry, std::string& buffer);
  static std::string_view counted_value(const Step& step, const Attribute& entry);
  static void write_stat(std::span<const Attribute> entries, std::span<const Step> steps, EnvoyFound& out);

  std::deque<EnvoyRule> rules_;  // addresses must not change
  std::map<std::string, std::unique_ptr<Level>, std::less<>> domains_;
};

}  // namespace weir::envoy
