// What a gate says that each subject spent: by every way that permits go out and come back, by day, by many threads.
#include "weir/spending.h"

#include <gtest/gtest.h>

#include <algorithm>
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

class SpendingTest : public GateTest {
 protected:
  SpendingReport report(const SpendingQuery& query) const {
    auto report = counting.spending(query);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *std::move(report) : SpendingReport{};
  }
  // `2026-09-21 search 5-0 2`: spent less its error, denied.
  static std::string text(const Spending& row) {
    return row.day + ' ' + row.rule + ' ' + std::to_string(row.spent) + '-' + std::to_string(row.error) + ' ' +
           std::to_string(row.denied);
  }
  std::vector<std::string> rows(const SpendingQuery& query) const {
    std::vector<std::string> out;
    for (const Spending& row : report(query).rows) out.push_back(text(row));
    return out;
  }
  // Of a subject, today, by a rule.
  std::int64_t spent(const std::string& subject, const std::string& rule) const {
    for (const Spending& row : report({.subject = subject, .rule = rule, .from = kToday}).rows) return row.spent;
    return 0;
  }
  void use(const std::string& rules) {
    const auto policy = parse_policy("rules:\n" + rules, "test.yaml");
    ASSERT_TRUE(policy) << policy.error().message;
    ASSERT_TRUE(counting.apply(*policy, Force::yes));
  }
  int passed(int requests, const Request& request) {
    int count = 0;
    for (int i = 0; i < requests; ++i) count += counting.check(request)->allowed ? 1 : 0;
    return count;
  }

