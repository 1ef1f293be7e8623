// The answer of a config's rules to a request: whether the request may pass, which limits apply to it, and which
// limit decided.
//
// Plain values. The names are views into the rules, which `rules` keeps alive. Tested by tests/gate_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/verdict.h"

namespace weir::policy {
class Rulebook;
}  // namespace weir::policy

namespace weir {

struct AnswerStyle;

enum class Why : std::uint8_t {
  within,          // every limit allows it
  no_rule,         // no rule applies to this request
  skipped,         // Policy::skip exempts its path, or it is a CORS preflight
  exempt,          // an unlimited rule applies
  limited,         // a limit is exhausted, or a ban applies
  missing,         // a rule requires an attribute that the request lacks
  ambiguous_path,  // HTTP servers read its path in more ways than can be charged
};

// The name of a reason in responses.
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
  std::string_view name;  // rule and quota: `steps: 100/minute`
  std::string_view rule;
  std::string_view quota;
  const Limit* limit = nullptr;
  std::int64_t cost = 1;
  Decision decision{};
};

struct Answer {
  bool allowed = false;
  Why why = Why::no_rule;
  std::string_view rule{};             // the rule that decided or exempts, or that requires `missing`; empty: none
  std::string missing{};               // the missing attribute that the rule requires: `header:x-org`
  std::size_t binding = 0;             // index into `limits`: the denial with the longest wait, else the tightest
  std::vector<LimitAnswer> limits{};   // in the order of the rules
  std::vector<LimitAnswer> shadows{};  // what rules in shadow mode would have decided; no effect on this answer
  Micros retry_after{0};               // the longest wait of the denials, plus the rule's jitter; 0 iff allowed
  const AnswerStyle* style = nullptr;  // of the policy that decided; null: no policy
  std::shared_ptr<const policy::Rulebook> rules{};

  const LimitAnswer* binding_limit() const { return limits.empty() ? nullptr : &limits[binding]; }
};

}  // namespace weir
