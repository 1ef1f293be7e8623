// What the rules of a policy ask of a request, found the slow and obvious way: rule by rule, value by value, with
// readings of paths (slow_path.h), a pattern matcher, an address reader and a walk through proxies of its own.
//
// The referee of the Rulebook. It uses nothing of src/policy and keeps nothing between two calls. The keys that it
// makes are texts for people, but two of them are equal if, and only if, the requests are counted together. Used by
// matcher_test.cc and fuzz/rule_matcher.cc. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slow_path.h"
#include "weir/policy.h"
#include "weir/request.h"

namespace weir::test {

struct SlowCharge {
  std::string rule;
  std::string quota;  // as it was written
  std::string key;
  std::int64_t cost = 1;
  friend bool operator==(const SlowCharge&, const SlowCharge&) = default;
};

struct SlowBill {
  enum class Reason : std::uint8_t { no_rule, limits, skipped, exempt, missing, too_many, ambiguous };
  Reason reason = Reason::no_rule;
  std::string rule;  // that exempts, or lacks an attribute
  std::vector<SlowCharge> charges, shadows;
  bool counts_denied = false;
};

// Whether a rule that is enforced for a part of its keys is so for this one; only asked if the part is neither all nor
// nothing.
using IsEnforced = std::function<bool(const Rule& rule, const SlowReading& reading)>;

// Nothing if a path is long and has so much in it that Weir may refuse to look.
std::optional<SlowBill> slow_bill(const Policy& policy, const Request& request, std::int64_t now,
                                  const IsEnforced& is_enforced);

// Referee
//
// Holds the bills of another matcher against slow ones. The keys of the other may be any bytes, but over all calls two
// of them must be equal if, and only if, the slow ones are. One thread.
class Referee {
 public:
  // What differs, for people; empty if nothing does.
  std::string difference(const SlowBill& slow, const SlowBill& other);

 private:
  std::string difference(std::string_view what, const std::vector<SlowCharge>& slow,
                         const std::vector<SlowCharge>& other);

  std::map<std::string, std::string> other_of_, slow_of_;
};

// The parts, which have tests of their own.
bool slow_pattern_matches(std::string_view pattern, std::string_view normal_path);
std::optional<std::string> slow_capture(std::string_view pattern, std::string_view normal_path, std::string_view name);
bool slow_glob(std::string_view pattern, std::string_view text);

}  // namespace weir::test
