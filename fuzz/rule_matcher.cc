// Fuzzes the matching of rules: the bytes choose a policy and requests from tests/policy_world.h, and the rulebook must
// find the same limits as the slow matcher.
//
// The policy must also be the same after printing and parsing it. tests/matcher_test.cc tests rules that are enforced
// for a part of their keys.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "fuzz.h"
#include "policy/rulebook.h"
#include "policy_world.h"
#include "slow_matcher.h"

namespace {

using namespace weir;
using test::SlowBill;

void add_charge(const policy::BookLimit& limit, const Charge& charge, std::vector<test::SlowCharge>& out) {
  out.push_back(
      {std::string(limit.rule_name()), std::string(limit.quota_text()), std::string(charge.key), charge.cost});
}

SlowBill::Reason reason_of(const policy::Bill& bill) {
  switch (bill.reason) {
    case policy::Bill::Reason::no_rule:
      return SlowBill::Reason::no_rule;
    case policy::Bill::Reason::limits:
      return SlowBill::Reason::limits;
    case policy::Bill::Reason::skipped:
      return SlowBill::Reason::skipped;
    case policy::Bill::Reason::exempt:
      return SlowBill::Reason::exempt;
    case policy::Bill::Reason::missing:
      return SlowBill::Reason::missing;
    case policy::Bill::Reason::too_many:
      return SlowBill::Reason::too_many;
    case policy::Bill::Reason::ambiguous:
      break;
  }
  return SlowBill::Reason::ambiguous;
}

// The bill in the types of the slow matcher.
SlowBill to_slow(const policy::Rulebook& book, const policy::Bill& bill) {
  SlowBill out{.reason = reason_of(bill), .counts_denied = bill.counts_denied};
  if (out.reason == SlowBill::Reason::exempt || out.reason == SlowBill::Reason::missing) {
    out.rule = book.policy().rules[bill.rule].name;
  }
  for (std::size_t i = 0; i < bill.charges.size(); ++i) add_charge(*bill.limits[i], bill.charges[i], out.charges);
  for (const policy::ShadowBill& shadow : bill.shadows) {
    for (std::uint32_t i = 0; i < shadow.charges.size(); ++i) {
      add_charge(shadow.limits[i], shadow.charges[i], out.shadows);
    }
  }
  return out;
}

}  // namespace

void fuzz(std::string_view input) {
  test::Dice dice(std::span(reinterpret_cast<const std::uint8_t*>(input.data()), input.size()));
  Policy policy = random_policy(dice, {.rules_max = 6});
  for (Rule& rule : policy.rules) {
    if (rule.percent > 0) rule.percent = 100;
  }
  if (policy.rules.empty()) return;
  const auto read = parse_policy(to_yaml(policy), "printed");
  if (!read) std::fprintf(stderr, "%s\n%s\n", read.error().message.c_str(), to_yaml(policy).c_str());
  WEIR_ASSERT(read.has_value());
  WEIR_ASSERT(*read == policy);

  const auto book = policy::Rulebook::make(policy, [](const Quota& quota) { return compile(quota); });
  WEIR_ASSERT(book.has_value());
  test::Referee referee;
  for (int i = 0; i < 20; ++i) {
    const test::OwnedRequest owned = random_request(dice);
    const Request request = owned.view();
    policy::Facts facts(request, (*book)->reading());
    WEIR_ASSERT(!facts.refuse());
    policy::Bill bill;
    (*book)->bill(facts, test::kWorldNow, bill);
    const auto slow =
        test::slow_bill(policy, request, test::kWorldNow, [](const Rule&, const test::SlowReading&) { return true; });
    if (!slow) continue;
    const std::string difference = referee.difference(*slow, to_slow(**book, bill));
    if (!difference.empty()) {
      std::fprintf(stderr, "%s\n%s%s\n", difference.c_str(), to_yaml(policy).c_str(), owned.text().c_str());
    }
    WEIR_ASSERT(difference.empty());
    if (dice.is_spent()) break;
  }
}
