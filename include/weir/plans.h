// Looks up the plan of a subject, for rules with `limit: plan`.
//
//   class MyPlans final : public weir::Plans { ... };
//   gate.use_plans(std::make_shared<MyPlans>());
//
// A subject is its kind and its value: user:42, tenant:acme, api_key:sha256: and the hash of the key in hexadecimal,
// ip:192.0.2.1 or ip:2001:db8::/64. Any thread may call any member at any time. Tested by tests/plan_rules_test.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "weir/clock.h"

namespace weir {

// What a subject is entitled to.
struct PlanTerms {
  std::string_view plan{};  // empty: the default plan. The view is valid as long as the Plans object
  std::shared_ptr<const std::string> limits{};  // quotas that replace the plan's: `10/second, 5000/hour`
  Micros until{0};                              // when those expire, since the epoch; 0: never
  bool is_pending = false;  // not looked up yet; until then the default plan applies, with counts of its own
};

class Plans {
 public:
  virtual ~Plans() = default;

  // find()
  //
  // What is known now. Never waits. Starts a lookup if the subject is unknown.
  virtual PlanTerms find(std::string_view subject) noexcept = 0;

  // wait()
  //
  // Waits until a pending subject is known, but no longer than a check may take, and not at all if waiting has
  // recently taken too much time. False if the subject is still pending.
  virtual bool wait(std::string_view subject) noexcept = 0;
};

}  // namespace weir
