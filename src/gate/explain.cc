// Explains a request rule by rule. See explain.h and weir/gate.h. Any thread.
//
// The rulebook itself makes the bill, so an explanation cannot differ from a check. This file only finds the reasons
// why the other rules do not apply.
#include "gate/explain.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm/binding.h"
#include "algorithm/division.h"
#include "base/nearest.h"

namespace weir::gate {
namespace {

std::string permits_text(std::int64_t n) { return std::to_string(n) + (n == 1 ? " permit" : " permits"); }

// The config says 49.9875/s, Weir counts 49.98/s: the error in millionths, rounded down.
std::string rate_error(const Limit& limit) {
  // Exact iff permits * weight == period * rate.
  const algorithm::Wide wanted = algorithm::Wide{limit.permits} * limit.weight,
                        given = algorithm::Wide{limit.period_us} * limit.rate;
  if (wanted <= given) return {};
  const auto millionths = static_cast<std::int64_t>((wanted - given) * 1'000'000 / wanted);
  const std::string whole = std::to_string(millionths / 10'000), part = std::to_string(10'000 + millionths % 10'000);
  return "; refills " + whole + '.' + part.substr(1) + " % slower than written, the nearest rate that Weir can count";
}

// The period for a sentence: "in any second", "in any 5min".
std::string period_of(const Quota& quota) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"s", "second"}, {"min", "minute"}, {"h", "hour"}};
  std::string text = to_string(quota);
  text.erase(0, text.find('/') + 1);
  text.resize(std::min(text.size(), text.find(" burst")));
  for (const auto& [unit, word] : kWords) {
    if (text == unit) return std::string(word);
  }
  return text;
}

// The result that one charge would have.
struct OneOutcome {
  const policy::BookLimit* limit;
  Charge charge;
  bool in_shadow;
  Decision decision;
};

// All charges of a bill in its order, those in shadow mode last. Of equal denials the first binds, as in a check.
Result<std::vector<OneOutcome>> outcomes_of(const policy::Bill& bill, Limiter& limiter) {
  std::vector<OneOutcome> out;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) out.push_back({bill.limits[i], bill.charges[i], false, {}});
  for (const policy::ShadowBill& shadow : bill.shadows) {
    for (std::uint32_t i = 0; i < shadow.charges.size(); ++i) {
      out.push_back({shadow.limits + i, shadow.charges[i], true, {}});
    }
  }
  for (OneOutcome& one : out) {
    auto decision = limiter.preview(one.charge);
    if (!decision) return fail(std::move(decision.error()));
    one.decision = *decision;
  }
  return out;
}

// The denial with the longest wait, else the limit with the smallest part left; null if there is no limit.
const OneOutcome* binding_of(const std::vector<OneOutcome>& outcomes) {
  std::vector<Decision> decisions;  // of the enforced limits, which come first
  for (const OneOutcome& one : outcomes) {
    if (!one.in_shadow) decisions.push_back(one.decision);
  }
  return decisions.empty() ? nullptr : &outcomes[algorithm::binding_of(decisions)];
}

std::string summary_of(const Explanation& out, const policy::Bill& bill, const policy::Rulebook& book) {
  switch (bill.reason) {
    case policy::Bill::Reason::skipped:
      return "passes: `skip` exempts it from all rules";
    case policy::Bill::Reason::exempt:
      if (out.allowed) return "passes: rule " + book.rule(bill.rule).rule->name + " is unlimited";
      break;
    case policy::Bill::Reason::missing:
      return "denied: rule " + book.rule(bill.rule).rule->name + " requires an attribute that the request lacks";
    case policy::Bill::Reason::too_many:
      return "an error: more than " + std::to_string(kChargesMax) + " limits apply to it";
    case policy::Bill::Reason::ambiguous:
      return "denied: its path is ambiguous, with more readings than Weir can charge";
    case policy::Bill::Reason::no_rule:
      if (bill.free.size() > 0) return "passes: its plan is unlimited";
      return "passes: no rule applies";
    case policy::Bill::Reason::limits:
      break;
  }
  return (out.allowed ? "passes; the tightest limit is " : "denied by ") + out.binding;
}

// The part of the summary about an unavailable Redis; empty if Redis is available.
std::string away_of(const std::vector<OneOutcome>& outcomes, const OneOutcome* binding) {
  const bool is_away =
      std::ranges::any_of(outcomes, [](const OneOutcome& one) { return is_fallback(one.decision.decided_by); });
  if (!is_away) return {};
  const bool is_closed =
      binding != nullptr && binding->decision.decided_by == DecidedBy::closed && !binding->decision.allowed;
  return is_closed ? ": Redis is unavailable, and the rule's on_backend_error is closed"
                   : "; Redis is unavailable, so each rule's on_backend_error applies";
}

