// What the rules of a gate have decided so far, and for whom: numbers for whoever looks after it.
//
//   for (const weir::RuleUsage& one : gate.usage()) report(one.rule, one.allowed, one.denied);
//   for (const weir::TopKey& one : gate.top_keys(weir::TopBy::denied, "login", 10)) report(one.key, one.denied);
//
// Every request that is decided counts once: for the rule that decided it, or as one that no rule is about. Peeks,
// explanations, settled reservations and requests that cost nothing count nowhere. Each view that check_together() is
// given counts by itself. Plain values. Tested by tests/usage_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/clock.h"

namespace weir {

// The name under which limits are counted that clients bring along. A rule of this name shares its numbers.
inline constexpr std::string_view kInlineRule = "inline";
// The name under which all rules that were made by hand are counted together. No rule can have it.
inline constexpr std::string_view kByHandRules = "(bans)";

// Of a rule, since the gate was made. A rule that comes back after it was gone goes on where it was.
struct RuleUsage {
  std::string rule{};
  std::uint64_t allowed = 0;         // it was the tightest, or it is unlimited and let the request pass
  std::uint64_t denied = 0;          // it had no room: of several rules, the one with the longest wait
  std::uint64_t missing = 0;         // denied, too: the request lacked what it requires
  std::uint64_t shadow_allowed = 0;  // in shadow: it would have had room
  std::uint64_t shadow_denied = 0;   // in shadow: it would have denied
  Micros last_hit{0};    // when a request last met it, since the epoch; 0: never. To a second if others decide
  bool by_hand = false;  // as Rule::by_hand
};

// What no rule of the policy decided, and what those made by hand did, of which most are gone by now.
struct OtherUsage {
  std::uint64_t no_rule = 0;         // passed: none is about it
  std::uint64_t skipped = 0;         // passed: rules are not asked
  std::uint64_t failed = 0;          // no answer but an error
  std::uint64_t ambiguous_path = 0;  // denied: servers read the path in too many ways
  RuleUsage inline_limits{};         // see kInlineRule
  RuleUsage by_hand{};               // see kByHandRules; each counts for itself, too, while it is in force
};

enum class TopBy : std::uint8_t { hits, denied };

// A key that is met often, now: over the last minute or two. `hits` and `denied` may be too high, never too low; the
// one that was asked for by `error` at most, so a key that is not told of has fewer than that. At high rates they are
// estimates from a sample.
struct TopKey {
  std::string rule{};
  std::string key{};  // `ip=192.0.2.1`, `user=42,path=/x`; what is not printable is escaped
  std::uint64_t hits = 0;
  std::uint64_t denied = 0;  // by this rule, or in shadow what it would have
  std::uint64_t error = 0;
};

// How top keys are named.
enum class KeyNames : std::uint8_t {
  plain,
  hashed,  // values from requests as hashes under a secret of this process: `ip=#3f29c01b77aa5e10`
};

}  // namespace weir
