// What review() says of limits: a rule that denies every request because of its cost, and a log that is too short for
// its limit. What else it says is in policy_text_test.cc.
#include <gtest/gtest.h>

#include <string>

#include "policy_world.h"
#include "weir/policy.h"

namespace weir {
namespace {

std::string warnings_of(const std::string& text) {
  const auto policy = parse_policy(text, "w");
  EXPECT_TRUE(policy) << text << '\n' << policy.error().message;
  std::string lines;
  if (!policy) return lines;
  for (const std::string& line : review(*policy, "w", Micros{test::kWorldNow})) lines += line + '\n';
  return lines;
}

std::string of_rule(const std::string& rest) { return warnings_of("rules:\n- {name: a, per: ip, " + rest + "}"); }

TEST(PolicyReviewOfLimits, WarnsOfACostThatNoLimitAdmits) {
  const std::string end = " at once; lower `cost`, or raise the limit\n";
  EXPECT_EQ(of_rule("limit: 10/min, cost: 11"),
            "w:2:3: rule 'a' denies every request: each costs 11, and 10/min admits at most 10" + end);
  EXPECT_EQ(of_rule("limits: [100/min, 5/s burst 8], cost: 9, algorithm: token_bucket"),
            "w:2:3: rule 'a' denies every request: each costs 9, and 5/s burst 8 admits at most 8" + end);
  EXPECT_EQ(of_rule("limit: 20/min, cost: 21, mode: shadow"),
            "w:2:3: rule 'a' denies every request: each costs 21, and 20/min admits at most 20" + end);
  EXPECT_EQ(of_rule("limit: 10/min, cost: {header: x-cost, default: 11}"),
            "w:2:3: rule 'a' denies every request without the header 'x-cost': each costs 11, and 10/min admits at "
            "most 10" +
                end);
  EXPECT_EQ(warnings_of("plans: {default: free, tiers: {free: 3/min, pro: [100/min, 4/s], max: unlimited}}\n"
                        "rules: [{name: a, per: user, limit: plan, cost: 5}]"),
            "w:2:9: rule 'a' denies every request: each costs 5, and 3/min of plan 'free' admits at most 3" + end +
                "w:2:9: rule 'a' denies every request: each costs 5, and 4/s of plan 'pro' admits at most 4" + end);
}

TEST(PolicyReviewOfLimits, WarnsOfALogThatKeepsFewerRequestsThanItsLimit) {
  EXPECT_EQ(of_rule("limit: 65537/day, algorithm: sliding_log"),
            "w:2:3: rule 'a' may deny sooner than 65537/day says: a sliding_log keeps at most 65536 requests of a key; "
            "write algorithm: sliding_window, or lower the limit\n");
}

TEST(PolicyReviewOfLimits, KeepsQuietAboutWhatCanPass) {
  for (const char* rest : {
           "limit: 10/min, cost: 10",
           "limit: 0/min, cost: 10",
           "limit: 5/s burst 9, cost: 9, algorithm: token_bucket",
           "limit: 10/min, cost: {header: x-cost, max: 100}",
           "limit: 10/min, cost: 11, mode: off",
           "limit: unlimited, cost: 11",
           "limit: 65536/day, algorithm: sliding_log",
           "limit: 655360/day, cost: 10, algorithm: sliding_log",
           "limit: 65537/day, algorithm: sliding_window",
       }) {
    EXPECT_EQ(of_rule(rest), "") << rest;
  }
}

}  // namespace
}  // namespace weir
