// Rules that depend on a plan: which limits apply to which subject, what a change of plan keeps, and what the text may
// say.
//
// Here the plans are a table in memory. src/plans and tests/server/plans*.sh test those of a database.
#include <map>

#include "gate_fixture.h"
#include "weir/plans.h"

namespace weir {
namespace {

constexpr std::string_view kTiers = R"(
plans:
  default: free
  tiers: {free: 3/minute, pro: [5/second, 10/minute], gold: 20/hour, enterprise: unlimited}
rules:
  - {name: plan, per: user, limit: plan, algorithm: fixed_window}
)";

// The plans of subjects, which a test sets.
class TablePlans final : public Plans {
 public:
  PlanTerms find(std::string_view subject) noexcept override {
    asked.emplace_back(subject);
    const auto known = terms.find(std::string(subject));
    return known == terms.end() ? PlanTerms{} : known->second;
  }
  bool wait(std::string_view subject) noexcept override {
    ++waits;
    if (answer.plan.empty()) return false;
    terms[std::string(subject)] = answer;
    return true;
  }

  std::map<std::string, PlanTerms> terms;
  PlanTerms answer;  // to wait()
  std::vector<std::string> asked;
  int waits = 0;
};

std::shared_ptr<const std::string> text(std::string_view given) { return std::make_shared<const std::string>(given); }

class PlansOfRules : public test::GateTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(gate.use_plans(plans));
    use(kTiers);
  }

  std::shared_ptr<TablePlans> plans = std::make_shared<TablePlans>();
};

TEST_F(PlansOfRules, LimitSubjectsWithoutAPlanByTheDefault) {
  EXPECT_EQ(passed(5, {.user = "42"}), 3);
  EXPECT_EQ(binding(ask({.user = "42"})), "plan: 3/minute");
  plans->terms["user:7"].plan = "no such plan";
  EXPECT_EQ(passed(5, {.user = "7"}), 3);
}

TEST_F(PlansOfRules, GiveEachPlanItsLimits) {
  plans->terms["user:1"].plan = "pro";
  plans->terms["user:2"].plan = "enterprise";
  EXPECT_EQ(passed(30, {.user = "1"}), 5);
  go_on(Micros{1'000'000});
  EXPECT_EQ(passed(30, {.user = "1"}), 5);
  go_on(Micros{1'000'000});
  EXPECT_EQ(passed(30, {.user = "1"}), 0) << "10 a minute apply beside 5 a second";
  EXPECT_EQ(passed(30, {.user = "2"}), 30);
  EXPECT_EQ(ask({.user = "2"}).why, Why::no_rule);
}

TEST_F(PlansOfRules, KeepWhatWasSpentWhenThePlanChanges) {
  EXPECT_EQ(passed(5, {.user = "42"}), 3);
  plans->terms["user:42"].plan = "pro";
  go_on(Micros{1'000'000});
  EXPECT_EQ(passed(5, {.user = "42"}), 5);
  go_on(Micros{1'000'000});
  EXPECT_EQ(passed(5, {.user = "42"}), 2) << "3 of the 10 a minute were spent under the old plan";
  plans->terms["user:42"].plan = "gold";
  EXPECT_EQ(passed(30, {.user = "42"}), 20) << "another period is another state";
  plans->terms.clear();
  EXPECT_EQ(passed(5, {.user = "42"}), 0) << "a downgrade frees nothing";
}

TEST_F(PlansOfRules, ApplyLimitsOfASubjectInsteadOfItsPlan) {
  EXPECT_EQ(passed(5, {.user = "42"}), 3);
  plans->terms["user:42"] = {.plan = "free", .limits = text("2/second, 7/minute")};
  go_on(Micros{1'000'000});
  EXPECT_EQ(passed(5, {.user = "42"}), 2);
  go_on(Micros{1'000'000});
  EXPECT_EQ(passed(5, {.user = "42"}), 2);
  go_on(Micros{1'000'000});
  EXPECT_EQ(passed(5, {.user = "42"}), 0) << "7 a minute, 3 of them spent before";
  EXPECT_EQ(binding(ask({.user = "42"})), "plan: 7/minute");
  plans->terms["user:42"].limits = text("what is this");
  EXPECT_EQ(passed(5, {.user = "42"}), 0) << "not a quota: the limits of the plan apply";
  EXPECT_EQ(binding(ask({.user = "42"})), "plan: 3/minute");
}

