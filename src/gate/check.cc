// An ordinary check. See gate_impl.h. Any thread.
//
// Enforced rules cause at most two events. The first is the verdict. If that denies, the second is what rules with
// `count_denied` charge all the same. Rules in shadow mode follow, one event each, and only if the request passes: so
// they count what they would count if they were enforced.
#include <string>
#include <utility>

#include "base/few.h"
#include "gate/gate_impl.h"

namespace weir {
namespace {

// Adds a delay to the exact wait that is each client's own. So clients that were denied together do not retry
// together, even if one key counts them all.
Micros jittered(Micros wait, const RetryJitter& jitter, const Request& request, std::string_view key) {
  if (wait == kNever || (jitter.percent == 0 && jitter.most == Micros{0})) return wait;
  std::uint64_t mark = key_mark(key);
  for (const std::string_view who : {request.user, request.api_key, request.ip}) mark = mark * 31 + key_mark(who);
  const auto share = static_cast<std::int64_t>(mark >> 17 & 0xffff);
  const std::int64_t most = jitter.percent > 0 ? wait.count() / 100 * jitter.percent : jitter.most.count();
  return wait + Micros{most / 0xffff * share + most % 0xffff * share / 0xffff};
}

LimitAnswer limit_answer(const BookLimit& limit, const Charge& charge, const Decision& decision) {
  return {.name = limit.name,
          .rule = limit.rule_name(),
          .quota = limit.quota_text(),
          .limit = charge.limit,
          .cost = charge.cost,
          .decision = decision};
}

void tell_missing(const Rulebook& book, std::uint32_t rule, Facts& facts, Answer& answer) {
  answer.allowed = false;
  answer.why = Why::missing;
  answer.rule = book.rule(rule).rule->name;
  if (const auto lacking = book.lacking(rule, facts)) answer.missing = to_string(*lacking);
  answer.retry_after = kNever;
}

}  // namespace

void clear(Answer& answer) {
  answer.limits.clear();
  answer.shadows.clear();
  answer.allowed = true;
  answer.why = Why::no_rule;
  answer.rule = {};
  answer.missing.clear();
  answer.binding = 0;
  answer.retry_after = Micros{0};
}

void tell_ambiguous(Answer& answer) {
  answer.allowed = false;
  answer.why = Why::ambiguous_path;
  answer.retry_after = kNever;
}

void tell(const Request& request, const Bill& bill, const Outcome& outcome, Answer& answer) {
  const Rulebook& book = *answer.rules;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) {
    answer.limits.push_back(limit_answer(*bill.limits[i], bill.charges[i], outcome.decisions[i]));
  }
  answer.binding = outcome.binding;
  answer.allowed = outcome.allowed;
  if (answer.allowed && answer.why == Why::exempt) return;  // only bans were charged, at cost 0
  const LimitAnswer& binding = answer.limits[answer.binding];
  answer.why = answer.allowed ? Why::within : Why::limited;
  answer.rule = binding.rule;
  if (answer.allowed) return;
  const RetryJitter& jitter = book.rule(bill.limits[answer.binding]->rule).rule->retry_jitter;
  answer.retry_after = jittered(binding.decision.retry_after, jitter, request, bill.charges[answer.binding].key);
}

void tell_shadow(const ShadowBill& shadow, std::span<const Decision> decisions, Answer& answer) {
  for (std::uint32_t i = 0; i < shadow.charges.size(); ++i) {
    answer.shadows.push_back(limit_answer(shadow.limits[i], shadow.charges[i], decisions[i]));
  }
}

Result<void> Gate::Impl::begin(const std::shared_ptr<const Rulebook>& book, const Request& request, Bill& bill,
                               Answer& answer) {
  clear(answer);
  if (answer.rules != book) answer.rules = book;
  answer.style = book == nullptr ? nullptr : &book->policy().answers;
  if (book == nullptr) return {};

  Facts facts(request, book->reading());
  if (auto wrong = facts.refuse()) return fail(std::move(*wrong));
  book->bill(facts, book->has_expiring() ? limiter.now().count() : 0, bill);
  switch (bill.reason) {
    case Bill::Reason::skipped:
      answer.why = Why::skipped;
      break;
    case Bill::Reason::too_many:
      return fail(ErrorCode::exhausted, "more than " + std::to_string(kChargesMax) +
                                            " limits apply to this request; Weir cannot charge them all at once");
    case Bill::Reason::missing:
      tell_missing(*book, bill.rule, facts, answer);
      break;
    case Bill::Reason::ambiguous:
      tell_ambiguous(answer);
      break;
    case Bill::Reason::exempt:
      answer.why = Why::exempt;
      answer.rule = book->rule(bill.rule).rule->name;
      break;
    case Bill::Reason::no_rule:
    case Bill::Reason::limits:
      break;
  }
  return {};
}

Result<void> Gate::Impl::check(const std::shared_ptr<const Rulebook>& book, const Request& request, Answer& answer) {
  Bill bill;
  if (auto begun = begin(book, request, bill, answer); !begun) return begun;
  Micros now{0};
  if (answer.allowed && bill.charges.size() > 0) {
    const auto charged = charge(request, bill, answer);
    if (!charged) return fail(charged.error());
    now = *charged;
  }
  if (answer.allowed) {
    ask_shadows(bill, answer, [this](const ShadowBill& shadow) { return limiter.check_all(shadow.charges); });
  } else if (auto counted = charge_denied(bill, answer); !counted) {
    return counted;
  }
  post(bill, answer, now);
  count(request, bill, answer, now);
  return {};
}

Result<Micros> Gate::Impl::charge(const Request& request, const Bill& bill, Answer& answer) {
  Few<Decision, kChargesMax> decisions;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) decisions.add();
  const auto judged = limiter.judge(bill.charges.all(), decisions.all());
  if (!judged) return fail(judged.error());
  tell(request, bill, {judged->allowed, judged->binding, decisions.all()}, answer);
  return judged->now;
}

Result<void> Gate::Impl::charge_denied(const Bill& bill, const Answer& answer) {
  if (!bill.counts_denied) return {};
  const Rulebook& book = *answer.rules;
  Few<Charge, kChargesMax> counted;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) {
    const BookLimit& limit = *bill.limits[i];
    if (book.rule(limit.rule).count_denied && bill.charges[i].cost > 0) counted.add(bill.charges[i]);
  }
  if (counted.size() == 0) return {};
  auto verdict = limiter.overdraw(counted.all());
  if (!verdict) return fail(std::move(verdict.error()));
  return {};
}

}  // namespace weir
