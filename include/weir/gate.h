// A limiter behind a policy: may this request pass, by the rules?
//
//   weir::Gate gate(limiter);
//   auto applied = gate.apply(*weir::parse_policy(text, "weir.yaml"));
//   auto answer = gate.check({.user = "42", .ip = "192.0.2.1", .path = "/api/search"});
//   if (answer && !answer->allowed) return too_many(answer->binding_limit()->name);   // `steps: 100/minute`
//
// The policy can be changed at any time: one pointer is swapped, requests under way finish by the rules they began
// with, and what was spent stays spent under the rules' names. Until one is applied every request passes.
// All members may be called from any thread at once. Tested by tests/gate_test.cc; docs/configuration.md is the guide.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weir/answer.h"
#include "weir/explanation.h"
#include "weir/limiter.h"
#include "weir/policy.h"
#include "weir/request.h"
#include "weir/result.h"

namespace weir {

enum class Force : std::uint8_t { no, yes };  // whether a change beyond Policy::max_change is made all the same

class Gate {
 public:
  explicit Gate(Limiter& limiter);  // which outlives the gate
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // apply()
  //
  // Puts the policy in force, or changes nothing. The lines say what has changed, and what starts to count anew.
  Result<PolicyChanges> apply(Policy policy, Force force = Force::no) noexcept;

  // The one in force; null if there is none. Who asks by many requests at once takes it once.
  std::shared_ptr<const Rulebook> rules() const noexcept;
  // What was last applied.
  Policy policy() const;

  // check()
  //
  // Charges every limit that the rules name for this request, or none of them.
  Result<Answer> check(const Request& request) noexcept;
  // The same by rules taken before, into an answer whose room is used again.
  Result<void> check(const std::shared_ptr<const Rulebook>& rules, const Request& request, Answer& answer) noexcept;

  // explain()
  //
  // Every rule, why it is about this request or is not, and what it would say. Charges nothing.
  Result<Explanation> explain(const Request& request) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir
