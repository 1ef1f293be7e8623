// Tests the rulebook's index and keys by hand-made cases. tests/matcher_test.cc compares it with a slow matcher on
// random rules.
#include "policy/rulebook.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "algorithm/limit.h"
#include "policy/policy_reader.h"

namespace weir::policy {
namespace {

std::shared_ptr<const Rulebook> book_of(const std::string& text) {
  const auto compile = [](const Quota& quota) { return algorithm::compile_limit(quota, nullptr); };
  std::vector<TextProblem> problems;
  Policy policy = read_policy(text, problems, compile);
  EXPECT_EQ(problem_lines("w", problems), "");
  return Rulebook::make(std::move(policy), compile).value();
}

// Returns the names of the billed rules, in the order of the bill.
std::string billed(const Rulebook& book, const Request& request) {
  Facts facts(request, book.reading());
  Bill bill;
  book.bill(facts, 0, bill);
  std::string out;
  for (const BookLimit* limit : bill.limits) {
    out += (out.empty() ? "" : " ") + std::string(limit->rule_name());
  }
  return out;
}

std::string key_of(const Rulebook& book, const Request& request) {
  Facts facts(request, book.reading());
  Bill bill;
  book.bill(facts, 0, bill);
  return bill.charges.size() == 0 ? "" : std::string(bill.charges[0].key);
}

TEST(Rulebook, FindsRulesByPathByValueAndOneByOneInTheOrderOfTheFile) {
  const auto book = book_of(
      "rules:\n"
      "- {name: glob, match: {user: 'a*'}, per: global, limit: 1/s}\n"
      "- {name: tenant, match: {tenant: [x, y, x]}, per: global, limit: 1/s}\n"
      "- {name: deep, match: {path: [/a/**, /a/b]}, per: global, limit: 1/s}\n"
      "- {name: all, per: global, limit: 1/s}\n"
      "- {name: exact, match: {path: /a/b, tenant: y}, per: global, limit: 1/s}\n"
      "- {name: user, match: {user: ab, tenant: y}, per: global, limit: 1/s}\n"
      "- {name: rest, match: otherwise, per: global, limit: 1/s}\n");
  EXPECT_EQ(billed(*book, {.user = "ab", .tenant = "y", .path = "/a/b"}), "glob tenant deep all exact user");
  EXPECT_EQ(billed(*book, {.user = "b", .tenant = "x", .path = "/a"}), "tenant deep all");
  EXPECT_EQ(billed(*book, {.user = "ab", .path = "/b"}), "glob all rest");
  EXPECT_EQ(billed(*book, {}), "all rest");
}

TEST(Rulebook, FindsOneOfManyRules) {
  std::string text = "rules:\n";
  for (int i = 0; i < 2'000; ++i) {
    const std::string n = std::to_string(i);
    text += "- {name: p" + n + ", match: {path: /p/" + n + "}, per: global, limit: 1/s}\n";
    text += "- {name: t" + n + ", match: {tenant: t" + n + "}, per: global, limit: 1/s}\n";
  }
  const auto book = book_of(text);
  EXPECT_EQ(billed(*book, {.tenant = "t77", .path = "/p/1234"}), "t77 p1234");
  EXPECT_EQ(billed(*book, {.tenant = "t2000", .path = "/p/2000"}), "");
}

TEST(Rulebook, EveryRuleSubjectAndWindowHasItsOwnKey) {
  const auto one = book_of("rules: [{name: a, per: [tenant, user], limit: 1/s}]");
  const auto other = book_of("rules: [{name: b, per: [tenant, user], limit: 1/s}]");
  const auto turned = book_of("rules: [{name: a, per: [user, tenant], limit: 1/s}]");
  const auto several = book_of("rules: [{name: a, per: [tenant, user], limits: [1/s, 9/min]}]");
  std::set<std::string> keys;
  for (const auto& book : {one, other, turned, several}) {
    for (const Request& request : {Request{.user = "a", .tenant = "bc"}, Request{.user = "ab", .tenant = "c"},
                                   Request{.user = "bc", .tenant = "a"}}) {
      EXPECT_TRUE(keys.insert(key_of(*book, request)).second) << "two charges share a key";
    }
  }
  EXPECT_EQ(key_of(*one, {.user = "a"}), "") << "a tenant is missing";
}

TEST(Rulebook, KeepsKeysShortHoweverLongTheValues) {
  const auto book = book_of("rules: [{name: a, per: [user, tenant, plan, 'header:a', 'header:b'], limit: 1/s}]");
  const std::string huge(100'000, 'x');
  const Attribute headers[] = {{"a", huge}, {"b", huge}};
  const std::string key = key_of(*book, {.user = huge, .tenant = huge, .plan = huge, .headers = headers});
  EXPECT_GT(key.size(), 100U);
  EXPECT_LT(key.size(), 300U);
}

TEST(Rulebook, ExemptsOnlyWhereTheUnlimitedRuleApplies) {
  const auto book = book_of(
      "rules:\n"
      "- {name: vip, per: user, limit: unlimited}\n"
      "- {name: all, per: global, limit: 1/s}\n");
  EXPECT_EQ(billed(*book, {.user = "a"}), "");
  EXPECT_EQ(billed(*book, {.ip = "192.0.2.1"}), "all") << "the unlimited rule needs a user";
}

// A list of open paths, and a ban on all other paths: an exempt client must not be worse off than others.
TEST(Rulebook, APathCountsAsNamedEvenIfItsLimitIsLifted) {
  const auto book = book_of(
      "rules:\n"
      "- {name: office, match: {ip: 192.0.2.0/24}, limit: unlimited}\n"
      "- {name: search, match: {path: /search}, per: ip, limit: 1/s}\n"
      "- {name: closed, match: otherwise, limit: 0/s}\n");
  EXPECT_EQ(billed(*book, {.ip = "198.51.100.1", .path = "/search"}), "search");
  EXPECT_EQ(billed(*book, {.ip = "192.0.2.1", .path = "/search"}), "");
  EXPECT_EQ(billed(*book, {.ip = "192.0.2.1", .path = "/other"}), "closed");
}

TEST(Rulebook, IgnoresNegativeCosts) {
  const auto book = book_of("rules: [{name: a, per: global, limit: 9/s, cost: {header: x-cost, default: 2, max: 50}}]");
  for (const auto& [value, cost] :
       {std::pair("3", 3), {"-3", 2}, {"99999999999999999999", 50}, {"-99999999999999999999", 2}}) {
    const Attribute headers[] = {{"x-cost", value}};
    const Request request{.headers = headers};
    Facts facts(request, book->reading());
    Bill bill;
    book->bill(facts, 0, bill);
    EXPECT_EQ(bill.charges[0].cost, cost) << value;
  }
}

TEST(Rulebook, RefusesMoreLimitsThanTheMaximum) {
  std::string text = "rules:\n";
  for (int i = 0; i < 33; ++i)
    text += "- {name: r" + std::to_string(i) + ", match: {user: '*'}, per: global, limit: 1/s}\n";
  const auto book = book_of(text);
  Bill bill;
  const Request request{.user = "x"};
  Facts sound(request, book->reading());
  book->bill(sound, 0, bill);
  EXPECT_EQ(bill.reason, Bill::Reason::too_many);
}

Bill::Reason reason_of(const Rulebook& book, const Request& request) {
  Facts facts(request, book.reading());
  Bill bill;
  book.bill(facts, 0, bill);
  return bill.reason;
}

TEST(Rulebook, ChargesTheLimitsOfEveryReadingOfAPath) {
  const auto book = book_of(
      "skip: [/health, '/static/**']\n"
      "rules:\n"
      "- {name: login, match: {path: /api/login}, per: ip, limits: [5/minute, 50/hour]}\n"
      "- {name: search, match: {path: '/api/search/**'}, per: ip, limit: 9/s}\n"
      "- {name: open, match: {path: '/open/**'}, limit: unlimited}\n"
      "- {name: user, match: {path: '/users/{id}/**'}, per: '{id}', limit: 7/s}\n"
      "- {name: rest, match: otherwise, per: ip, limit: 100/minute}\n");
  const auto of = [&](std::string_view path) { return billed(*book, {.ip = "192.0.2.1", .path = path}); };
  EXPECT_EQ(of("/api/login"), "login login");
  EXPECT_EQ(of("/health#/../api/login"), "login login rest");
  EXPECT_EQ(of("//static/api/login"), "login login");
  EXPECT_EQ(of("//x/api/login"), "rest login login");
  EXPECT_EQ(of("/api/x/;/../../login"), "rest login login");
  EXPECT_EQ(of("/api/search/shoes\\..\\..\\..\\static"), "search");
  EXPECT_EQ(of("/open/x\\..\\..\\..\\static"), "");
  EXPECT_EQ(of("/open/x/..%2f..%2fapi/login"), "login login");
  EXPECT_EQ(of("/users/1/..%2f2/x"), "user user") << "the ids 2 and 1";
  EXPECT_EQ(of("/x;1"), "rest") << "both readings have one key";
}

TEST(Rulebook, SkipsOrExemptsOnlyIfEveryReadingAllowsIt) {
  using enum Bill::Reason;
  const auto book = book_of(
      "skip: [/health, '/static/**']\n"
      "rules:\n"
      "- {name: ban, match: {path: /open/secret}, limit: 0/second}\n"
      "- {name: need, match: {path: /need}, per: 'header:x-org', limit: 1/s, required: true}\n"
      "- {name: open, match: {path: '/open/**'}, limit: unlimited}\n");
  const auto of = [&](std::string_view path) { return reason_of(*book, {.path = path}); };
  EXPECT_EQ(of("/static/a;b"), skipped);
  EXPECT_EQ(of("/static/../static/a"), skipped);
  EXPECT_EQ(of("/health#x"), no_rule);
  EXPECT_EQ(of("/health\xA0"), no_rule);
  EXPECT_EQ(of("/static/x/..;/..;"), no_rule);
  EXPECT_EQ(of("http:/health"), no_rule);
  EXPECT_EQ(of("/open/a;b"), exempt);
  EXPECT_EQ(of("/open/../static/a"), exempt) << "one reading is skipped, the other is unlimited";
  EXPECT_EQ(of("/open/..;/x"), no_rule);
  EXPECT_EQ(of("/open/secret;x"), exempt);
  EXPECT_EQ(billed(*book, {.path = "/open/secret;x"}), "ban") << "the ban is charged, so the request is denied";
  EXPECT_EQ(of("/open/../need"), missing);
  EXPECT_EQ(of("/a;b\\c%2fd/../e%5cf%3bg/#/h//../i%00j%c0%afk"), ambiguous);
}

TEST(Rulebook, HasNoLimitsIfAnUnlimitedPlanAppliesInEveryReading) {
  const auto book = book_of(
      "plans: {default: gold, tiers: {gold: unlimited, free: 5/hour}}\n"
      "rules: [{name: api, per: user, limit: plan}]\n");
  EXPECT_EQ(reason_of(*book, {.user = "42", .path = "/a"}), Bill::Reason::no_rule);
  EXPECT_EQ(reason_of(*book, {.user = "42", .path = "/a;v=1"}), Bill::Reason::no_rule);
}

TEST(Rulebook, DeniesAPathWhoseReadingsChargeTooManyLimits) {
  std::string text = "rules:\n";
  for (const char* const place : {"a", "b"}) {
    for (int i = 0; i < 20; ++i) {
      const std::string name = place + std::to_string(i);
      text += "- {name: " + name + ", match: {path: '/" + place + "/**'}, per: global, limit: 1/s}\n";
    }
  }
  const auto book = book_of(text);
  EXPECT_EQ(reason_of(*book, {.path = "/a/x"}), Bill::Reason::limits);
  EXPECT_EQ(reason_of(*book, {.path = "/a/..%2fb/x"}), Bill::Reason::ambiguous);
  EXPECT_EQ(billed(*book, {.path = "/a/..%2fb/x"}), "");
}

}  // namespace
}  // namespace weir::policy
