// A gate on a limiter whose clock stands still, and the few words that tests of rules are written in.
//
// Fixture of gate_test.cc, reload_test.cc and examples_test.cc. One thread.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "weir/gate.h"

namespace weir::test {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class GateTest : public testing::Test {
 protected:
  static constexpr std::int64_t kStart = 1'789'992'000'000'000;  // 2026-09-21T12:00:00Z, a Monday

  // The rules, or a failure that shows what is wrong with them.
  void use(std::string_view text, Force force = Force::yes) {
    const auto policy = parse_policy(text, "test.yaml");
    ASSERT_TRUE(policy) << policy.error().message;
    const auto applied = gate.apply(*policy, force);
    ASSERT_TRUE(applied) << applied.error().message;
  }
  void use_rules(const std::string& rules) { use("rules:\n" + rules); }

  Answer ask(const Request& request) {
    auto answer = gate.check(request);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *std::move(answer) : Answer{};
  }
  // How many of so many are let pass.
  int passed(int requests, const Request& request) {
    int count = 0;
    for (int i = 0; i < requests; ++i) count += ask(request).allowed ? 1 : 0;
    return count;
  }
  // `steps: 100/minute`
  static std::string binding(const Answer& answer) {
    return answer.binding_limit() == nullptr ? "" : std::string(answer.binding_limit()->name);
  }
  void go_on(Micros time) { clock->advance(time); }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{kStart});
  Limiter limiter{{.clock = clock, .keys = 100'000, .sweeping = Sweeping::by_hand}};
  Gate gate{limiter};
};

}  // namespace weir::test
