// The rulebook against the slow matcher. On random policies and requests both find the same limits, in the same order,
// at the same cost, and count the same requests together. The slow matcher's own parts are compared with cases worked
// out by hand, or both could have the same error.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "policy/rulebook.h"
#include "policy_world.h"
#include "sanitized.h"
#include "seed.h"
#include "slow_matcher.h"
#include "slow_path.h"

namespace weir {
namespace {

using test::Dice;
using test::OwnedRequest;
using test::slow_bill;
using test::SlowBill;

std::shared_ptr<const policy::Rulebook> book_of(const Policy& policy) {
  return policy::Rulebook::make(policy, [](const Quota& quota) { return compile(quota); }).value();
}

void add_charge(const policy::BookLimit& limit, const Charge& charge, std::vector<test::SlowCharge>& out) {
  out.push_back(
      {std::string(limit.rule_name()), std::string(limit.quota_text()), std::string(charge.key), charge.cost});
}

// A bill in the words of the slow matcher.
SlowBill told(const policy::Rulebook& book, const policy::Bill& bill) {
  using Reason = SlowBill::Reason;
  const std::map<policy::Bill::Reason, Reason> reasons = {
      {policy::Bill::Reason::no_rule, Reason::no_rule},     {policy::Bill::Reason::limits, Reason::limits},
      {policy::Bill::Reason::skipped, Reason::skipped},     {policy::Bill::Reason::exempt, Reason::exempt},
      {policy::Bill::Reason::missing, Reason::missing},     {policy::Bill::Reason::too_many, Reason::too_many},
      {policy::Bill::Reason::ambiguous, Reason::ambiguous},
  };
  SlowBill out{.reason = reasons.at(bill.reason), .counts_denied = bill.counts_denied};
  const bool has_rule = out.reason == Reason::exempt || out.reason == Reason::missing;
  if (has_rule) out.rule = book.policy().rules[bill.rule].name;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) add_charge(*bill.limits[i], bill.charges[i], out.charges);
  for (const policy::ShadowBill& shadow : bill.shadows) {
    for (std::uint32_t i = 0; i < shadow.charges.size(); ++i) {
      add_charge(shadow.limits[i], shadow.charges[i], out.shadows);
    }
  }
  return out;
}

// Marks
//
// Whether a rule of the policy is enforced for a request's key. Which keys those are is the rulebook's own choice; the
// key is found by a policy in which the rule stands alone and has one limit, whose key is the rule's.
class Marks {
 public:
  explicit Marks(const Policy& policy) : policy_(policy) {}

  bool is_enforced(Rule rule, const Request& request, const test::SlowReading& reading) {
    const int percent = std::exchange(rule.percent, 100);
    auto& book = books_[rule.name];
    if (book == nullptr) {
      rule.match.otherwise = rule.unlimited = rule.phase_by_key = false;
      rule.limits = {{parse_quota("1/s").value(), "1/s"}};
      Policy alone = policy_;
      alone.rules = {std::move(rule)};
      book = book_of(alone);
    }
    policy::Facts facts(request, book->reading());
    const auto is_chosen = [&] { return facts.path() == reading.path && facts.query() == reading.query; };
    for (std::size_t i = 0; i < facts.readings() && !is_chosen(); ++i) facts.choose_reading(i);
    policy::Bill bill;
    book->bill_reading(facts, test::kWorldNow, bill);
    WEIR_ASSERT(bill.charges.size() == 1);
    return static_cast<int>(policy::key_mark(bill.charges[0].key) % 100) < percent;
  }

