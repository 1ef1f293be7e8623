// What each subject used, as a gate reports it: by every way that permits are charged and refunded, by day, with many
// threads.
#include "weir/usage.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <thread>

#include "gate_fixture.h"
#include "seed.h"

namespace weir::test {
namespace {

constexpr Micros kHour{3'600'000'000};
constexpr const char* kToday = "2026-09-21";

class UsageTest : public GateTest {
 protected:
  UsageTest() : GateTest({.usage = {.subjects = 1'000, .days = 3}}) {}

  UsageReport report(const UsageQuery& query) const {
    auto report = gate.usage(query);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *std::move(report) : UsageReport{};
  }
  // `2026-09-21 search 5-0 2`: the day, the rule, used and its error, denied.
  static std::string text(const UsageRow& row) {
    return row.day + ' ' + row.rule + ' ' + std::to_string(row.used) + '-' + std::to_string(row.error) + ' ' +
           std::to_string(row.denied);
  }
  std::vector<std::string> rows(const UsageQuery& query) const {
    std::vector<std::string> out;
    for (const UsageRow& row : report(query).rows) out.push_back(text(row));
    return out;
  }
  // What a subject used today under a rule.
  std::int64_t spent(const std::string& subject, const std::string& rule) const {
    for (const UsageRow& row : report({.subject = subject, .rule = rule, .from = kToday}).rows) return row.used;
    return 0;
  }
};

using Rows = std::vector<std::string>;

TEST_F(UsageTest, IsWhatPassedByEveryRuleThatChargedIt) {
  use_rules(R"(
  - {name: wide, per: [user, path], limits: [100/h, 1000/day]}
  - {name: tight, match: {path: /search}, per: user, cost: 3, limit: 9/h}
  - {name: all, per: global, limit: 100/h}
  - {name: looks, per: user, limit: 1/h, mode: shadow}
  - {name: friends, match: {user: 7}, limit: unlimited}
)");
  EXPECT_EQ(passed(5, {.user = "42", .path = "/search"}), 3);
  EXPECT_EQ(passed(2, {.user = "42", .path = "/other"}), 2);
  EXPECT_EQ(passed(4, {.user = "43", .path = "/other"}), 4);
  EXPECT_EQ(passed(4, {.user = "7", .path = "/search"}), 4);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 tight 9-0 2", "2026-09-21 wide 5-0 0"}));
  EXPECT_EQ(rows({.subject = "user:42", .rule = "wide"}), (Rows{"2026-09-21 wide 5-0 0"}));
  EXPECT_EQ(rows({.subject = "user:43"}), (Rows{"2026-09-21 wide 4-0 0"}));
  EXPECT_EQ(rows({.subject = "*"}), (Rows{"2026-09-21 all 9-0 0", "2026-09-21 friends 4-0 0"}));
  EXPECT_EQ(rows({.subject = "user:7"}), Rows{});
  const UsageReport top = report({.top = 2});
  ASSERT_EQ(top.rows.size(), 2U);
  EXPECT_EQ(top.rows[0].subject + ' ' + top.rows[0].rule, "user:42 tight");
  EXPECT_EQ(top.rows[1].subject + ' ' + top.rows[1].rule, "user:42 wide");
  EXPECT_EQ(top.from, "2026-08-23");
  EXPECT_EQ(top.to, kToday);
}

TEST_F(UsageTest, RefundsAreSubtracted) {
  use_rules("  - {name: tokens, per: user, limit: 1000/h}");
  const weir::Request request{.user = "42", .cost = 100};
  weir::Request actual = request;
  EXPECT_TRUE(gate.check(request)->allowed);
  actual.cost = -30;
  EXPECT_TRUE(gate.check(actual)->allowed);
  EXPECT_EQ(spent("user:42", "tokens"), 70);

  const auto reserved = gate.reserve(request);
  EXPECT_EQ(spent("user:42", "tokens"), 170);
  actual.cost = 25;
  ASSERT_TRUE(gate.commit(reserved->id, actual));
  EXPECT_EQ(spent("user:42", "tokens"), 95);
  EXPECT_FALSE(gate.commit(reserved->id, actual));
  EXPECT_EQ(spent("user:42", "tokens"), 95);

  const auto more = gate.reserve(request);
  actual.cost = 140;
  ASSERT_TRUE(gate.commit(more->id, actual));
  EXPECT_EQ(spent("user:42", "tokens"), 235);

  const auto cancelled = gate.reserve(request);
  ASSERT_TRUE(gate.cancel(cancelled->id, request));
  EXPECT_EQ(spent("user:42", "tokens"), 235);
}

// Servers read the path as /x;y or as /x, and each is charged.
TEST_F(UsageTest, WhatEveryReadingOfAPathReservedIsSettled) {
  use_rules("  - {name: pages, match: {path: '/{id}'}, per: [user, '{id}'], limits: [1000/h, 5000/day]}");
  weir::Request request{.user = "42", .path = "/x;y", .cost = 100};
  const auto reserved = gate.reserve(request);
  ASSERT_TRUE(reserved);
  EXPECT_EQ(spent("user:42", "pages"), 200);
  request.cost = 25;
  ASSERT_TRUE(gate.commit(reserved->id, request));
  EXPECT_EQ(spent("user:42", "pages"), 50);
}

TEST_F(UsageTest, ARequestThatIsSentTwiceIsBilledOnce) {
  use_rules("  - {name: tokens, per: user, limit: 10/h}");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(gate.check_once("id", {.user = "42", .cost = 4})->allowed);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 tokens 4-0 0"}));
  EXPECT_FALSE(gate.check_once("other", {.user = "42", .cost = 7})->allowed);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 tokens 4-0 1"}));
}

// A subject that pays by use is on a plan without limits.
TEST_F(UsageTest, WhatIsUnlimitedIsSpentTheSame) {
  use(R"(
plans: {default: free, tiers: {free: 5/h, enterprise: unlimited}}
rules:
  - {name: plan, per: [user, path], limit: plan, cost: 2}
  - {name: staff, match: {user: "7*"}, per: user, limit: unlimited}
  - {name: tenants, per: tenant, limit: 8/h}
)");
  EXPECT_EQ(passed(9, {.user = "1", .plan = "free", .path = "/a"}), 2);
  EXPECT_EQ(passed(9, {.user = "2", .plan = "enterprise", .path = "/a"}), 9);
  EXPECT_EQ(passed(9, {.user = "2", .tenant = "t", .plan = "enterprise", .path = "/a"}), 8);
  EXPECT_EQ(passed(3, {.user = "77", .plan = "free", .path = "/a", .cost = 5}), 3);
  EXPECT_EQ(rows({.subject = "user:1"}), (Rows{"2026-09-21 plan 4-0 7"}));
  EXPECT_EQ(rows({.subject = "user:2"}), (Rows{"2026-09-21 plan 34-0 0"}));
  EXPECT_EQ(rows({.subject = "user:77"}), (Rows{"2026-09-21 staff 15-0 0"}));

  const weir::Request big{.user = "3", .plan = "enterprise", .path = "/a", .cost = 50};
  const auto reserved = gate.reserve(big);
  EXPECT_EQ(rows({.subject = "user:3"}), Rows{}) << "when it is committed";
  ASSERT_TRUE(gate.commit(reserved->id, {.user = "3", .plan = "enterprise", .path = "/a", .cost = 30}));
  EXPECT_EQ(rows({.subject = "user:3"}), (Rows{"2026-09-21 plan 60-0 0"}));
  ASSERT_TRUE(gate.check({.user = "3", .plan = "enterprise", .path = "/a", .cost = -5}));
  EXPECT_EQ(rows({.subject = "user:3"}), (Rows{"2026-09-21 plan 50-0 0"}));
  const std::array<weir::Request, 2> views = {{{.user = "4", .plan = "enterprise", .path = "/a"},
                                               {.user = "4", .tenant = "u", .plan = "enterprise", .path = "/a"}}};
  std::array<weir::Answer, 2> answers;
  ASSERT_TRUE(gate.check_together(gate.rules(), views, answers));
  EXPECT_EQ(rows({.subject = "user:4"}), (Rows{"2026-09-21 plan 2-0 0"}));
}

TEST_F(UsageTest, AReservationIsSettledByWhatItReservedThoughRulesAndPlansChange) {
  use_rules("  - {name: tokens, per: user, limits: [1000/h, 5000/day]}");
  const auto before = gate.reserve({.user = "42", .cost = 100});
  use_rules("  - {name: tokens, per: user, limits: [500/m, 1000/h, 5000/day]}");
  ASSERT_TRUE(gate.commit(before->id, {.user = "42", .cost = 25}));
  EXPECT_EQ(spent("user:42", "tokens"), 25);

  use(R"(
plans: {default: free, tiers: {free: [200/m, 300/h], enterprise: unlimited}}
rules:
  - {name: plan, per: user, limit: plan}
)");
  const auto limited = gate.reserve({.user = "1", .plan = "free", .cost = 100});
  EXPECT_EQ(spent("user:1", "plan"), 100);
  ASSERT_TRUE(gate.commit(limited->id, {.user = "1", .plan = "enterprise", .cost = 30}));
  EXPECT_EQ(spent("user:1", "plan"), 30);
  EXPECT_EQ(passed(9, {.user = "1", .plan = "free", .cost = 85}), 2) << "what was not needed came back, of 200";
}

TEST_F(UsageTest, PeeksAndExplanationsSpendNothing) {
  use_rules("  - {name: tokens, per: user, limit: 10/h}");
  EXPECT_TRUE(gate.peek({.user = "42"}));
  EXPECT_TRUE(gate.explain({.user = "42"}));
  EXPECT_TRUE(gate.check({.user = "42", .cost = 0}));
  EXPECT_EQ(rows({.subject = "user:42"}), Rows{});
}

TEST_F(UsageTest, WhatIsDeniedCostsNothingThoughARuleCountsIt) {
  use_rules("  - {name: login, per: ip, limit: 3/h, count_denied: true}");
  EXPECT_EQ(passed(10, {.ip = "192.0.2.1"}), 3);
  EXPECT_EQ(rows({.subject = "ip:192.0.2.1"}), (Rows{"2026-09-21 login 3-0 7"}));
}

TEST_F(UsageTest, ViewsOfOneRequestAreBilledOnce) {
  use_rules(R"(
  - {name: users, per: user, limit: 4/h}
  - {name: tenants, per: tenant, limit: 100/h}
)");
  const std::array<weir::Request, 3> views = {
      {{.user = "42", .tenant = "acme"}, {.user = "42", .cost = 2}, {.tenant = "other"}}};
  std::array<weir::Answer, 3> answers;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(gate.check_together(gate.rules(), views, answers));
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 users 4-0 1"}));
  EXPECT_EQ(rows({.subject = "tenant:acme"}), (Rows{"2026-09-21 tenants 2-0 0"}));
  EXPECT_EQ(rows({.subject = "tenant:other"}), (Rows{"2026-09-21 tenants 2-0 0"}));
}

TEST_F(UsageTest, ARequestThatAListenerDeniesLaterIsNotUsed) {
  use_rules("  - {name: queue, per: user, limit: 1/s burst 50, algorithm: leaky_bucket}");
  weir::Request request{.user = "42"};
  const auto answer = gate.check(request);
  request.cost = -1;
  ASSERT_TRUE(gate.check(request));
  request.cost = 1;
  gate.count_reversed(request, *answer, 0);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 queue 0-0 1"}));
}

TEST_F(UsageTest, DaysEndAtMidnightAndExpire) {
  use_rules("  - {name: daily, per: user, limit: 1000/day}");
  EXPECT_EQ(passed(1, {.user = "42"}), 1);
  go_on(kHour * 12 - Micros{1});
  EXPECT_EQ(passed(2, {.user = "42"}), 2);
  const auto late = gate.reserve({.user = "42", .cost = 10});
  go_on(Micros{1});
  EXPECT_EQ(passed(4, {.user = "42"}), 4);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 daily 13-0 0", "2026-09-22 daily 4-0 0"}));
  ASSERT_TRUE(gate.commit(late->id, {.user = "42", .cost = 1}));  // the day on which it came back
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 daily 13-0 0", "2026-09-22 daily -5-0 0"}));
  EXPECT_EQ(rows({.subject = "user:42", .to = "2026-09-21"}), (Rows{"2026-09-21 daily 13-0 0"}));
  EXPECT_EQ(rows({.subject = "user:42", .days = 1}), (Rows{"2026-09-22 daily -5-0 0"}));
  EXPECT_EQ(rows({}), (Rows{"2026-08-24 daily 8-0 0"}));
  go_on(kHour * 24);
  EXPECT_EQ(passed(1, {.user = "42"}), 1);
  EXPECT_EQ(rows({.subject = "user:42"}).size(), 3U);
  go_on(kHour * 24);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-22 daily -5-0 0", "2026-09-23 daily 1-0 0"}));
  go_on(kHour * 24 * 365);
  EXPECT_EQ(passed(1, {.user = "42"}), 1);
  EXPECT_EQ(rows({.subject = "user:42", .days = 1'000}), (Rows{"2027-09-24 daily 1-0 0"}));
}

TEST_F(UsageTest, ARuleThatChangesItsPerGoesOnUnderItsName) {
  use_rules("  - {name: one, per: user, limit: 1000/day}");
  EXPECT_EQ(passed(3, {.user = "42", .tenant = "acme"}), 3);
  use_rules("  - {name: one, per: tenant, limit: 1000/day}\n  - {name: two, per: user, limit: 1000/day}");
  EXPECT_EQ(passed(2, {.user = "42", .tenant = "acme"}), 2);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 one 3-0 0", "2026-09-21 two 2-0 0"}));
  EXPECT_EQ(rows({.subject = "tenant:acme"}), (Rows{"2026-09-21 one 2-0 0"}));
  use_rules("  - {name: other, per: tenant, limit: 1000/day}");
  EXPECT_EQ(rows({.subject = "tenant:acme"}), (Rows{"2026-09-21 one 2-0 0"}));
}

TEST_F(UsageTest, WithoutRoomEveryNumberIsABound) {
  std::mt19937_64 random = seeded();
  weir::Gate small(limiter, {.usage = {.subjects = 64}});
  ASSERT_TRUE(small.apply(*parse_policy("rules: [{name: r, per: user, limit: 1000000/day}]", "t")));
  std::map<std::string, std::int64_t> truth;
  for (int i = 0; i < 20'000; ++i) {
    const std::string user = std::to_string(random() % 10 == 0 ? random() % 5'000 : random() % 50);
    const std::int64_t cost = 1 + static_cast<std::int64_t>(random() % 5);
    ASSERT_TRUE(small.check({.user = user, .cost = cost})->allowed);
    truth["user:" + user] += cost;
  }
  std::size_t known = 0;
  for (const auto& [subject, spent] : truth) {
    const auto report = small.usage({.subject = subject});
    if (report->rows.empty()) {
      ASSERT_EQ(report->unknown.size(), 1U);
      EXPECT_LE(spent, static_cast<std::int64_t>(report->unknown[0].at_most));
      continue;
    }
    ++known;
    EXPECT_LE(spent, report->rows[0].used);
    EXPECT_LE(report->rows[0].used - static_cast<std::int64_t>(report->rows[0].error), spent);
  }
  EXPECT_EQ(known, 64U);
  EXPECT_EQ(small.usage_stats().accounts, 64U);
  EXPECT_GT(small.usage_stats().evicted, 0U);
  std::int64_t before = INT64_MAX;
  const auto top = small.usage({.top = 30});
  EXPECT_EQ(top->rows.size(), 30U);
  for (const UsageRow& row : top->rows) {
    const std::int64_t sure = row.used - static_cast<std::int64_t>(row.error);
    EXPECT_LE(truth[row.subject], row.used);
    EXPECT_LE(sure, truth[row.subject]);
    EXPECT_LE(sure, std::exchange(before, sure));
  }
}

TEST_F(UsageTest, ManyThreadsLoseNothing) {
  use_rules("  - {name: r, per: user, limit: 1000000/day}");
  constexpr int kThreads = 6, kChecks = 4'000;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kChecks; ++i) {
          const std::string user = std::to_string((i * 7 + t) % 900);
          EXPECT_TRUE(gate.check({.user = user, .cost = 2})->allowed);
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(gate.usage({.top = 1}));
      EXPECT_TRUE(gate.unsaved_usage());
    }
  }
  std::int64_t sum = 0;
  for (const UsageRow& row : report({.top = 1'000}).rows) sum += row.used;
  EXPECT_EQ(sum, 2 * kThreads * kChecks);
}

TEST_F(UsageTest, IsSavedLoadedAndAdded) {
  use_rules("  - {name: r, per: user, limit: 1000/day}");
  passed(3, {.user = "42"});
  go_on(kHour * 24);
  passed(4, {.user = "42"});
  passed(1, {.user = "43"});
  const auto saved = gate.unsaved_usage();
  ASSERT_EQ(saved->size(), 2U);
  for (const SavedUsage& day : *saved) gate.usage_saved(day.day, day.version);
  EXPECT_EQ(gate.unsaved_usage()->size(), 0U);
  passed(1, {.user = "43"});
  EXPECT_EQ(gate.unsaved_usage()->size(), 1U);
  EXPECT_EQ(gate.unsaved_usage()->size(), 1U) << "until it is called saved";

  weir::Gate next(limiter, {.usage = {.subjects = 1'000}});
  for (const SavedUsage& day : *saved) ASSERT_TRUE(next.load_usage(day.text));
  EXPECT_FALSE(next.load_usage((*saved)[0].text)) << "twice";
  EXPECT_FALSE(next.load_usage("nonsense"));
  EXPECT_EQ(next.unsaved_usage()->size(), 0U);
  ASSERT_TRUE(next.apply(*parse_policy("rules: [{name: r, per: user, limit: 1000/day}]", "t")));
  ASSERT_TRUE(next.check({.user = "42", .cost = 10}));
  const std::vector<std::string> others = {(*saved)[0].text, (*saved)[1].text};
  for (const auto& [beside, first, second] : {std::tuple{false, 3, 14}, std::tuple{true, 6, 18}}) {
    const auto report = next.usage({.subject = "user:42"}, beside ? others : std::vector<std::string>{});
    ASSERT_EQ(report->rows.size(), 2U);
    EXPECT_EQ(report->rows[0].used, first);
    EXPECT_EQ(report->rows[1].used, second);
  }
  EXPECT_FALSE(next.usage({.subject = "user:42"}, std::vector<std::string>{"nonsense"}));
}

TEST_F(UsageTest, HashedNamesAreFoundByTheirName) {
  weir::Gate hiding(limiter, {.key_names = KeyNames::hashed, .usage = {.subjects = 10}});
  ASSERT_TRUE(hiding.apply(*parse_policy("rules: [{name: r, per: ip, limit: 1000/day}]", "t")));
  ASSERT_TRUE(hiding.check({.ip = "192.0.2.1"}));
  ASSERT_EQ(hiding.usage({.subject = "ip:192.0.2.1"})->rows.size(), 1U);
  EXPECT_EQ(hiding.usage({})->rows[0].subject.find("192"), std::string::npos);
  EXPECT_EQ(hiding.unsaved_usage()->front().text.find("192"), std::string::npos);
}

TEST_F(UsageTest, NamesThatWereSavedBeforeAreHashedToo) {
  use_rules("  - {name: r, per: ip, limit: 1000/day}");
  passed(3, {.ip = "192.0.2.1"});
  go_on(kHour * 24);
  passed(4, {.ip = "192.0.2.1"});
  const auto saved = gate.unsaved_usage();
  ASSERT_EQ(saved->size(), 2U);
  weir::Gate hiding(limiter, {.key_names = KeyNames::hashed, .usage = {.subjects = 10}});
  for (const SavedUsage& day : *saved) ASSERT_TRUE(hiding.load_usage(day.text));
  ASSERT_TRUE(hiding.apply(*parse_policy("rules: [{name: r, per: ip, limit: 1000/day}]", "t")));
  ASSERT_TRUE(hiding.check({.ip = "192.0.2.1", .cost = 2}));
  const auto hidden = hiding.unsaved_usage();
  ASSERT_EQ(hidden->size(), 2U) << "so that no file names them any longer";
  for (const SavedUsage& day : *hidden) EXPECT_EQ(day.text.find("192.0"), std::string::npos) << day.text;
  const std::vector<std::string> others = {(*saved)[0].text};
  const auto report = hiding.usage({.subject = "ip:192.0.2.1"}, others);
  ASSERT_EQ(report->rows.size(), 2U);
  EXPECT_EQ(report->rows[0].used, 6);
  EXPECT_EQ(report->rows[1].used, 6);
}

// Requests alone close a day; no call asks for usage or saves it.
TEST_F(UsageTest, TheNextRequestClosesADay) {
  use_rules("  - {name: r, per: user, limit: 1000/day}");
  for (int day = 0; day < 5; ++day) {
    for (int user = 0; user < 900; ++user) ASSERT_EQ(passed(1, {.user = std::to_string(user)}), 1);
    go_on(kHour * 24);
  }
  const UsageReport top = report({.top = 1'000});
  EXPECT_EQ(top.rows.size(), 900U);
  for (const UsageRow& row : top.rows) EXPECT_EQ(row.used, 2) << "today and two days before are known";
}

TEST_F(UsageTest, SaysWhatIsWrongWithAQuestion) {
  const auto wrong = [&](const UsageQuery& query) { return gate.usage(query).error().message; };
  EXPECT_NE(wrong({.subject = "42"}).find("user:42"), std::string::npos);
  EXPECT_NE(wrong({.from = "yesterday"}).find("is not a day"), std::string::npos);
  EXPECT_NE(wrong({.from = "2026-09-22", .to = "2026-09-21"}).find("is after"), std::string::npos);
  EXPECT_EQ(weir::Gate(limiter).usage({}).error().code, ErrorCode::not_found) << "it counts nothing";
}

}  // namespace
}  // namespace weir::test
