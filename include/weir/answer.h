// What the rules of a policy answer to a request: may it pass, which limits it met, and which of them decided.
//
// Plain values. The names in it are views of the rules, which `rules` keeps alive. Tested by tests/gate_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/verdict.h"

namespace weir {

class Rulebook;  // a policy compiled; src/policy/rulebook.h
struct AnswerStyle;

enum class Why : std::uint8_t {
  within,          // every limit has room
  no_rule,         // no rule is about this request
  skipped,         // its path is not looked at, or it is a preflight
  exempt,          // an unlimited rule
  limited,         // a limit has no room, or it is a ban
  missing,         // a rule requires an attribute that the request lacks
  ambiguous_path,  // servers read its path in more ways than can be charged
};

// The word that answers say it by.
constexpr std::string_view to_string(Why why) {
  switch (why) {
    case Why::within:
      return "within";
    case Why::no_rule:
      return "no_rule";
    case Why::skipped:
      return "skipped";
    case Why::exempt:
      return "exempt";
    case Why::limited:
      return "limited";
    case Why::missing:
      return "missing";
    case Why::ambiguous_path:
      break;
  }
  return "ambiguous_path";
}

struct LimitAnswer {
  std::string_view name;  // the rule and the window: `steps: 100/minute`
  std::string_view rule;
  std::string_view quota;
  const Limit* limit = nullptr;
  std::int64_t cost = 1;
  Decision decision{};
};

struct Answer {
  bool allowed = false;
  Why why = Why::no_rule;
  std::string_view rule{};             // that decided, exempted or found something missing; empty if none did
  std::string missing{};               // the attribute that it requires: `header:x-org`
  std::size_t binding = 0;             // of `limits`: the denial with the longest wait, else the tightest
  std::vector<LimitAnswer> limits{};   // in the order of the rules
  std::vector<LimitAnswer> shadows{};  // what rules in shadow would have said; they changed nothing
  Micros retry_after{0};               // the longest wait of those that deny, and the rule's jitter; 0 iff allowed
  const AnswerStyle* style = nullptr;  // of the policy that decided; null if there is none
  std::shared_ptr<const Rulebook> rules{};

  const LimitAnswer* binding_limit() const { return limits.empty() ? nullptr : &limits[binding]; }
};

}  // namespace weir