// Why a rule that matches the request, and lacks no attribute, is not on its bill.
std::string passed_over(const policy::Rulebook& book, const policy::Bill& bill, const std::string& path_rule) {
  if (bill.reason == policy::Bill::Reason::skipped) return "the request is skipped";
  if (bill.reason == policy::Bill::Reason::exempt) return "rule " + book.rule(bill.rule).rule->name + " is unlimited";
  if (bill.reason == policy::Bill::Reason::too_many) return "too many limits apply to this request";
  if (bill.reason == policy::Bill::Reason::ambiguous) return "the path is ambiguous";
  return "rule " + path_rule + ", which names a path, applies";
}

// The rules that a bill charges, enforced or in shadow mode, or lets pass; each rule once.
std::vector<std::uint32_t> billed_rules(const policy::Bill& bill) {
  std::vector<std::uint32_t> out;
  for (const policy::BookLimit* limit : bill.limits) out.push_back(limit->rule);
  for (const policy::ShadowBill& shadow : bill.shadows) out.push_back(shadow.rule);
  for (const policy::FreeCharge& free : bill.free) out.push_back(free.rule);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string outcome_of(const policy::Bill& bill, const policy::Rulebook& book) {
  switch (bill.reason) {
    case policy::Bill::Reason::skipped:
      return "skipped";
    case policy::Bill::Reason::exempt:
      return "unlimited by rule " + book.rule(bill.rule).rule->name;
    case policy::Bill::Reason::missing:
      return "denied: rule " + book.rule(bill.rule).rule->name + " requires an attribute that the request lacks";
    case policy::Bill::Reason::too_many:
    case policy::Bill::Reason::ambiguous:
      return "more limits than can be charged";
    case policy::Bill::Reason::no_rule:
      return bill.free.size() > 0 ? "its plan is unlimited" : "no rule applies";
    case policy::Bill::Reason::limits:
      break;
  }
  return "charged";
}

RuleExplanation explain_rule(const policy::Rulebook& book, std::uint32_t number, policy::Facts& facts,
                             std::int64_t now) {
  const policy::BookRule& rule = book.rule(number);
  RuleExplanation out{.rule = rule.rule->name};
  out.reason = book.mismatch(number, facts, now);
  if (!out.reason.empty()) return out;
  if (const auto lacking = book.lacking(number, facts)) {
    out.reason = "the request has no " + to_string(*lacking) + (rule.required ? ", which the rule requires" : "");
  } else {
    out.key = book.key_text(number, facts);
  }
  return out;
}

// Explains each rule for the path reading that it applies to, and each reading if there are several.
void explain_readings(const policy::Rulebook& book, policy::Facts& facts, std::int64_t now, Explanation& out) {
  facts.choose_reading(0);
  for (std::uint32_t i = 0; i < book.size(); ++i) out.rules.push_back(explain_rule(book, i, facts, now));
  if (facts.readings() == 1) return;
  std::vector<bool> is_billed(book.size());
  for (std::size_t i = 0; i < facts.readings(); ++i) {
    facts.choose_reading(i);
    policy::Bill bill;
    book.bill_reading(facts, now, bill);
    ReadingExplanation& reading = out.readings.emplace_back();
    reading.path = facts.path();
    reading.outcome = outcome_of(bill, book);
    for (const std::uint32_t number : billed_rules(bill)) {
      RuleExplanation rule = explain_rule(book, number, facts, now);
      reading.charges.push_back(rule.rule + " per " + rule.key);
      RuleExplanation& before = out.rules[number];
      const bool is_known = is_billed[number] && before.key.find(rule.key) != before.key.npos;
      if (is_known) continue;
      if (is_billed[number]) rule.key = before.key + " and " + rule.key;
      before = std::move(rule);
      is_billed[number] = true;
    }
  }
  facts.choose_reading(0);
}

}  // namespace

std::string worst_case(const Quota& quota, const Limit& limit) {
  const std::string period = period_of(quota);
  if (limit.permits == 0) return "nothing: the rule is a ban";
  switch (limit.algorithm) {
    case Algorithm::fixed_window:
      return "up to " + permits_text(2 * limit.permits) + " at once across a window boundary, " +
             std::to_string(limit.permits) + " from each side";
    case Algorithm::sliding_log: {
      std::string out = "never more than " + permits_text(limit.permits) + " in any " + period;
      if (limit.permits > limit.events_max) out += ", in at most " + std::to_string(limit.events_max) + " requests";
      return out;
    }
    case Algorithm::sliding_window:
      return "up to " + permits_text(2 * limit.permits) + " in any " + period +
             ", if the previous window's requests came at its end; " + std::to_string(limit.permits) +
             " with even traffic";
    case Algorithm::token_bucket:
    case Algorithm::leaky_meter:
      return "a burst of " + std::to_string(limit.capacity) + " at once, so up to " +
             permits_text(limit.capacity + limit.permits) + " in any " + period + rate_error(limit);
    case Algorithm::leaky_bucket:
      return "a queue of " + std::to_string(limit.capacity) + ", admitted at an even rate" + rate_error(limit);
    case Algorithm::concurrency:
      break;
  }
  return {};
}

