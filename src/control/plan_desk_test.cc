// Tests plans that follow the policy, on a real SQLite file: written, validated, changed with the config, cached.
#include "control/plan_desk.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "control/test_folder.h"
#include "weir/limiter.h"

namespace weir {
namespace {

Policy policy(const std::string& tiers, const std::string& source = "sqlite:plans.db") {
  const auto read = parse_policy("plans: {source: " + source + ", default: free, tiers: {" + tiers +
                                     "}}\nrules: [{name: plan, per: user, limit: plan, algorithm: fixed_window}]",
                                 "p");
  EXPECT_TRUE(read) << read.error().message;
  return *read;
}

// The part of a server that has the plans.
struct Desk {
  explicit Desk(const TestFolder& folder) : desk(gate, folder.at("."), folder.at("memory")) {}

  void use(const Policy& next) {
    const auto put = desk.put(next);
    ASSERT_TRUE(put) << put.error().message;
  }
  std::int64_t limit_of(std::string_view user) {
    const auto answer = gate.peek({.user = user});
    return answer && answer->binding_limit() != nullptr ? answer->binding_limit()->decision.limit : -1;
  }
  Result<PlanView> set(const std::string& subject, const std::string& plan) {
    return desk.write({.kind = PlanChange::Kind::set_plan, .subject = subject, .plan = plan}, {.who = "test"});
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{1'789'992'000'000'000});
  Limiter limiter{{.clock = clock, .keys = 1'000, .sweeping = Sweeping::by_hand}};
  Gate gate{limiter};
  PlanDesk desk;
};

TEST(PlanDesk, WritesShowsAndHolds) {
  const TestFolder folder;
  Desk one(folder);
  one.use(policy("free: 3/hour, pro: 10/hour"));
  EXPECT_EQ(one.limit_of("42"), 3);
  const auto set = one.set("user:42", "pro");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->plan, "pro");
  EXPECT_EQ(set->limits, "10/hour");
  EXPECT_EQ(one.limit_of("42"), 10);
  EXPECT_FALSE(one.set("user:42", "gold"));
  EXPECT_FALSE(one.set("42", "pro"));
  const auto own = one.desk.write(
      {.kind = PlanChange::Kind::set_override, .subject = "user:42", .limits = "12/hour", .until = "2099-01-01"}, {});
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(one.limit_of("42"), 12);
  const auto rows = one.desk.list("", 10);
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->front().limits, "12/hour");
  EXPECT_TRUE(one.desk.show("user:nobody")->is_default);
}

TEST(PlanDesk, FollowsThePolicy) {
  const TestFolder folder;
  Desk one(folder);
  one.use(policy("free: 3/hour, pro: 10/hour"));
  ASSERT_TRUE(one.set("user:42", "pro"));
  const auto directory = one.desk.directory();
  one.use(policy("free: 3/hour, pro: 20/hour"));
  EXPECT_EQ(one.desk.directory(), directory) << "other tiers are judged by the same directory";
  EXPECT_EQ(one.limit_of("42"), 20);
  one.use(policy("free: 3/hour, pro: 20/hour", "sqlite:other.db"));
  EXPECT_NE(one.desk.directory(), directory);
  EXPECT_EQ(one.limit_of("42"), 3) << "who is on no plan there";
  const auto without = parse_policy("rules: [{name: plan, per: user, limit: 7/hour}]", "p");
  one.use(*without);
  EXPECT_EQ(one.desk.directory(), nullptr);
  EXPECT_EQ(one.limit_of("42"), 7);
  EXPECT_NE(one.desk.show("user:42").error().message.find("no plan database"), std::string::npos);
}

// Waits for the limit: the directory's thread applies the changed tiers later.
bool comes(Desk& one, std::string_view user, std::int64_t limit) {
  for (int i = 0; i < 6'000 && one.limit_of(user) != limit; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return one.limit_of(user) == limit;
}

TEST(PlanDesk, StaysWhereItIsIfTheNextSourceCannotBeRead) {
  const TestFolder folder;
  Desk one(folder);
  one.use(policy("free: 3/hour, pro: 10/hour"));
  ASSERT_TRUE(one.set("user:42", "pro"));
  const auto directory = one.desk.directory();
  const auto put = one.desk.put(policy("free: 3/hour, pro: 10/hour", "sqlite:no/such/folder/plans.db"));
  ASSERT_FALSE(put);
  EXPECT_NE(put.error().message.find("cannot be read"), std::string::npos) << put.error().message;
  EXPECT_EQ(one.desk.directory(), directory);
  EXPECT_EQ(one.limit_of("42"), 10);
  EXPECT_FALSE(PlanDesk::check(policy("free: 3/hour", "'sqlite::memory:'").plans, ""));
  one.use(policy("free: 4/hour, gold: 30/hour"));
  EXPECT_TRUE(comes(one, "42", 4)) << "a tier that is gone";
}

TEST(PlanDesk, RemembersWhatWasKnownWhenTheDatabaseIsAwayAtTheStart) {
  const TestFolder folder;
  {
    Desk before(folder);
    before.use(policy("free: 3/hour, pro: 10/hour"));
    ASSERT_TRUE(before.set("user:42", "pro"));
  }
  std::filesystem::remove(folder.at("plans.db"));
  std::filesystem::create_directory(folder.at("plans.db"));  // so that no database can be created
  {
    Desk after(folder);
    after.use(policy("free: 3/hour, pro: 10/hour"));
    EXPECT_EQ(after.limit_of("42"), 10);
    EXPECT_FALSE(after.desk.directory()->status().is_up);
    EXPECT_FALSE(after.set("user:42", "free"));
  }
  Desk again(folder);
  again.use(policy("free: 3/hour, pro: 10/hour"));
  EXPECT_EQ(again.limit_of("42"), 10) << "who never read the database must not forget what was known";
}

}  // namespace
}  // namespace weir
