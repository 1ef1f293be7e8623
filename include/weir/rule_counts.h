// Decisions by rule, and the keys with the most hits: numbers for operators.
//
//   for (const weir::RuleCounts& one : gate.rule_counts()) report(one.rule, one.allowed, one.denied);
//   for (const weir::TopKey& one : gate.top_keys(weir::TopBy::denied, "login", 10)) report(one.key, one.denied);
//
// Every decided request counts once: for the rule that decided it, or as one without a rule. Peeks, explanations,
// settled reservations and requests of cost 0 do not count. Each view in check_together() counts on its own. Plain
// values. Tested by tests/rule_counts_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/clock.h"

namespace weir {

// Limits that clients send are counted under this name. A rule of this name shares its numbers.
inline constexpr std::string_view kInlineRule = "inline";
// All rules from runtime changes are counted together under this name. No rule can have it.
inline constexpr std::string_view kByHandRules = "(bans)";

// One rule's counts since the gate was made. A rule that is removed and added again continues its counts.
struct RuleCounts {
  std::string rule{};
  std::uint64_t allowed = 0;         // it was the tightest limit, or an unlimited rule that let the request pass
  std::uint64_t denied = 0;          // its limit was exhausted; of several such rules, the one with the longest wait
  std::uint64_t missing = 0;         // denied, too: the request lacked a required attribute
  std::uint64_t shadow_allowed = 0;  // shadow mode: it would have allowed
  std::uint64_t shadow_denied = 0;   // shadow mode: it would have denied
  // Time of the last request that it applied to, since the epoch; 0: none. Up to 1 s too old if another rule decided.
  Micros last_hit{0};
  bool by_hand = false;  // as Rule::by_hand
};

// Requests that no rule of the policy decided, and the totals of runtime rules, of which most no longer exist.
struct OtherCounts {
  std::uint64_t no_rule = 0;         // passed: no rule applies
  std::uint64_t skipped = 0;         // passed: skipped by the policy
  std::uint64_t failed = 0;          // ended in an error
  std::uint64_t ambiguous_path = 0;  // denied: HTTP servers read the path in too many ways
  RuleCounts inline_limits{};        // see kInlineRule
  RuleCounts by_hand{};              // see kByHandRules; each also has its own counts while in effect
};

enum class TopBy : std::uint8_t { hits, denied };

// A key with many hits over the last minute or two. `hits` and `denied` may be too high, never too low. The one that
// top_keys() sorts by is too high by `error` at most. A key of the same rule that is not tracked has at most as many
// as any listed key. At high rates they are estimates from a sample.
struct TopKey {
  std::string rule{};
  std::string key{};  // `ip:192.0.2.1`, `user:42,path:/x`; unprintable bytes are escaped
  std::uint64_t hits = 0;
  std::uint64_t denied = 0;  // by this rule, or in shadow mode what it would have denied
  std::uint64_t error = 0;
};

// How top_keys() prints keys.
enum class KeyNames : std::uint8_t {
  plain,
  hashed,  // request values as hashes under a secret of this process: `ip:#3f29c01b77aa5e10`
};

}  // namespace weir