std::string on_unavailable(const Limit& limit, Fallback fallback, std::uint32_t nodes) {
  if (limit.permits == 0 || limit.algorithm == Algorithm::concurrency) return {};
  if (fallback == Fallback::closed) return "nothing passes (closed)";
  const std::int64_t all = limit.capacity;
  const std::string each = fallback == Fallback::local ? ", each its share (local)" : ", each the whole limit (open)";
  if (nodes == 0) {
    return (fallback == Fallback::local ? "up to max(" + std::to_string(all) + ", N)"
                                        : "up to N x " + std::to_string(all)) +
           " on N servers" + each;
  }
  const std::int64_t most = fallback == Fallback::local ? std::max<std::int64_t>(all, nodes) : all * nodes;
  return "up to " + std::to_string(most) + " on " + std::to_string(nodes) + (nodes == 1 ? " server" : " servers") +
         each + "; after a failover of Redis, up to " + std::to_string(all) +
         " plus charges that were not yet replicated";
}

Result<Explanation> explain(const std::shared_ptr<const policy::Rulebook>& book, Limiter& limiter,
                            const Request& request) {
  Explanation out{.allowed = true, .summary = "passes: there are no rules"};
  if (book == nullptr) return out;
  policy::Facts facts(request, book->reading());
  if (auto wrong = facts.refuse()) return fail(std::move(*wrong));
  const std::int64_t now = limiter.now().count();
  policy::Bill bill;
  book->bill(facts, now, bill);
  const auto outcomes = outcomes_of(bill, limiter);
  if (!outcomes) return fail(outcomes.error());
  const OneOutcome* binding = binding_of(*outcomes);

  facts.choose_reading(0);
  out.path = facts.path();
  if (facts.ip() != nullptr) out.client_ip = base::to_string(*facts.ip());
  if (binding != nullptr) out.binding = binding->limit->name;
  const bool is_denied = binding != nullptr && !binding->decision.allowed;
  out.allowed = !is_denied && bill.reason != policy::Bill::Reason::missing &&
                bill.reason != policy::Bill::Reason::too_many && bill.reason != policy::Bill::Reason::ambiguous;
  out.summary = summary_of(out, bill, *book) + away_of(*outcomes, binding);

  const bool is_shared = limiter.nodes() > 0 || book->policy().store.starts_with("redis");
  std::string path_rule;  // the rule that keeps `otherwise` from applying
  if (bill.reason == policy::Bill::Reason::missing) path_rule = book->rule(bill.rule).rule->name;
  for (const OneOutcome& one : *outcomes) {
    const policy::BookRule& rule = book->rule(one.limit->rule);
    if (!one.in_shadow && rule.names_path && path_rule.empty()) path_rule = rule.rule->name;
  }
  for (const policy::FreeCharge& one : bill.free) {
    const policy::BookRule& rule = book->rule(one.rule);
    if (rule.names_path && path_rule.empty()) path_rule = rule.rule->name;
  }
  explain_readings(*book, facts, now, out);
  for (const OneOutcome& one : *outcomes) {
    const policy::BookLimit& limit = *one.limit;
    RuleExplanation& rule = out.rules[limit.rule];
    rule.applies = true;
    rule.reason = one.in_shadow ? "in shadow" : "enforced";
    rule.limits.push_back(
        {.quota = std::string(limit.quota_text()),
         .algorithm = std::string(to_string(limit.limit->algorithm)),
         .cost = one.charge.cost,
         .decision = one.decision,
         .worst_case = worst_case(*limit.written, *limit.limit),
         .on_unavailable = is_shared ? on_unavailable(*limit.limit, one.charge.fallback, limiter.nodes()) : ""});
  }
  for (const policy::FreeCharge& one : bill.free) {
    out.rules[one.rule].applies = true;
    out.rules[one.rule].reason = book->rule(one.rule).unlimited ? "unlimited" : "its plan is unlimited";
  }
  for (std::uint32_t i = 0; i < book->size(); ++i) {
    RuleExplanation& rule = out.rules[i];
    if (!rule.reason.empty()) continue;
    const bool is_seen = book->rule(i).unlimited && bill.reason != policy::Bill::Reason::skipped;
    rule.applies = is_seen && book->rule(i).mode == Mode::enforce;
    rule.reason = rule.applies ? "unlimited" : is_seen ? "in shadow" : passed_over(*book, bill, path_rule);
  }
  return out;
}

}  // namespace weir::gate
