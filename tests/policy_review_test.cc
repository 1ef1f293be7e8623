// What compare() returns for two policies, and the warnings of review() about limits: a rule that denies every request
// because of its cost, and a log that is too short for its limit. policy_text_test.cc tests its other warnings.
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

struct Change {
  const char *from, *to;
  const char* lines;  // those of `refused` begin with a '!'
};

TEST(PolicyChanges, SayWhatChangesAndWhatIsTooMuch) {
  const Change cases[] = {
      {"{name: a, per: ip, limit: 100/s}", "{name: a, per: ip, limit: 100/s}", ""},
      {"{name: a, per: ip, limit: 100/s}", "{name: a, per: ip, limit: 100/s, owner: me}", "changed: a\n"},
      {"{name: a, per: ip, limit: 100/s}", "{name: a, per: ip, limit: 10/s}", "changed: a: 100/s -> 10/s\n"},
      {"{name: a, per: ip, limit: 100/s}", "{name: a, per: ip, limit: 9/s}",
       "changed: a: 100/s -> 9/s\n!rule a would be cut from 100/s to 9/s, by more than 10x (max_change)\n"},
      {"{name: a, per: ip, limit: 100/s}", "{name: a, per: ip, limit: 100/min}",
       "changed: a: 100/s -> 100/min\n!rule a would be cut from 100/s to 100/min, by more than 10x (max_change)\n"},
      {"{name: a, per: ip, limit: 100/s}", "{name: a, per: ip, limit: 0/s}",
       "changed: a: 100/s -> 0/s\n!rule a would be cut from 100/s to 0/s, by more than 10x (max_change)\n"},
      {"{name: a, per: ip, limit: 10/s burst 100}", "{name: a, per: ip, limit: 10/s burst 9}",
       "changed: a: 10/s burst 100 -> 10/s burst 9\n"
       "!rule a would be cut from 10/s burst 100 to 10/s burst 9, by more than 10x (max_change)\n"},
      {"{name: a, per: ip, limit: 100/calendar_day}", "{name: a, per: ip, limit: 100/calendar_week}",
       "changed: a: 100/calendar_day -> 100/calendar_week\n"},
      {"{name: a, per: ip, limit: unlimited}", "{name: a, per: ip, limit: 100/s}",
       "changed: a: unlimited -> 100/s\n!rule a would be cut from unlimited to 100/s, by more than 10x (max_change)\n"},
      {"{name: a, per: ip, limit: 100/s}", "{name: a, per: ip, limits: [9/s, 1000/h]}",
       "changed: a: 100/s -> 9/s, 1000/h\ncounts restart: a: 9/s, a new period\ncounts restart: a: 1000/h, a new "
       "period\n"
       "!rule a would be cut from 100/s to 9/s, by more than 10x (max_change)\n"
       "!rule a would be cut from 100/s to 1000/h, by more than 10x (max_change)\n"},
      {"{name: a, per: ip, limits: [100/s, 1000/h]}", "{name: a, per: ip, limit: 9/s}",
       "changed: a: 100/s, 1000/h -> 9/s\ncounts restart: a: 9/s, a new period\n"
       "!rule a would be cut from 100/s to 9/s, by more than 10x (max_change)\n"},
      {"{name: a, per: ip, limits: [10/s, 100/min]}", "{name: a, per: ip, limits: [10/s, 1000/h]}",
       "changed: a: 10/s, 100/min -> 10/s, 1000/h\ncounts restart: a: 1000/h, a new period\n"},
      {"{name: a, per: ip, limit: 100/s}", "{name: a, per: user, limit: 100/s}",
       "changed: a\ncounts restart: a, because its `per` has changed\n"},
      {"{name: a, per: ip, limit: 100/s}", "{name: a, per: ip, limit: 100/s, algorithm: token_bucket}",
       "changed: a\ncounts restart: a: 100/s, because its algorithm has changed\n"},
      {"{name: a, per: user, limit: 10/hour}", "{name: a, per: user, limit: 20/hour, algorithm: token_bucket}",
       "changed: a: 10/hour -> 20/hour\ncounts restart: a: 20/hour, because its algorithm has changed\n"},
      {"{name: a, per: ip, limit: 100/s}", "{name: a, per: ip, limit: 1/s, mode: shadow}",
       "changed: a: 100/s -> 1/s\n!1 of 1 rules would be removed or no longer enforced\n"},
      {"{name: a, limit: 0/s}, {name: b, limit: 0/s}", "{name: a, limit: 0/s}", "removed: b\n"},
      {"{name: a, limit: 0/s}, {name: b, limit: 0/s}, {name: c, limit: 0/s}",
       "{name: c, limit: 0/s}, {name: d, limit: unlimited}",
       "removed: a\nremoved: b\nadded: d: unlimited\n!2 of 3 rules would be removed or no longer enforced\n"
       "!rule d would exempt every request\n"},
  };
  const auto policy_of = [](const std::string& before, const char* rules) {
    return parse_policy(before + "rules: [" + rules + "]", "w").value();
  };
  for (const Change& change : cases) {
    const Policy from = policy_of("", change.from), to = policy_of("", change.to);
    std::string lines, allowed;
    const PolicyChanges changes = compare(from, to);
    for (const std::string& line : changes.lines) lines += line + '\n';
    for (const std::string& line : changes.refused) lines += '!' + line + '\n';
    EXPECT_EQ(lines, change.lines) << change.from << " -> " << change.to;
    // max_change of the policy in effect decides.
    EXPECT_TRUE(compare(policy_of("max_change: off\n", change.from), to).refused.empty()) << change.from;
    EXPECT_EQ(compare(from, policy_of("max_change: off\n", change.to)).refused, changes.refused) << change.from;
  }
}

TEST(PolicyChanges, GoByTheFactorOfThePolicyInForce) {
  const auto refuses = [](const std::string& factor, const std::string& to) {
    const auto from = parse_policy("max_change: " + factor + "\nrules: [{name: a, per: ip, limit: 100/s}]", "w");
    const auto next = parse_policy("rules: [{name: a, per: ip, limit: " + to + "}]", "w");
    return !compare(from.value(), next.value()).refused.empty();
  };
  EXPECT_TRUE(refuses("1", "99/s"));
  EXPECT_FALSE(refuses("1", "100/s"));
  EXPECT_FALSE(refuses("2", "50/s"));
  EXPECT_TRUE(refuses("2", "49/s"));
  EXPECT_TRUE(refuses("1000000", "0/s"));
  EXPECT_FALSE(refuses("off", "0/s"));
}

}  // namespace
}  // namespace weir
