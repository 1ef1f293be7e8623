// Computes what the rules of a policy charge a request, in the slow and obvious way: rule by rule, value by value, with
// its own reading of paths (slow_path.h), patterns, addresses and proxies.
//
// The reference for the Rulebook. It uses nothing of src/policy and keeps nothing between two calls. Its keys are
// readable texts; two are equal if, and only if, the requests are counted together. Used by matcher_test.cc and
// fuzz/rule_matcher.cc. Any thread.
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

// Whether a rule with a percentage as its mode is enforced for the key of this request. Not called for 0 % and 100 %.
using IsEnforced = std::function<bool(const weir::Rule& rule, const SlowReading& reading)>;

// Nothing if Weir may refuse the path because it is too long and complex.
std::optional<SlowBill> slow_bill(const Policy& policy, const weir::Request& request, std::int64_t now,
                                  const IsEnforced& is_enforced);

// Referee
//
// Compares the bills of another matcher with slow bills. The keys of the other matcher may be any bytes. But over all
// calls, two of them must be equal if, and only if, the slow keys are equal. One thread.
class Referee {
 public:
  // The first difference, as a text for people; empty if there is none.
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
