// Explains a request rule by rule. See explain.h and weir/gate.h.
//
// What is on the bill is asked of the rulebook itself, so an explanation cannot say anything else than a check does;
// only the reasons against are found here.
#include "gate/explain.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "algorithm/division.h"
#include "algorithm/limit.h"
#include "nearest.h"

namespace weir {
namespace {

std::string permits_text(std::int64_t n) { return std::to_string(n) + (n == 1 ? " permit" : " permits"); }

// 49.9875/s asked, 49.98/s counted: in millionths, rounded down.
std::string rate_error(const Limit& limit) {
  // Exact iff permits * weight == period * rate.
  const Wide wanted = Wide{limit.permits} * limit.weight, given = Wide{limit.period_us} * limit.rate;
  if (wanted <= given) return {};
  const auto millionths = static_cast<std::int64_t>((wanted - given) * 1'000'000 / wanted);
  const std::string whole = std::to_string(millionths / 10'000), part = std::to_string(10'000 + millionths % 10'000);
  return "; refills " + whole + '.' + part.substr(1) + " % slower than written, the nearest rate that can be counted";
}

// As people say it: in any second, in any 5min.
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

struct Found {
  const Charge* charge;
  bool in_shadow;
};

// By their numbers in the book.
std::map<std::uint32_t, Found> charges_of(const Rulebook& book, const Bill& bill) {
  std::map<std::uint32_t, Found> out;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) out[bill.limits[i]] = {&bill.charges[i], false};
  for (const ShadowBill& shadow : bill.shadows) {
    for (std::uint32_t i = 0; i < shadow.charges.size(); ++i) {
      out[book.rule(shadow.rule).first_limit + i] = {&shadow.charges[i], true};
    }
  }
  return out;
}

// What a charge would be told. It is asked together with one that can never pass, so nothing is charged.
Result<Decision> would_say(Limiter& limiter, const Charge& charge) {
  static const Limit ban = make_window(Algorithm::fixed_window, 0, 1'000'000).value();
  const Charge charges[] = {charge, {.key = "explain", .limit = &ban, .cost = 1}};
  auto verdict = limiter.check_all(charges);
  if (!verdict) return fail(std::move(verdict.error()));
  return verdict->decisions[0];
}

std::string summary_of(const Explanation& out, const Bill& bill, const Rulebook& book) {
  switch (bill.reason) {
    case Bill::Reason::skipped:
      return "passes: it is skipped, no rule sees it";
    case Bill::Reason::exempt:
      if (out.allowed) return "passes: rule " + book.rule(bill.rule).rule->name + " is unlimited";
      break;
    case Bill::Reason::missing:
      return "denied: rule " + book.rule(bill.rule).rule->name + " requires an attribute that is not there";
    case Bill::Reason::too_many:
      return "an error: more than " + std::to_string(kChargesMax) + " limits hold it";
    case Bill::Reason::no_rule:
      return "passes: no rule is about it";
    case Bill::Reason::limits:
      break;
  }
  return (out.allowed ? "passes; the tightest limit is " : "denied by ") + out.binding;
}

}  // namespace

std::string worst_case(const Quota& quota, const Limit& limit) {
  const std::string period = period_of(quota);
  if (limit.permits == 0) return "nothing: it is a ban";
  switch (limit.algorithm) {
    case Algorithm::fixed_window:
      return "up to " + permits_text(2 * limit.permits) + " at once across a boundary, " +
             std::to_string(limit.permits) + " from each side";
    case Algorithm::sliding_log: {
      std::string out = "never more than " + permits_text(limit.permits) + " in any " + period;
      if (limit.permits > limit.events_max) out += ", in at most " + std::to_string(limit.events_max) + " requests";
      return out;
    }
    case Algorithm::sliding_window:
      return "up to " + permits_text(2 * limit.permits) + " in any " + period +
             ", if those before came at its end; on even traffic " + std::to_string(limit.permits);
    case Algorithm::token_bucket:
    case Algorithm::leaky_meter:
      return "a burst of " + std::to_string(limit.capacity) + " at once, so up to " +
             permits_text(limit.capacity + limit.permits) + " in any " + period + rate_error(limit);
    case Algorithm::leaky_bucket:
      return "a queue of " + std::to_string(limit.capacity) + ", let through evenly" + rate_error(limit);
    case Algorithm::concurrency:
      break;
  }
  return {};
}

Result<Explanation> explain(const std::shared_ptr<const Rulebook>& book, Limiter& limiter, const Request& request) {
  Explanation out{.allowed = true, .summary = "passes: there are no rules"};
  if (book == nullptr) return out;
  Facts facts(request, book->reading());
  if (auto wrong = facts.refuse()) return fail(std::move(*wrong));
  const std::int64_t now = limiter.now().count();
  Bill bill;
  book->bill(facts, now, bill);
  out.path = facts.path();
  if (facts.ip() != nullptr) out.client_ip = to_string(*facts.ip());

  const auto charges = charges_of(*book, bill);
  std::string path_rule;  // that keeps `otherwise` from applying
  for (std::uint32_t i = 0; i < book->size(); ++i) {
    const auto found = charges.find(book->rule(i).first_limit);
    const bool applies = book->rule(i).limits > 0 && found != charges.end() && !found->second.in_shadow;
    if (applies && book->rule(i).names_path && path_rule.empty()) path_rule = book->rule(i).rule->name;
  }
  Micros longest{-1};
  for (std::uint32_t i = 0; i < book->size(); ++i) {
    const BookRule& rule = book->rule(i);
    RuleExplanation one{.rule = rule.rule->name};
    one.reason = book->mismatch(i, facts, now);
    const auto lacking = one.reason.empty() ? book->lacking(i, facts) : std::nullopt;
    if (lacking) one.reason = "there is no " + to_string(*lacking) + (rule.rule->required ? ", which it requires" : "");
    if (one.reason.empty()) one.key = book->key_text(i, facts);
    for (std::uint32_t k = 0; k < rule.limits; ++k) {
      const auto found = charges.find(rule.first_limit + k);
      if (found == charges.end()) continue;
      const BookLimit& limit = book->limit(rule.first_limit + k);
      const Charge& charge = *found->second.charge;
      auto decision = would_say(limiter, charge);
      if (!decision) return fail(std::move(decision.error()));
      one.applies = true;
      one.reason = found->second.in_shadow ? "in shadow" : "enforced";
      one.limits.push_back({.quota = std::string(limit.quota_text()),
                            .algorithm = std::string(to_string(limit.limit->algorithm)),
                            .cost = charge.cost,
                            .decision = *decision,
                            .worst_case = worst_case(rule.rule->limits[k].quota, *limit.limit)});
      if (found->second.in_shadow || decision->allowed || decision->retry_after <= longest) continue;
      out.allowed = false;
      longest = decision->retry_after;
      out.binding = limit.name;
    }
    if (one.reason.empty()) {
      const bool is_exempting = bill.reason == Bill::Reason::exempt && rule.rule->unlimited;
      one.applies = is_exempting || (rule.rule->unlimited && bill.reason != Bill::Reason::skipped);
      one.reason = bill.reason == Bill::Reason::skipped  ? "the request is skipped"
                   : one.applies                         ? "unlimited"
                   : bill.reason == Bill::Reason::exempt ? "rule " + book->rule(bill.rule).rule->name + " is unlimited"
                                                         : "rule " + path_rule + ", which names a path, applies";
    }
    out.rules.push_back(std::move(one));
  }
  if (bill.reason == Bill::Reason::missing) out.allowed = false;
  if (out.allowed) {  // the tightest: the smallest part that is left
    const Decision* tightest = nullptr;
    for (const RuleExplanation& rule : out.rules) {
      if (rule.reason != "enforced") continue;
      for (const auto& limit : rule.limits) {
        const bool is_tighter = tightest == nullptr || Wide{limit.decision.remaining} * tightest->limit <
                                                           Wide{tightest->remaining} * limit.decision.limit;
        if (!is_tighter) continue;
        tightest = &limit.decision;
        out.binding = rule.rule + ": " + limit.quota;
      }
    }
  }
  out.summary = summary_of(out, bill, *book);
  return out;
}

}  // namespace weir