TEST_F(PlansOfRules, AreKnownBySubject) {
  use(R"(
plans: {default: free, tiers: {free: 1/minute, pro: 2/minute}}
rules:
  - {name: tenants, per: [tenant, path], limit: plan, match: {tenant: '*'}}
  - {name: keys, per: api_key, limit: plan}
  - {name: anybody, per: identity, limit: plan, match: {host: any}}
)");
  ask({.tenant = "acme"});
  ask({.api_key = "secret"});
  ask({.ip = "192.0.2.7", .host = "any"});
  ask({.user = "a:b", .host = "any"});
  const std::vector<std::string> expected = {
      "api_key:sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b", "ip:192.0.2.7", "user:a:b"};
  EXPECT_EQ(plans->asked, expected) << "no path, so `tenants` is not about the first";
  const std::string long_name(5'000, 'x');
  EXPECT_EQ(passed(3, {.user = long_name, .host = "any"}), 1);
  EXPECT_EQ(plans->asked, expected) << "no subject has such a long name";
}

TEST_F(PlansOfRules, AreWaitedForByTheFirstWhoAsks) {
  plans->terms["user:42"].is_pending = true;
  plans->answer.plan = "gold";
  const Answer answer = ask({.user = "42"});
  EXPECT_EQ(binding(answer), "plan: 20/hour");
  EXPECT_EQ(passed(30, {.user = "42"}), 19);
  EXPECT_EQ(plans->waits, 1);
}

TEST_F(PlansOfRules, FreeNothingWhileTheyAreNotKnown) {
  plans->terms["user:42"].plan = "gold";
  EXPECT_EQ(passed(30, {.user = "42"}), 20);
  plans->terms["user:42"] = {.is_pending = true};  // evicted, and the database does not answer
  EXPECT_EQ(passed(30, {.user = "42"}), 3) << "the default plan applies while the plan is not known";
  go_on(Micros{60'000'000});
  plans->terms["user:42"] = {.plan = "gold"};
  EXPECT_EQ(passed(30, {.user = "42"}), 0) << "what was used under the plan is still used";
}

TEST_F(PlansOfRules, AreResetWithAllTheirLimits) {
  plans->terms["user:42"].plan = "pro";
  EXPECT_EQ(passed(9, {.user = "42"}), 5);
  const auto reset = gate.reset("plan", {.user = "42"});
  ASSERT_TRUE(reset) << reset.error().message;
  EXPECT_TRUE(*reset);
  EXPECT_EQ(passed(9, {.user = "42"}), 5);
}

TEST_F(PlansOfRules, CanBeInShadow) {
  use(R"(
plans: {default: free, tiers: {free: 1/minute, pro: [1/second, 2/minute]}}
rules: [{name: plan, per: user, limit: plan, mode: shadow}]
)");
  plans->terms["user:42"].plan = "pro";
  EXPECT_EQ(ask({.user = "42"}).shadows.size(), 2U);
  const Answer answer = ask({.user = "42"});
  EXPECT_TRUE(answer.allowed);
  EXPECT_EQ(answer.shadows[0].name, "plan: 1/second");
  EXPECT_FALSE(answer.shadows[0].decision.allowed);
  EXPECT_EQ(gate.rule_counts()[0].shadow_denied, 1U);
}

TEST_F(PlansOfRules, AreExplained) {
  plans->terms["user:42"] = {.plan = "pro", .limits = text("7/minute")};
  const auto explained = gate.explain({.user = "42"});
  ASSERT_TRUE(explained);
  ASSERT_EQ(explained->rules[0].limits.size(), 1U);
  EXPECT_EQ(explained->rules[0].limits[0].quota, "7/minute");
}

TEST_F(PlansOfRules, AreWhatTheRequestSaysWithoutADatabase) {
  ASSERT_TRUE(gate.use_plans(nullptr));
  EXPECT_EQ(passed(9, {.user = "1", .plan = "gold"}), 9);
  EXPECT_EQ(passed(9, {.user = "2", .plan = "unheard of"}), 3);
  EXPECT_EQ(passed(9, {.user = "3"}), 3);
}

TEST_F(PlansOfRules, CountAsTheRuleSays) {
  use(R"(
plans: {default: free, tiers: {free: 3/minute, burst: 6/minute burst 2}}
rules: [{name: bucket, per: user, limit: plan, algorithm: token_bucket}]
)");
  EXPECT_EQ(passed(9, {.user = "1"}), 3);
  go_on(Micros{20'000'000});
  EXPECT_EQ(passed(9, {.user = "1"}), 1) << "a bucket refills evenly";
}

std::string error_of(std::string_view text) {
  const auto policy = parse_policy(text, "p");
  return policy ? "" : policy.error().message;
}

TEST(PlanText, ReportsWhatIsWrong) {
  const auto plans = [](const std::string& members) {
    return error_of("plans: {" + members + "}\nrules: [{name: a, per: user, limit: plan}]");
  };
  EXPECT_EQ(plans("default: free, tiers: {free: 1/s}"), "");
  EXPECT_EQ(plans("default: fre, tiers: {free: 1/s}"),
            "p:1:8: `default`: there is no plan called 'fre'; did you mean 'free'?");
  const std::string tier = "default: free, tiers: {free: 1/s}";
  const std::pair<std::string, const char*> cases[] = {
      {plans("tiers: {free: 1/s}"), "write default: free"},
      {plans("default: free"), "no `tiers`"},
      {plans("default: free, tiers: {free: 1/lightyear}"), "p:1:"},
      {plans("default: free, tiers: {free: [1/s, 2/s]}"), "two limits for the same period"},
      {plans(tier + ", source: mysql://x"), "sqlite:"},
      {plans(tier + ", source: 'postgresql://a:b@c/d'"), "passfile"},
      {plans(tier + ", source: sqlite:x, query: SELECT 1"), "$1"},
      {plans("default: free, tiers: {free: 10/minute, pro: 10/s burst 50}"), "give the rule an `algorithm`"},
      {error_of("rules: [{name: a, per: user, limit: plan}]"), "the config has no `plans`"},
      {error_of("plans: {default: a, tiers: {a: 1/s}}\nrules: [{name: a, per: path, limit: plan}]"), "subject: user"},
      {error_of("plans: {default: a, tiers: {a: 1/s burst 9}}\n"
                "rules: [{name: a, per: user, limit: plan, algorithm: fixed_window}]"),
       "burst"},
  };
  for (const auto& [error, part] : cases) EXPECT_NE(error.find(part), std::string::npos) << error << " has no " << part;
}

TEST(PlanText, IsPrintedAsItIsRead) {
  const auto policy = parse_policy(R"(
plans:
  source: postgresql://db/app?passfile=/etc/pgpass
  query: SELECT plan FROM users WHERE user_id = $1
  default: free
  tiers: {free: 100/minute, pro: [10/second, 1000/minute], enterprise: unlimited}
  subjects: 5000
  refresh: 10s
  wait: 0s
rules:
  - {name: plan, per: user, limit: plan, algorithm: token_bucket}
  - {name: other, per: tenant, limit: plan}
)",
                                   "p");
  ASSERT_TRUE(policy) << policy.error().message;
  const auto again = parse_policy(to_yaml(*policy), "again");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *policy);
  EXPECT_EQ(policy->rules[0].tiers[0].limits[0].quota.algorithm, Algorithm::token_bucket);
  EXPECT_EQ(policy->plans.wait, Micros{0});
}

