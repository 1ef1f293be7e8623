// Fuzzes the matching of rules: the bytes choose a policy and requests of the small world of tests/policy_world.h, and
// the rulebook must name the limits that the slow matcher names.
//
// The policy also prints as a text that reads the same, since it is one that the parser could have made. Rules that are
// enforced for a part of their keys are left to tests/matcher_test.cc.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "policy/rulebook.h"
#include "policy_world.h"
#include "slow_matcher.h"

namespace {

using namespace weir;
using test::SlowBill;

void add_charge(const BookLimit& limit, const Charge& charge, std::vector<test::SlowCharge>& out) {
  out.push_back(
      {std::string(limit.rule_name()), std::string(limit.quota_text()), std::string(charge.key), charge.cost});
}

SlowBill::Reason reason_of(const Bill& bill) {
  switch (bill.reason) {
    case Bill::Reason::no_rule:
      return SlowBill::Reason::no_rule;
    case Bill::Reason::limits:
      return SlowBill::Reason::limits;
    case Bill::Reason::skipped:
      return SlowBill::Reason::skipped;
    case Bill::Reason::exempt:
      return SlowBill::Reason::exempt;
    case Bill::Reason::missing:
      return SlowBill::Reason::missing;
    case Bill::Reason::too_many:
      return SlowBill::Reason::too_many;
    case Bill::Reason::ambiguous:
      break;
  }
  return SlowBill::Reason::ambiguous;
}

// A bill in the words of the slow matcher.
SlowBill told(const Rulebook& book, const Bill& bill) {
  SlowBill out{.reason = reason_of(bill), .counts_denied = bill.counts_denied};
  if (out.reason == SlowBill::Reason::exempt || out.reason == SlowBill::Reason::missing) {
    out.rule = book.policy().rules[bill.rule].name;
  }
  for (std::size_t i = 0; i < bill.charges.size(); ++i) add_charge(*bill.limits[i], bill.charges[i], out.charges);
  for (const ShadowBill& shadow : bill.shadows) {
    for (std::uint32_t i = 0; i < shadow.charges.size(); ++i) {
      add_charge(shadow.limits[i], shadow.charges[i], out.shadows);
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  test::Dice dice(std::span(data, size));
  Policy policy = random_policy(dice, {.rules_max = 6});
  for (Rule& rule : policy.rules) {
    if (rule.percent > 0) rule.percent = 100;
  }
  if (policy.rules.empty()) return 0;
  const auto read = parse_policy(to_yaml(policy), "printed");
  if (!read) std::fprintf(stderr, "%s\n%s\n", read.error().message.c_str(), to_yaml(policy).c_str());
  WEIR_ASSERT(read.has_value());
  WEIR_ASSERT(*read == policy);

  const auto book = Rulebook::make(policy, [](const Quota& quota) { return compile(quota); });
  WEIR_ASSERT(book.has_value());
  test::Referee referee;
  for (int i = 0; i < 20; ++i) {
    const test::OwnedRequest owned = random_request(dice);
    const Request request = owned.view();
    Facts facts(request, (*book)->reading());
    WEIR_ASSERT(!facts.refuse());
    Bill bill;
    (*book)->bill(facts, test::kWorldNow, bill);
    const auto slow =
        test::slow_bill(policy, request, test::kWorldNow, [](const Rule&, const test::SlowReading&) { return true; });
    if (!slow) continue;
    const std::string difference = referee.difference(*slow, told(**book, bill));
    if (!difference.empty()) {
      std::fprintf(stderr, "%s\n%s%s\n", difference.c_str(), to_yaml(policy).c_str(), owned.text().c_str());
    }
    WEIR_ASSERT(difference.empty());
    if (dice.is_spent()) break;
  }
  return 0;
}
