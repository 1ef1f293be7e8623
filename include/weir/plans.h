// Who is on which plan: what a rule with `limit: plan` asks about its subject.
//
//   class MyPlans final : public weir::Plans { ... };
//   gate.use_plans(std::make_shared<MyPlans>());
//
// A subject is written as its kind and its value: user:42, tenant:acme, api_key:sha256: and the hash of the key in
// hexadecimal, ip:192.0.2.1 or ip:2001:db8::/64. All members may be called from any thread at once. Tested by
// tests/plan_rules_test.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "weir/clock.h"

namespace weir {

// What a subject is entitled to.
struct PlanTerms {
  std::string_view plan{};                       // a tier's name; empty: the default one. Lives as long as the Plans
  std::shared_ptr<const std::string> instead{};  // quotas that hold instead of the tier's: `10/second, 5000/hour`
  Micros until{0};                               // how long those do, since the epoch; 0: without end
  bool is_pending = false;  // nobody has answered yet; until then the default plan holds, counted apart
};

class Plans {
 public:
  virtual ~Plans() = default;

  // find()
  //
  // What is known now. Never waits; a subject that was not asked about before is looked up meanwhile.
  virtual PlanTerms find(std::string_view subject) noexcept = 0;

  // wait()
  //
  // Until a subject that is pending is known, but for no longer than a check may take, and not at all if waiting has
  // lately taken too much time. False if it still is not.
  virtual bool wait(std::string_view subject) noexcept = 0;
};

}  // namespace weir