 private:
  const Policy& policy_;
  std::map<std::string, std::shared_ptr<const policy::Rulebook>> books_;
};

// How often each reason was found. Without any, the test would prove nothing.
struct Counts {
  std::map<SlowBill::Reason, int> reasons;
  int charges = 0, shadows = 0;
};

std::string difference_of(const Policy& policy, const policy::Rulebook& book, Marks& marks, const OwnedRequest& owned,
                          test::Referee& referee, SlowBill& slow) {
  const Request request = owned.view();
  policy::Facts facts(request, book.reading());
  if (const auto refused = facts.refuse()) return refused->message;
  policy::Bill bill;
  book.bill(facts, test::kWorldNow, bill);
  const auto is_enforced = [&](const Rule& rule, const test::SlowReading& reading) {
    return marks.is_enforced(rule, request, reading);
  };
  const auto found = test::slow_bill(policy, request, test::kWorldNow, is_enforced);
  if (!found) return {};
  slow = *found;
  return referee.difference(slow, told(book, bill));
}

// The same difference with as few rules as possible, for the person who reads the failure.
std::string smallest(Policy policy, const OwnedRequest& owned) {
  std::string difference;
  for (std::size_t i = 0; i < policy.rules.size();) {
    Policy less = policy;
    less.rules.erase(less.rules.begin() + static_cast<std::ptrdiff_t>(i));
    test::Referee referee;
    SlowBill slow;
    Marks marks(less);
    const std::string still = difference_of(less, *book_of(less), marks, owned, referee, slow);
    if (still.empty()) {
      ++i;
    } else {
      difference = still;
      policy = std::move(less);
    }
  }
  return difference + '\n' + to_yaml(policy) + owned.text();
}

void compare_many(std::uint64_t seed, int policies, int requests, test::PolicySize size, Counts& counts) {
  test::Referee referee;
  for (int i = 0; i < policies; ++i) {
    Dice dice(seed + static_cast<std::uint64_t>(i));
    const Policy policy = test::random_policy(dice, size);
    const auto book = book_of(policy);
    Marks marks(policy);
    for (int k = 0; k < requests; ++k) {
      const OwnedRequest owned = test::random_request(dice);
      SlowBill slow;
      const std::string difference = difference_of(policy, *book, marks, owned, referee, slow);
      ASSERT_EQ(difference, "") << "policy " << i << "; with the fewest rules: " << smallest(policy, owned);
      ++counts.reasons[slow.reason];
      counts.charges += static_cast<int>(slow.charges.size());
      counts.shadows += static_cast<int>(slow.shadows.size());
    }
  }
}

TEST(Matcher, AgreesWithTheSlowOne) {
  Counts counts;
  constexpr int kPart = test::kIsSanitized ? 6 : 1;  // of which this is one
  compare_many(test::base_seed(), 3'000 / kPart, 40, {}, counts);
  if (HasFatalFailure()) return;
  for (const auto reason : {SlowBill::Reason::no_rule, SlowBill::Reason::limits, SlowBill::Reason::skipped,
                            SlowBill::Reason::exempt, SlowBill::Reason::missing}) {
    EXPECT_GT(counts.reasons[reason], 500 / kPart) << "reason " << static_cast<int>(reason);
  }
  EXPECT_GT(counts.charges, 50'000 / kPart);
  EXPECT_GT(counts.shadows, 5'000 / kPart);
}

TEST(Matcher, AgreesWithTheSlowOneAboutManyRules) {
  Counts counts;
  compare_many(test::base_seed(), 60, 40, {.rules_max = 200, .limits_max = 8, .special_one_in = 2'000}, counts);
  if (HasFatalFailure()) return;
  EXPECT_GT(counts.reasons[SlowBill::Reason::too_many], 20);
  EXPECT_GT(counts.reasons[SlowBill::Reason::limits], 20);
}

TEST(SlowMatcher, NormalisesPathsAsAPersonWould) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"/", "/"},
      {"/a/", "/a"},
      {"//A//b", "/a/b"},
      {"/a/./b/../c", "/a/c"},
      {"/../..", "/"},
      {"/a%2Fb", "/a/b"},
      {"/a%252fb", "/a%2fb"},
      {"/%zz%", "/%zz%"},
      {"/a;x=1/b;y", "/a/b"},
      {"/a/..;/b", "/b"},
      {"\\a\\b", "/a/b"},
      {"http://host/a?b/c", "/a"},
      {"http://host?x", "/"},
      {"a/b#c", "/a/b"},
  };
  for (const auto& [target, path] : cases) EXPECT_EQ(test::slow_read(target, false).path, path) << target;
  EXPECT_EQ(test::slow_read("/A", true).path, "/A");
}

TEST(SlowMatcher, MatchesPatternsAsAPersonWould) {
  const std::pair<const char*, const char*> hits[] = {
      {"/", "/"},       {"/**", "/"},       {"/**", "/a/b"},       {"/a/*", "/a/b"},    {"/a*b", "/ab"},
      {"/a*b", "/axb"}, {"/{x}/b", "/a/b"}, {"/**/b/**", "/a/b"},  {"/a%2ab", "/a*b"},  {"/**/*", "/a"},
      {"/*", "/a"},     {"/a/**", "/a"},    {"/**/a/*", "/a/a/b"}, {"/*a*b", "/xaxxb"},
  };
  const std::pair<const char*, const char*> misses[] = {
      {"/", ""},   {"/**", ""},    {"/", "/a"},   {"/a/*", "/a"},     {"/a/*", "/a/b/c"}, {"/a*b", "/ba"},
      {"/*", "/"}, {"/**/*", "/"}, {"/a", "/ab"}, {"/a%2ab", "/axb"}, {"/a/**/b", "/a"},  {"/{x}", "/a/b"},
  };
  for (const auto& [pattern, path] : hits)
    EXPECT_TRUE(test::slow_pattern_matches(pattern, path)) << pattern << ' ' << path;
  for (const auto& [pattern, path] : misses)
    EXPECT_FALSE(test::slow_pattern_matches(pattern, path)) << pattern << ' ' << path;
  EXPECT_EQ(test::slow_capture("/**/a/{x}/**", "/a/b/a/c", "x"), "b");
  EXPECT_EQ(test::slow_capture("/{x}/{y}", "/a/b", "y"), "b");
  EXPECT_EQ(test::slow_capture("/{x}", "/a", "y"), std::nullopt);
}

TEST(SlowMatcher, FindsTheLimitsThatAPersonWould) {
  const Policy policy = parse_policy(
                            "trusted_proxies: [10.0.0.0/8]\n"
                            "rules:\n"
                            "- {name: path, match: {path: '/u/{id}'}, per: [ip, '{id}'], limits: [1/s, 5/min]}\n"
                            "- {name: rest, match: otherwise, per: [ip, path], limit: 2/s, cost: 3}\n"
                            "- {name: quiet, per: user, limit: 1/s, mode: shadow}\n",
                            "test.yaml")
                            .value();
  const Attribute headers[] = {{"X-Forwarded-For", "6.6.6.6, 192.0.2.1"}};
  const auto none = [](const Rule&, const test::SlowReading&) { return false; };
  const SlowBill named =
      test::slow_bill(policy, {.user = "u", .ip = "10.0.0.9", .path = "/U/7/", .headers = headers}, 0, none).value();
  ASSERT_EQ(named.charges.size(), 2U);
  EXPECT_EQ(named.charges[0].quota, "1/s");
  EXPECT_EQ(named.charges[1].quota, "5/min");
  EXPECT_NE(named.charges[0].key.find("1:7 "), std::string::npos) << named.charges[0].key;
  ASSERT_EQ(named.shadows.size(), 1U);
  const SlowBill other = test::slow_bill(policy, {.ip = "192.0.2.1", .path = "/x"}, 0, none).value();
  ASSERT_EQ(other.charges.size(), 1U);
  EXPECT_EQ(other.charges[0].rule, "rest");
  EXPECT_EQ(other.charges[0].cost, 3);
  EXPECT_EQ(test::slow_bill(policy, {.ip = "192.0.2.1", .path = "/y"}, 0, none)->charges[0].key, other.charges[0].key);
  EXPECT_NE(test::slow_bill(policy, {.ip = "192.0.2.2", .path = "/x"}, 0, none)->charges[0].key, other.charges[0].key);
}

}  // namespace
}  // namespace weir