  Gate counting{limiter, {.spending = {.subjects = 1'000, .days = 3}}};
};

using Rows = std::vector<std::string>;

TEST_F(SpendingTest, IsWhatPassedByEveryRuleThatChargedIt) {
  use(R"(
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
  const SpendingReport top = report({.top = 2});
  ASSERT_EQ(top.rows.size(), 2U);
  EXPECT_EQ(top.rows[0].subject + ' ' + top.rows[0].rule, "user:42 tight");
  EXPECT_EQ(top.rows[1].subject + ' ' + top.rows[1].rule, "user:42 wide");
  EXPECT_EQ(top.from, "2026-08-23");
  EXPECT_EQ(top.to, kToday);
}

TEST_F(SpendingTest, WhatComesBackIsTakenOff) {
  use("  - {name: tokens, per: user, limit: 1000/h}");
  const Request request{.user = "42", .cost = 100};
  Request actual = request;
  EXPECT_TRUE(counting.check(request)->allowed);
  actual.cost = -30;
  EXPECT_TRUE(counting.check(actual)->allowed);
  EXPECT_EQ(spent("user:42", "tokens"), 70);

  const auto reserved = counting.reserve(request);
  EXPECT_EQ(spent("user:42", "tokens"), 170);
  actual.cost = 25;
  ASSERT_TRUE(counting.commit(reserved->id, actual));
  EXPECT_EQ(spent("user:42", "tokens"), 95);
  EXPECT_FALSE(counting.commit(reserved->id, actual));
  EXPECT_EQ(spent("user:42", "tokens"), 95);

  const auto more = counting.reserve(request);
  actual.cost = 140;
  ASSERT_TRUE(counting.commit(more->id, actual));
  EXPECT_EQ(spent("user:42", "tokens"), 235);

  const auto cancelled = counting.reserve(request);
  ASSERT_TRUE(counting.cancel(cancelled->id, request));
  EXPECT_EQ(spent("user:42", "tokens"), 235);
}

// Servers read the path as /x;y or as /x, and each is charged.
TEST_F(SpendingTest, WhatEveryReadingOfAPathReservedIsSettled) {
  use("  - {name: pages, match: {path: '/{id}'}, per: [user, '{id}'], limits: [1000/h, 5000/day]}");
  Request request{.user = "42", .path = "/x;y", .cost = 100};
  const auto reserved = counting.reserve(request);
  ASSERT_TRUE(reserved);
  EXPECT_EQ(spent("user:42", "pages"), 200);
  request.cost = 25;
  ASSERT_TRUE(counting.commit(reserved->id, request));
  EXPECT_EQ(spent("user:42", "pages"), 50);
}

TEST_F(SpendingTest, ARequestThatIsSentTwiceIsBilledOnce) {
  use("  - {name: tokens, per: user, limit: 10/h}");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(counting.check_once("id", {.user = "42", .cost = 4})->allowed);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 tokens 4-0 0"}));
  EXPECT_FALSE(counting.check_once("other", {.user = "42", .cost = 7})->allowed);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 tokens 4-0 1"}));
}

// Who pays by use is on a plan without limits.
TEST_F(SpendingTest, WhatIsUnlimitedIsSpentTheSame) {
  const auto policy = parse_policy(R"(
plans: {default: free, tiers: {free: 5/h, enterprise: unlimited}}
rules:
  - {name: plan, per: [user, path], limit: plan, cost: 2}
  - {name: staff, match: {user: "7*"}, per: user, limit: unlimited}
  - {name: tenants, per: tenant, limit: 8/h}
)",
                                   "test.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  ASSERT_TRUE(counting.apply(*policy, Force::yes));
  EXPECT_EQ(passed(9, {.user = "1", .plan = "free", .path = "/a"}), 2);
  EXPECT_EQ(passed(9, {.user = "2", .plan = "enterprise", .path = "/a"}), 9);
  EXPECT_EQ(passed(9, {.user = "2", .tenant = "t", .plan = "enterprise", .path = "/a"}), 8);
  EXPECT_EQ(passed(3, {.user = "77", .plan = "free", .path = "/a", .cost = 5}), 3);
  EXPECT_EQ(rows({.subject = "user:1"}), (Rows{"2026-09-21 plan 4-0 7"}));
  EXPECT_EQ(rows({.subject = "user:2"}), (Rows{"2026-09-21 plan 34-0 0"}));
  EXPECT_EQ(rows({.subject = "user:77"}), (Rows{"2026-09-21 staff 15-0 0"}));

  const Request big{.user = "3", .plan = "enterprise", .path = "/a", .cost = 50};
  const auto reserved = counting.reserve(big);
  EXPECT_EQ(rows({.subject = "user:3"}), Rows{}) << "when it is committed";
  ASSERT_TRUE(counting.commit(reserved->id, {.user = "3", .plan = "enterprise", .path = "/a", .cost = 30}));
  EXPECT_EQ(rows({.subject = "user:3"}), (Rows{"2026-09-21 plan 60-0 0"}));
  ASSERT_TRUE(counting.check({.user = "3", .plan = "enterprise", .path = "/a", .cost = -5}));
  EXPECT_EQ(rows({.subject = "user:3"}), (Rows{"2026-09-21 plan 50-0 0"}));
  const std::array<Request, 2> views = {{{.user = "4", .plan = "enterprise", .path = "/a"},
                                         {.user = "4", .tenant = "u", .plan = "enterprise", .path = "/a"}}};
  std::array<Answer, 2> answers;
  ASSERT_TRUE(counting.check_together(counting.rules(), views, answers));
  EXPECT_EQ(rows({.subject = "user:4"}), (Rows{"2026-09-21 plan 2-0 0"}));
}

TEST_F(SpendingTest, AReservationIsSettledByWhatItReservedThoughRulesAndPlansChange) {
  use("  - {name: tokens, per: user, limits: [1000/h, 5000/day]}");
  const auto before = counting.reserve({.user = "42", .cost = 100});
  use("  - {name: tokens, per: user, limits: [500/m, 1000/h, 5000/day]}");
  ASSERT_TRUE(counting.commit(before->id, {.user = "42", .cost = 25}));
  EXPECT_EQ(spent("user:42", "tokens"), 25);

  const auto policy = parse_policy(R"(
plans: {default: free, tiers: {free: [200/m, 300/h], enterprise: unlimited}}
rules:
  - {name: plan, per: user, limit: plan}
)",
                                   "test.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  ASSERT_TRUE(counting.apply(*policy, Force::yes));
  const auto limited = counting.reserve({.user = "1", .plan = "free", .cost = 100});
  EXPECT_EQ(spent("user:1", "plan"), 100);
  ASSERT_TRUE(counting.commit(limited->id, {.user = "1", .plan = "enterprise", .cost = 30}));
  EXPECT_EQ(spent("user:1", "plan"), 30);
  EXPECT_EQ(passed(9, {.user = "1", .plan = "free", .cost = 85}), 2) << "what was not needed came back, of 200";
}

TEST_F(SpendingTest, PeeksAndExplanationsSpendNothing) {
  use("  - {name: tokens, per: user, limit: 10/h}");
  EXPECT_TRUE(counting.peek({.user = "42"}));
  EXPECT_TRUE(counting.explain({.user = "42"}));
  EXPECT_TRUE(counting.check({.user = "42", .cost = 0}));
  EXPECT_EQ(rows({.subject = "user:42"}), Rows{});
}

TEST_F(SpendingTest, WhatIsDeniedCostsNothingThoughARuleCountsIt) {
  use("  - {name: login, per: ip, limit: 3/h, count_denied: true}");
  EXPECT_EQ(passed(10, {.ip = "192.0.2.1"}), 3);
  EXPECT_EQ(rows({.subject = "ip:192.0.2.1"}), (Rows{"2026-09-21 login 3-0 7"}));
}

TEST_F(SpendingTest, ViewsOfOneRequestAreBilledOnce) {
  use(R"(
  - {name: users, per: user, limit: 4/h}
  - {name: tenants, per: tenant, limit: 100/h}
)");
  const std::array<Request, 3> views = {
      {{.user = "42", .tenant = "acme"}, {.user = "42", .cost = 2}, {.tenant = "other"}}};
  std::array<Answer, 3> answers;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(counting.check_together(counting.rules(), views, answers));
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 users 4-0 1"}));
  EXPECT_EQ(rows({.subject = "tenant:acme"}), (Rows{"2026-09-21 tenants 2-0 0"}));
  EXPECT_EQ(rows({.subject = "tenant:other"}), (Rows{"2026-09-21 tenants 2-0 0"}));
}

TEST_F(SpendingTest, WhatADoorDeniesAfterAllIsNoLongerSpent) {
  use("  - {name: queue, per: user, limit: 1/s burst 50, algorithm: leaky_bucket}");
  Request request{.user = "42"};
  const auto answer = counting.check(request);
  request.cost = -1;
  ASSERT_TRUE(counting.check(request));
  request.cost = 1;
  counting.count_reversed(request, *answer, 0);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 queue 0-0 1"}));
}

TEST_F(SpendingTest, DaysEndAtMidnightAndAreForgottenInTime) {
  use("  - {name: daily, per: user, limit: 1000/day}");
  EXPECT_EQ(passed(1, {.user = "42"}), 1);
  go_on(kHour * 12 - Micros{1});
  EXPECT_EQ(passed(2, {.user = "42"}), 2);
  const auto late = counting.reserve({.user = "42", .cost = 10});
  go_on(Micros{1});
  EXPECT_EQ(passed(4, {.user = "42"}), 4);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 daily 13-0 0", "2026-09-22 daily 4-0 0"}));
  ASSERT_TRUE(counting.commit(late->id, {.user = "42", .cost = 1}));  // the day on which it came back
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

TEST_F(SpendingTest, ARuleThatChangesItsPerGoesOnUnderItsName) {
  use("  - {name: one, per: user, limit: 1000/day}");
  EXPECT_EQ(passed(3, {.user = "42", .tenant = "acme"}), 3);
  use("  - {name: one, per: tenant, limit: 1000/day}\n  - {name: two, per: user, limit: 1000/day}");
  EXPECT_EQ(passed(2, {.user = "42", .tenant = "acme"}), 2);
  EXPECT_EQ(rows({.subject = "user:42"}), (Rows{"2026-09-21 one 3-0 0", "2026-09-21 two 2-0 0"}));
  EXPECT_EQ(rows({.subject = "tenant:acme"}), (Rows{"2026-09-21 one 2-0 0"}));
  use("  - {name: other, per: tenant, limit: 1000/day}");
  EXPECT_EQ(rows({.subject = "tenant:acme"}), (Rows{"2026-09-21 one 2-0 0"}));
}

TEST_F(SpendingTest, WithoutRoomEveryNumberIsABound) {
  std::mt19937_64 random = seeded();
  Gate small(limiter, {.spending = {.subjects = 64}});
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
    const auto report = small.spending({.subject = subject});
    if (report->rows.empty()) {
      ASSERT_EQ(report->unknown.size(), 1U);
      EXPECT_LE(spent, static_cast<std::int64_t>(report->unknown[0].at_most));
      continue;
    }
    ++known;
    EXPECT_LE(spent, report->rows[0].spent);
    EXPECT_LE(report->rows[0].spent - static_cast<std::int64_t>(report->rows[0].error), spent);
  }
  EXPECT_EQ(known, 64U);
  EXPECT_EQ(small.spending_stats().accounts, 64U);
  EXPECT_GT(small.spending_stats().evicted, 0U);
  std::int64_t before = INT64_MAX;
  const auto top = small.spending({.top = 30});
  EXPECT_EQ(top->rows.size(), 30U);
  for (const Spending& row : top->rows) {
    const std::int64_t sure = row.spent - static_cast<std::int64_t>(row.error);
    EXPECT_LE(truth[row.subject], row.spent);
    EXPECT_LE(sure, truth[row.subject]);
    EXPECT_LE(sure, std::exchange(before, sure));
  }
}

TEST_F(SpendingTest, ManyThreadsLoseNothing) {
  use("  - {name: r, per: user, limit: 1000000/day}");
  constexpr int kThreads = 6, kChecks = 4'000;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kChecks; ++i) {
          const std::string user = std::to_string((i * 7 + t) % 900);
          EXPECT_TRUE(counting.check({.user = user, .cost = 2})->allowed);
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(counting.spending({.top = 1}));
      EXPECT_TRUE(counting.unsaved_spending());
    }
  }
  std::int64_t sum = 0;
  for (const Spending& row : report({.top = 1'000}).rows) sum += row.spent;
  EXPECT_EQ(sum, 2 * kThreads * kChecks);
}

TEST_F(SpendingTest, IsSavedAndTakenBackAndPutTogether) {
  use("  - {name: r, per: user, limit: 1000/day}");
  passed(3, {.user = "42"});
  go_on(kHour * 24);
  passed(4, {.user = "42"});
  passed(1, {.user = "43"});
  const auto saved = counting.unsaved_spending();
  ASSERT_EQ(saved->size(), 2U);
  for (const SavedSpending& day : *saved) counting.spending_saved(day.day, day.version);
  EXPECT_EQ(counting.unsaved_spending()->size(), 0U);
  passed(1, {.user = "43"});
  EXPECT_EQ(counting.unsaved_spending()->size(), 1U);
  EXPECT_EQ(counting.unsaved_spending()->size(), 1U) << "until it is called saved";

  Gate next(limiter, {.spending = {.subjects = 1'000}});
  for (const SavedSpending& day : *saved) ASSERT_TRUE(next.take_spending(day.text));
  EXPECT_FALSE(next.take_spending((*saved)[0].text)) << "twice";
  EXPECT_FALSE(next.take_spending("nonsense"));
  EXPECT_EQ(next.unsaved_spending()->size(), 0U);
  ASSERT_TRUE(next.apply(*parse_policy("rules: [{name: r, per: user, limit: 1000/day}]", "t")));
  ASSERT_TRUE(next.check({.user = "42", .cost = 10}));
  const std::vector<std::string> others = {(*saved)[0].text, (*saved)[1].text};
  for (const auto& [beside, first, second] : {std::tuple{false, 3, 14}, std::tuple{true, 6, 18}}) {
    const auto report = next.spending({.subject = "user:42"}, beside ? others : std::vector<std::string>{});
    ASSERT_EQ(report->rows.size(), 2U);
    EXPECT_EQ(report->rows[0].spent, first);
    EXPECT_EQ(report->rows[1].spent, second);
  }
  EXPECT_FALSE(next.spending({.subject = "user:42"}, std::vector<std::string>{"nonsense"}));
}

TEST_F(SpendingTest, WhoHidesNamesFindsThemAllTheSame) {
  Gate hiding(limiter, {.key_names = KeyNames::hashed, .spending = {.subjects = 10}});
  ASSERT_TRUE(hiding.apply(*parse_policy("rules: [{name: r, per: ip, limit: 1000/day}]", "t")));
  ASSERT_TRUE(hiding.check({.ip = "192.0.2.1"}));
  ASSERT_EQ(hiding.spending({.subject = "ip:192.0.2.1"})->rows.size(), 1U);
  EXPECT_EQ(hiding.spending({})->rows[0].subject.find("192"), std::string::npos);
  EXPECT_EQ(hiding.unsaved_spending()->front().text.find("192"), std::string::npos);
}

TEST_F(SpendingTest, WhoHidesNamesFromNowOnHidesThoseThatWereKeptBefore) {
  use("  - {name: r, per: ip, limit: 1000/day}");
  passed(3, {.ip = "192.0.2.1"});
  go_on(kHour * 24);
  passed(4, {.ip = "192.0.2.1"});
  const auto saved = counting.unsaved_spending();
  ASSERT_EQ(saved->size(), 2U);
  Gate hiding(limiter, {.key_names = KeyNames::hashed, .spending = {.subjects = 10}});
  for (const SavedSpending& day : *saved) ASSERT_TRUE(hiding.take_spending(day.text));
  ASSERT_TRUE(hiding.apply(*parse_policy("rules: [{name: r, per: ip, limit: 1000/day}]", "t")));
  ASSERT_TRUE(hiding.check({.ip = "192.0.2.1", .cost = 2}));
  const auto hidden = hiding.unsaved_spending();
  ASSERT_EQ(hidden->size(), 2U) << "so that no file names them any longer";
  for (const SavedSpending& day : *hidden) EXPECT_EQ(day.text.find("192.0"), std::string::npos) << day.text;
  const std::vector<std::string> others = {(*saved)[0].text};
  const auto report = hiding.spending({.subject = "ip:192.0.2.1"}, others);
  ASSERT_EQ(report->rows.size(), 2U);
  EXPECT_EQ(report->rows[0].spent, 6);
  EXPECT_EQ(report->rows[1].spent, 6);
}

// By requests alone, without anybody who asks or writes.
TEST_F(SpendingTest, DaysAreClosedByWhoComesNext) {
  use("  - {name: r, per: user, limit: 1000/day}");
  for (int day = 0; day < 5; ++day) {
    for (int user = 0; user < 900; ++user) ASSERT_EQ(passed(1, {.user = std::to_string(user)}), 1);
    go_on(kHour * 24);
  }
  const SpendingReport top = report({.top = 1'000});
  EXPECT_EQ(top.rows.size(), 900U);
  for (const Spending& row : top.rows) EXPECT_EQ(row.spent, 2) << "today and two days before are known";
}

TEST_F(SpendingTest, SaysWhatIsWrongWithAQuestion) {
  const auto wrong = [&](const SpendingQuery& query) { return counting.spending(query).error().message; };
  EXPECT_NE(wrong({.subject = "42"}).find("user:42"), std::string::npos);
  EXPECT_NE(wrong({.from = "yesterday"}).find("is not a day"), std::string::npos);
  EXPECT_NE(wrong({.from = "2026-09-22", .to = "2026-09-21"}).find("is after"), std::string::npos);
  EXPECT_EQ(gate.spending({}).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace weir::test
