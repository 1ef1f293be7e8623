// A gate on a limiter whose clock stands still, and functions that tests of rules share.
//
// GateWorld is a gate with its own limiter, for tests that compare two of them. GateTest is the fixture of
// gate_test.cc, reload_test.cc, client_usage_test.cc and others. One thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "read_file.h"
#include "weir/gate.h"

namespace weir::test {

struct GateWorld {
  explicit GateWorld(std::shared_ptr<ManualClock> the_clock, const GateOptions& options = {})
      : clock(std::move(the_clock)), gate(limiter, options) {}

  std::shared_ptr<ManualClock> clock;
  Limiter limiter{{.clock = clock, .keys = 100'000, .sweeping = Sweeping::by_hand}};
  weir::Gate gate;
};

class GateTest : public testing::Test, protected GateWorld {
 protected:
  explicit GateTest(const GateOptions& options = {})
      : GateWorld(std::make_shared<ManualClock>(Micros{kStart}), options) {}

  static constexpr std::int64_t kStart = 1'789'992'000'000'000;  // 2026-09-21T12:00:00Z, a Monday

  // Applies these rules. The test fails, with the error, if they are wrong.
  void use(std::string_view text, Force force = Force::yes) {
    const auto policy = parse_policy(text, "test.yaml");
    ASSERT_TRUE(policy) << policy.error().message;
    const auto applied = gate.apply(*policy, force);
    ASSERT_TRUE(applied) << applied.error().message;
  }
  void use_rules(const std::string& rules) { use("rules:\n" + rules); }

  weir::Answer ask(const weir::Request& request) {
    auto answer = gate.check(request);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *std::move(answer) : weir::Answer{};
  }
  // Sends `requests` requests; returns how many of them are allowed.
  int passed(int requests, const weir::Request& request) {
    int count = 0;
    for (int i = 0; i < requests; ++i) count += ask(request).allowed ? 1 : 0;
    return count;
  }
  // `steps: 100/minute`: the rule and its limit.
  static std::string binding(const weir::Answer& answer) {
    return answer.binding_limit() == nullptr ? "" : std::string(answer.binding_limit()->name);
  }
  // The limit that denies the request, as `steps: 100/minute`; empty if the request is allowed.
  std::string denied_by(const weir::Request& request) {
    const weir::Answer answer = ask(request);
    return answer.allowed ? "" : binding(answer);
  }
  void go_on(Micros time) { clock->advance(time); }
};

// All that a client can learn from an answer, as text.
inline std::string shown(const weir::Answer& answer) {
  std::string out = std::to_string(answer.allowed) + ' ' + std::to_string(static_cast<int>(answer.why)) + ' ' +
                    std::string(answer.rule) + ' ' + answer.missing + ' ' + std::to_string(answer.binding) + ' ' +
                    std::to_string(answer.retry_after.count());
  for (const auto* limits : {&answer.limits, &answer.shadows}) {
    for (const LimitAnswer& limit : *limits) {
      const Decision& d = limit.decision;
      out.append("\n  ").append(limit.name).append(" cost ").append(std::to_string(limit.cost));
      for (const std::int64_t number : {std::int64_t{d.allowed}, d.limit, d.remaining, d.retry_after.count(),
                                        d.reset_after.count(), d.delay.count()}) {
        out.append(" ").append(std::to_string(number));
      }
    }
  }
  return out;
}

}  // namespace weir::test