TEST(PlanText, GuardsAgainstACutOfAPlan) {
  const auto of = [](const std::string& pro) {
    return *parse_policy("plans: {default: free, tiers: {free: 100/minute, pro: " + pro +
                             "}}\nrules: [{name: plan, per: user, limit: plan}]",
                         "p");
  };
  EXPECT_TRUE(compare(of("1000/minute"), of("100/minute")).refused.empty());
  const auto cut = compare(of("1000/minute"), of("99/minute"));
  ASSERT_EQ(cut.refused.size(), 1U);
  EXPECT_EQ(cut.refused[0],
            "rule plan for plan pro would be cut from 1000/minute to 99/minute, by more than 10x (max_change)");
  EXPECT_EQ(compare(of("unlimited"), of("100/minute")).refused.size(), 1U);
  const auto gone = parse_policy(
      "plans: {default: free, tiers: {free: 99/minute}}\nrules: [{name: plan, per: user, limit: plan}]", "p");
  EXPECT_EQ(
      compare(of("1000/minute"), *gone).refused,
      std::vector<std::string>{"rule plan for plan pro would be cut from 1000/minute to 99/minute, by more than 10x "
                               "(max_change)"})
      << "who was on it has the default";
  const auto with_default = [](const std::string& name) {
    return *parse_policy("plans: {default: " + name + ", tiers: {free: 100/minute, trial: 1/minute}}\n" +
                             "rules: [{name: plan, per: user, limit: plan}]",
                         "p");
  };
  EXPECT_EQ(compare(with_default("free"), with_default("trial")).refused.size(), 1U);
  EXPECT_TRUE(compare(with_default("trial"), with_default("free")).refused.empty());
}

}  // namespace
}  // namespace weir
