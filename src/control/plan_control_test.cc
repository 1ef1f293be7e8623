// Tests plans that follow the policy, on a real SQLite file: written, validated, changed with the config, cached.
#include "control/plan_control.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/folder_fixture.h"
#include "base/sha256.h"
#include "weir/limiter.h"

namespace weir::control {
namespace {

Policy policy(const std::string& tiers, const std::string& source = "sqlite:plans.db") {
  const auto read = parse_policy("plans: {source: " + source + ", default: free, tiers: {" + tiers +
                                     "}}\nrules: [{name: plan, per: user, limit: plan, algorithm: fixed_window}]",
                                 "p");
  EXPECT_TRUE(read) << read.error().message;
  return *read;
}

// The part of a server that has the plans.
struct Fixture {
  explicit Fixture(const base::TestFolder& folder) : plans(gate, folder.at("."), folder.at("memory")) {}

  void use(const Policy& next) {
    const auto put = plans.put(next);
    ASSERT_TRUE(put) << put.error().message;
  }
  std::int64_t limit_of(std::string_view user) {
    const auto answer = gate.peek({.user = user});
    return answer && answer->binding_limit() != nullptr ? answer->binding_limit()->decision.limit : -1;
  }
  Result<PlanView> set(const std::string& subject, const std::string& plan) {
    return plans.write({.kind = plans::PlanChange::Kind::set_plan, .subject = subject, .plan = plan}, {.who = "test"});
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{1'789'992'000'000'000});
  Limiter limiter{{.clock = clock, .keys = 1'000, .sweeping = Sweeping::by_hand}};
  Gate gate{limiter};
  PlanControl plans;
};

TEST(PlanControl, AppliesAPlanThatWasWritten) {
  const base::TestFolder folder;
  Fixture one(folder);
  one.use(policy("free: 3/hour, pro: 10/hour"));
  EXPECT_EQ(one.limit_of("42"), 3);
  const auto set = one.set("user:42", "pro");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->plan, "pro");
  EXPECT_EQ(set->limits, "10/hour");
  EXPECT_EQ(one.limit_of("42"), 10);
  EXPECT_FALSE(one.set("user:42", "gold"));
  EXPECT_FALSE(one.set("42", "pro"));
  const auto own = one.plans.write(
      {.kind = plans::PlanChange::Kind::set_override, .subject = "user:42", .limits = "12/hour", .until = "2099-01-01"},
      {});
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(one.limit_of("42"), 12);
  const auto rows = one.plans.list("", 10);
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->front().limits, "12/hour");
  EXPECT_TRUE(one.plans.show("user:nobody")->is_default);
}

TEST(PlanControl, UsesTheSourceAndTiersOfThePolicy) {
  const base::TestFolder folder;
  Fixture one(folder);
  one.use(policy("free: 3/hour, pro: 10/hour"));
  ASSERT_TRUE(one.set("user:42", "pro"));
  const auto directory = one.plans.directory();
  one.use(policy("free: 3/hour, pro: 20/hour"));
  EXPECT_EQ(one.plans.directory(), directory) << "the same directory checks the rows by the new tiers";
  EXPECT_EQ(one.limit_of("42"), 20);
  one.use(policy("free: 3/hour, pro: 20/hour", "sqlite:other.db"));
  EXPECT_NE(one.plans.directory(), directory);
  EXPECT_EQ(one.limit_of("42"), 3) << "the subject has no plan in the other database";
  const auto without = parse_policy("rules: [{name: plan, per: user, limit: 7/hour}]", "p");
  one.use(*without);
  EXPECT_EQ(one.plans.directory(), nullptr);
  EXPECT_EQ(one.limit_of("42"), 7);
  EXPECT_NE(one.plans.show("user:42").error().message.find("no plan database"), std::string::npos);
}

// Waits for the limit: the directory's thread applies the changed tiers later.
bool comes(Fixture& one, std::string_view user, std::int64_t limit) {
  for (int i = 0; i < 6'000 && one.limit_of(user) != limit; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return one.limit_of(user) == limit;
}

TEST(PlanControl, KeepsThePreviousSourceIfTheNextCannotBeRead) {
  const base::TestFolder folder;
  Fixture one(folder);
  one.use(policy("free: 3/hour, pro: 10/hour"));
  ASSERT_TRUE(one.set("user:42", "pro"));
  const auto directory = one.plans.directory();
  const auto put = one.plans.put(policy("free: 3/hour, pro: 10/hour", "sqlite:no/such/folder/plans.db"));
  ASSERT_FALSE(put);
  EXPECT_NE(put.error().message.find("cannot be read"), std::string::npos) << put.error().message;
  EXPECT_EQ(one.plans.directory(), directory);
  EXPECT_EQ(one.limit_of("42"), 10);
  EXPECT_FALSE(PlanControl::check(policy("free: 3/hour", "'sqlite::memory:'").plans, ""));
  one.use(policy("free: 4/hour, gold: 30/hour"));
  EXPECT_TRUE(comes(one, "42", 4)) << "the subject's tier no longer exists";
}

TEST(PlanControl, StartsWithSavedPlansIfTheDatabaseIsUnavailable) {
  const base::TestFolder folder;
  {
    Fixture before(folder);
    before.use(policy("free: 3/hour, pro: 10/hour"));
    ASSERT_TRUE(before.set("user:42", "pro"));
  }
  std::filesystem::remove(folder.at("plans.db"));
  std::filesystem::create_directory(folder.at("plans.db"));  // so that no database can be created
  {
    Fixture after(folder);
    after.use(policy("free: 3/hour, pro: 10/hour"));
    EXPECT_EQ(after.limit_of("42"), 10);
    EXPECT_FALSE(after.plans.directory()->status().is_up);
    EXPECT_FALSE(after.set("user:42", "free"));
  }
  Fixture again(folder);
  again.use(policy("free: 3/hour, pro: 10/hour"));
  EXPECT_EQ(again.limit_of("42"), 10) << "a process that never read the database must not overwrite the saved plans";
}

Policy two_plans() {
  return *parse_policy(R"(
plans: {default: free, tiers: {free: 100/minute, pro: [10/second, 1000/minute]}}
rules:
  - {name: plan, per: user, limit: plan, algorithm: fixed_window}
  - {name: other, per: tenant, limit: plan}
)",
                       "p");
}

std::string refusal(const plans::PlanRow& row) {
  const auto checked = check_row(two_plans(), row);
  return checked ? "" : checked.error().message;
}

plans::PlanRow on(std::optional<std::string> plan) {
  return {.subject = "user:42", .has_plan = true, .plan = std::move(plan)};
}

plans::PlanRow with(std::optional<std::string> limits, std::optional<std::string> until = {}) {
  return {.subject = "user:42", .has_override = true, .limits = std::move(limits), .until = std::move(until)};
}

TEST(PlanRows, AcceptsValidRows) {
  const auto both = check_row(two_plans(), {.subject = "user:42",
                                            .has_plan = true,
                                            .plan = "pro",
                                            .has_override = true,
                                            .limits = "50/second, 5000/minute",
                                            .until = "2026-12-31"});
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->plan, "pro");
  EXPECT_EQ(both->instead, "50/second, 5000/minute");
  EXPECT_EQ(both->until, Micros{1'798'675'200'000'000});
  EXPECT_EQ(check_row(two_plans(), with("5/minute", "1798675200"))->until, both->until);
  EXPECT_EQ(check_row(two_plans(), with("5/minute"))->until, Micros{0});
  EXPECT_EQ(check_row(two_plans(), {.subject = "user:42"})->plan, "");
}

TEST(PlanRows, RefusesInvalidRows) {
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
  EXPECT_NE(refusal(with("5/minute burst 9")).find("burst"), std::string::npos)
      << "one of the rules counts in windows, which have no burst";
  for (const char* until : {"", "tomorrow", "-1", "0", "99999999999999999999", "2026-02-30", "NaN"}) {
    EXPECT_NE(refusal(with("5/minute", until)), "") << until;
  }
}

TEST(PlanRows, EverySubjectHasOneCanonicalText) {
  EXPECT_EQ(*canonical_subject("user:42"), "user:42");
  EXPECT_EQ(*canonical_subject("user:a:b"), "user:a:b");
  EXPECT_EQ(*canonical_subject("ip:::ffff:192.0.2.1"), "ip:192.0.2.1");
  EXPECT_EQ(*canonical_subject("ip:2001:db8::1"), "ip:2001:db8::/64");
  EXPECT_EQ(*canonical_subject("api_key:sha256:" + std::string(64, 'a')), "api_key:sha256:" + std::string(64, 'a'));
  EXPECT_EQ(*canonical_subject("api_key:secret"), "api_key:sha256:" + base::hex(base::sha256("secret")));
  for (const char* text : {"", "42", "user", "user:", "users:42", "ip:here", ":42"}) {
    EXPECT_FALSE(canonical_subject(text)) << text;
  }
}

}  // namespace
}  // namespace weir::control
