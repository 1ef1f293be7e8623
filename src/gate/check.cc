// An ordinary check. See gate_impl.h. Any thread.
//
// Enforced rules cause at most two events. The first is the verdict. If that denies, the second charges the rules with
// `count_denied`. Rules in shadow mode follow, one event each, and only if the request passes: so they count what they
// would count if they were enforced.
#include <string>
#include <utility>

#include "base/few.h"
#include "gate/gate_impl.h"

namespace weir::gate {
namespace {

// Adds a delay to the exact wait that is each client's own. So clients that were denied together do not retry
// together, even if one key counts them all.
Micros jittered(Micros wait, const RetryJitter& jitter, const Request& request, std::string_view key) {
  if (wait == kNever || (jitter.percent == 0 && jitter.most == Micros{0})) return wait;
  std::uint64_t mark = policy::key_mark(key);
  for (const std::string_view who : {request.user, request.api_key, request.ip})
    mark = mark * 31 + policy::key_mark(who);
  const auto share = static_cast<std::int64_t>(mark >> 17 & 0xffff);
  const std::int64_t most = jitter.percent > 0 ? wait.count() / 100 * jitter.percent : jitter.most.count();
  return wait + Micros{most / 0xffff * share + most % 0xffff * share / 0xffff};
}

LimitAnswer limit_answer(const policy::BookLimit& limit, const Charge& charge, const Decision& decision) {
  return {.name = limit.name,
          .rule = limit.rule_name(),
          .quota = limit.quota_text(),
          .limit = charge.limit,
          .cost = charge.cost,
          .decision = decision};
}

void deny_missing(const policy::Rulebook& book, std::uint32_t rule, policy::Facts& facts, Answer& answer) {
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

void deny_ambiguous(Answer& answer) {
  answer.allowed = false;
  answer.why = Why::ambiguous_path;
  answer.retry_after = kNever;
}

void write_verdict(const Request& request, const policy::Bill& bill, const VerdictView& verdict, Answer& answer) {
  WEIR_ASSERT(verdict.decisions.size() == bill.charges.size());
  WEIR_ASSERT(verdict.binding < bill.charges.size());
  const policy::Rulebook& book = *answer.rules;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) {
    answer.limits.push_back(limit_answer(*bill.limits[i], bill.charges[i], verdict.decisions[i]));
  }
  answer.binding = verdict.binding;
  answer.allowed = verdict.allowed;
  if (answer.allowed && answer.why == Why::exempt) return;  // only bans were charged, at cost 0
  const LimitAnswer& binding = answer.limits[answer.binding];
  answer.why = answer.allowed ? Why::within : Why::limited;
  answer.rule = binding.rule;
  if (answer.allowed) return;
  const RetryJitter& jitter = book.rule(bill.limits[answer.binding]->rule).rule->retry_jitter;
  answer.retry_after = jittered(binding.decision.retry_after, jitter, request, bill.charges[answer.binding].key);
}

void write_shadow(const policy::ShadowBill& shadow, std::span<const Decision> decisions, Answer& answer) {
  for (std::uint32_t i = 0; i < shadow.charges.size(); ++i) {
    answer.shadows.push_back(limit_answer(shadow.limits[i], shadow.charges[i], decisions[i]));
  }
}

}  // namespace weir::gate

namespace weir {

Result<void> Gate::Impl::begin(const std::shared_ptr<const policy::Rulebook>& book, const Request& request,
                               policy::Bill& bill, Answer& answer) {
  gate::clear(answer);
  if (answer.rules != book) answer.rules = book;
  answer.style = book == nullptr ? nullptr : &book->policy().answers;
  if (book == nullptr) return {};

  policy::Facts facts(request, book->reading());
  if (auto wrong = facts.refuse()) return fail(std::move(*wrong));
  book->bill(facts, book->has_expiring() ? limiter.now().count() : 0, bill);
  switch (bill.reason) {
    case policy::Bill::Reason::skipped:
      answer.why = Why::skipped;
      break;
    case policy::Bill::Reason::too_many:
      return fail(ErrorCode::exhausted, "more than " + std::to_string(kChargesMax) +
                                            " limits apply to this request; Weir cannot charge them all at once");
    case policy::Bill::Reason::missing:
      gate::deny_missing(*book, bill.rule, facts, answer);
      break;
    case policy::Bill::Reason::ambiguous:
      gate::deny_ambiguous(answer);
      break;
    case policy::Bill::Reason::exempt:
      answer.why = Why::exempt;
      answer.rule = book->rule(bill.rule).rule->name;
      break;
    case policy::Bill::Reason::no_rule:
    case policy::Bill::Reason::limits:
      break;
  }
  return {};
}

Result<void> Gate::Impl::check(const std::shared_ptr<const policy::Rulebook>& book, const Request& request,
                               Answer& answer) {
  policy::Bill bill;
  if (auto begun = begin(book, request, bill, answer); !begun) return begun;
  Micros now{0};
  if (answer.allowed && bill.charges.size() > 0) {
    const auto charged = charge(request, bill, answer);
    if (!charged) return fail(charged.error());
    now = *charged;
  }
  if (answer.allowed) {
    ask_shadows(bill, answer, [this](const policy::ShadowBill& shadow) { return limiter.check_all(shadow.charges); });
  } else if (auto counted = charge_denied(bill, answer); !counted) {
    return counted;
  }
  post(bill, answer, now);
  count(request, bill, answer, now);
  return {};
}

Result<Micros> Gate::Impl::charge(const Request& request, const policy::Bill& bill, Answer& answer) {
  base::Few<Decision, kChargesMax> decisions;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) decisions.add();
  Micros now{0};
  const auto allowed = limiter.charge_into(bill.charges.all(), decisions.all(), now);
  if (!allowed) return fail(allowed.error());
  gate::write_verdict(request, bill, {*allowed, decisions.all()}, answer);
  return now;
}

Result<void> Gate::Impl::charge_denied(const policy::Bill& bill, const Answer& answer) {
  if (!bill.counts_denied) return {};
  const policy::Rulebook& book = *answer.rules;
  base::Few<Charge, kChargesMax> counted;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) {
    const policy::BookLimit& limit = *bill.limits[i];
    if (book.rule(limit.rule).count_denied && bill.charges[i].cost > 0) counted.add(bill.charges[i]);
  }
  if (counted.size() == 0) return {};
  return limiter.overdraw(counted.all()).map([](const Verdict&) {});
}

}  // namespace weir
