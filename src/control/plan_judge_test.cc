// Tests valid and invalid rows: each invalid row is refused alone, with an error that says what to do.
#include "control/plan_judge.h"

#include <gtest/gtest.h>

#include "base/sha256.h"

namespace weir {
namespace {

Policy policy() {
  return *parse_policy(R"(
plans: {default: free, tiers: {free: 100/minute, pro: [10/second, 1000/minute]}}
rules:
  - {name: plan, per: user, limit: plan, algorithm: fixed_window}
  - {name: other, per: tenant, limit: plan}
)",
                       "p");
}

std::string refusal(const PlanRow& row) {
  const auto judged = judge_row(policy(), row);
  return judged ? "" : judged.error().message;
}

PlanRow on(std::optional<std::string> plan) {
  return {.subject = "user:42", .has_plan = true, .plan = std::move(plan)};
}

PlanRow with(std::optional<std::string> limits, std::optional<std::string> until = {}) {
  return {.subject = "user:42", .has_override = true, .limits = std::move(limits), .until = std::move(until)};
}

TEST(PlanJudge, TakesWhatMakesSense) {
  const auto both = judge_row(policy(), {.subject = "user:42",
                                         .has_plan = true,
                                         .plan = "pro",
                                         .has_override = true,
                                         .limits = "50/second, 5000/minute",
                                         .until = "2026-12-31"});
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->plan, "pro");
  EXPECT_EQ(both->instead, "50/second, 5000/minute");
  EXPECT_EQ(both->until, Micros{1'798'675'200'000'000});
  EXPECT_EQ(judge_row(policy(), with("5/minute", "1798675200"))->until, both->until);
  EXPECT_EQ(judge_row(policy(), with("5/minute"))->until, Micros{0});
  EXPECT_EQ(judge_row(policy(), {.subject = "user:42"})->plan, "");
}

TEST(PlanJudge, RefusesRowsThatMakeNone) {
  EXPECT_EQ(refusal(on({})), "its plan is NULL; set a plan of the config, or remove the row");
  EXPECT_EQ(refusal(on("")), "unknown plan ''; the plans are free, pro");
  EXPECT_EQ(refusal(on("Pro")), "unknown plan 'Pro'; did you mean 'pro'?");
  EXPECT_EQ(refusal(on("9223372036854775808")), "unknown plan '9223372036854775808'; the plans are free, pro");
  EXPECT_NE(refusal(on(std::string(100'000, 'x'))), "");
  EXPECT_LT(refusal(on(std::string(100'000, 'x'))).size(), 300U);
  for (const char* limits :
       {"", " ", "-5/minute", "0/minute", "9223372036854775808/minute", "5000", "5/minute,", "5/minute, 6/minute",
        "1e9/second", "5/minute\n6/hour", "5/century", "5 in flight", "1/s,1/2s,1/3s,1/4s,1/5s,1/6s,1/7s,1/8s,1/9s"}) {
    EXPECT_NE(refusal(with(limits)), "") << limits;
  }
  EXPECT_NE(refusal(with({})), "");
  EXPECT_NE(refusal(with("5/minute burst 9")).find("burst"), std::string::npos) << "one of the rules counts in windows";
  for (const char* until : {"", "tomorrow", "-1", "0", "99999999999999999999", "2026-02-30", "NaN"}) {
    EXPECT_NE(refusal(with("5/minute", until)), "") << until;
  }
}

TEST(PlanJudge, KnowsSubjectsByOneNameEach) {
  EXPECT_EQ(*canonical_subject("user:42"), "user:42");
  EXPECT_EQ(*canonical_subject("user:a:b"), "user:a:b");
  EXPECT_EQ(*canonical_subject("ip:::ffff:192.0.2.1"), "ip:192.0.2.1");
  EXPECT_EQ(*canonical_subject("ip:2001:db8::1"), "ip:2001:db8::/64");
  EXPECT_EQ(*canonical_subject("api_key:sha256:" + std::string(64, 'a')), "api_key:sha256:" + std::string(64, 'a'));
  EXPECT_EQ(*canonical_subject("api_key:secret"), "api_key:sha256:" + hex(sha256("secret")));
  for (const char* text : {"", "42", "user", "user:", "users:42", "ip:here", ":42"}) {
    EXPECT_FALSE(canonical_subject(text)) << text;
  }
}

}  // namespace
}  // namespace weir
