// Requests with an id: the second one is free only with the same key and the same cost, in memory and in a file.
// once_model.h is the reference. With rules, the id is bound to the rule, its client and the cost. fleet_once_test.cc
// tests the same in Redis.

#include <gtest/gtest.h>

#include <memory>

#include "base/folder_fixture.h"
#include "gate_fixture.h"
#include "once_model.h"

namespace weir::test {
namespace {

constexpr int kRequests = 2'000;

TEST(Once, IsAsTheModelInMemory) {
  Limiter limiter(LimiterOptions{.keys = 10'000});
  compare_once(kRequests, [&](int) -> Limiter& { return limiter; });
}

TEST(Once, IsAsTheModelOnAFileThatIsOpenedAgain) {
  const base::TestFolder folder;
  std::unique_ptr<Limiter> limiter;
  compare_once(kRequests, [&](int i) -> Limiter& {
    if (i % 100 == 0) {
      limiter.reset();
      limiter = std::make_unique<Limiter>(open_limiter({.keys = 10'000, .file = folder.at("state")}).value());
    }
    return *limiter;
  });
}

TEST(Once, ACheaperRequestFreesNoDearerOne) {
  Limiter limiter(LimiterOptions{.keys = 100});
  const Limit limit = compile("100/year", Algorithm::sliding_log).value();
  const auto ask = [&](std::int64_t cost) {
    const Charge charge{.key = "k", .limit = &limit, .cost = cost};
    return limiter.check_once("id", {&charge, 1}).value();
  };
  EXPECT_TRUE(ask(0).allowed) << "a peek is always allowed";
  EXPECT_EQ(ask(60).binding_decision().remaining, 40);
  EXPECT_EQ(ask(60).binding_decision().remaining, 40) << "sent again";
  EXPECT_FALSE(ask(61).allowed);
  EXPECT_EQ(ask(1).binding_decision().remaining, 39);
  EXPECT_EQ(ask(-5).binding_decision().remaining, 44);
  EXPECT_EQ(ask(-5).binding_decision().remaining, 44) << "a refund is one, too";
}

TEST(Once, AReservationsIdBindsNoCost) {
  Limiter limiter(LimiterOptions{.keys = 100});
  const Limit limit = compile("100/year", Algorithm::fixed_window).value();
  Charge charge{.key = "k", .limit = &limit, .cost = 60};
  ASSERT_TRUE(limiter.reserve({&charge, 1}, {.id = "id"})->verdict.allowed);
  charge.cost = 20;
  EXPECT_FALSE(limiter.reserve({&charge, 1}, {.id = "id"})) << "it is open";
  const auto settled = limiter.commit("id", {&charge, 1});
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->binding_decision().remaining, 80);
}

class OnceByRules : public GateTest {
 protected:
  std::int64_t left_after(std::string_view id, const weir::Request& request) {
    const auto answer = gate.check_once(id, request);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer && answer->binding_limit() && answer->allowed ? answer->binding_limit()->decision.remaining : -1;
  }
};

TEST_F(OnceByRules, ACostInAHeaderIsBound) {
  use_rules("  - {name: tokens, per: user, limit: 100/year, cost: {header: x-tokens, max: 90}}\n");
  const auto ask = [&](std::string_view tokens, std::string_view trace = "1") {
    const Attribute headers[] = {{"x-tokens", tokens}, {"x-trace", trace}};
    return left_after("id", {.user = "42", .headers = headers});
  };
  EXPECT_EQ(ask("1"), 99);
  EXPECT_EQ(ask("1", "2"), 99) << "sent again, with another header that no rule looks at";
  EXPECT_EQ(ask("80"), 19);
  EXPECT_EQ(ask("80"), 19);
  EXPECT_EQ(ask("90"), -1);
  EXPECT_EQ(left_after("id", {.user = "42", .cost = 2}), 17);
  EXPECT_EQ(left_after("id", {.user = "42", .cost = -2}), 19);
}

TEST_F(OnceByRules, AHeaderThatIsCountedIsBound) {
  use_rules("  - {name: org, per: \"header:x-org\", limit: 2/year}\n");
  const auto ask = [&](std::string_view org) {
    const Attribute header{"x-org", org};
    return left_after("id", {.headers = {&header, 1}});
  };
  EXPECT_EQ(ask("a"), 1);
  EXPECT_EQ(ask("a"), 1);
  EXPECT_EQ(ask("b"), 1) << "another client";
  for (const char* id : {"1", "2"}) {
    const Attribute header{"x-org", "b"};
    left_after(id, {.headers = {&header, 1}});
  }
  EXPECT_EQ(ask("c"), 1);
  EXPECT_EQ(ask("b"), 0) << "its own was sent before";
}

TEST_F(OnceByRules, ABanIsNotPassedByAnOldId) {
  use_rules("  - {name: all, per: user, limit: 9/year}\n");
  EXPECT_EQ(left_after("id", {.user = "42"}), 8);
  use_rules(
      "  - {name: ban, match: {user: \"42\"}, per: user, limit: 0/year}\n  - {name: all, per: user, limit: 9/year}\n");
  EXPECT_EQ(left_after("id", {.user = "42"}), -1);
}

TEST_F(OnceByRules, AnotherPlanMakesNoOtherRequest) {
  use(R"(
plans: {default: free, tiers: {free: 10/year, pro: [1000/year, 900/month]}}
rules:
  - {name: r, per: user, limit: plan, algorithm: fixed_window}
)");
  EXPECT_EQ(left_after("id", {.user = "42", .plan = "free"}), 9);
  EXPECT_EQ(left_after("id", {.user = "42", .plan = "free"}), 9);
  EXPECT_GT(left_after("id", {.user = "42", .plan = "pro"}), 890) << "sent again, and free";
  EXPECT_EQ(left_after("other", {.user = "42", .plan = "free"}), 8);
}

TEST_F(OnceByRules, ARuleInShadowCountsAnotherCostToo) {
  use_rules("  - {name: s, per: user, limit: 10/year, mode: shadow}\n");
  const auto would_pass = [&](std::int64_t cost) {
    const auto answer = gate.check_once("id", {.user = "42", .cost = cost});
    return answer && answer->shadows.size() == 1 && answer->shadows[0].decision.allowed;
  };
  EXPECT_TRUE(would_pass(1));
  EXPECT_TRUE(would_pass(9));
  EXPECT_TRUE(would_pass(9));
  EXPECT_FALSE(would_pass(2));
}

}  // namespace
}  // namespace weir::test
