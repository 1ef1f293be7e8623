// Asks the rules what a request must be charged to, and the limiter to charge it. See weir/gate.h.
//
// Two events at most for an ordinary request: the verdict, and, if it was denied, what rules with `count_denied` charge
// all the same. Rules in shadow come after, one event each, and only if the request passes: they then count what they
// would if they were enforced.
#include "weir/gate.h"

#include <exception>
#include <mutex>
#include <utility>

#include "few.h"
#include "gate/explain.h"
#include "gate/snapshot.h"
#include "policy/rulebook.h"
#include "weir/limit.h"

namespace weir {
namespace {

LimitAnswer limit_answer(const BookLimit& limit, const Charge& charge, const Decision& decision) {
  return {.name = limit.name,
          .rule = limit.rule_name(),
          .quota = limit.quota_text(),
          .limit = charge.limit,
          .cost = charge.cost,
          .decision = decision};
}

// Later than the honest wait by a part that is each client's own, so that those who were denied together come apart,
// also where one key holds them all.
Micros jittered(Micros wait, const RetryJitter& jitter, const Request& request, std::string_view key) {
  if (wait == kNever || (jitter.percent == 0 && jitter.most == Micros{0})) return wait;
  std::uint64_t mark = key_mark(key);
  for (const std::string_view who : {request.user, request.api_key, request.ip}) mark = mark * 31 + key_mark(who);
  const auto share = static_cast<std::int64_t>(mark >> 17 & 0xffff);
  const std::int64_t most = jitter.percent > 0 ? wait.count() / 100 * jitter.percent : jitter.most.count();
  return wait + Micros{most / 0xffff * share + most % 0xffff * share / 0xffff};
}

}  // namespace

struct Gate::Impl {
  explicit Impl(Limiter& with) : limiter(with) {}

  Limiter& limiter;
  Snapshot<Rulebook> rules;
  std::mutex applying;  // two changes come one after the other

  Result<void> check(const std::shared_ptr<const Rulebook>& book, const Request& request, Answer& answer);
  Result<void> charge(const Rulebook& book, const Request& request, const Bill& bill, Answer& answer);
  Result<void> charge_denied(const Rulebook& book, const Bill& bill);
  Result<void> charge_shadows(const Rulebook& book, const Bill& bill, Answer& answer);
};

Result<void> Gate::Impl::check(const std::shared_ptr<const Rulebook>& book, const Request& request, Answer& answer) {
  answer.limits.clear();
  answer.shadows.clear();
  answer.allowed = true;
  answer.why = Why::no_rule;
  answer.rule = {};
  answer.missing.clear();
  answer.binding = 0;
  answer.retry_after = Micros{0};
  if (answer.rules != book) answer.rules = book;
  if (book == nullptr) return {};

  Facts facts(request, book->reading());
  if (auto wrong = facts.refuse()) return fail(std::move(*wrong));
  Bill bill;
  book->bill(facts, book->has_expiring() ? limiter.now().count() : 0, bill);
  switch (bill.reason) {
    case Bill::Reason::skipped:
      answer.why = Why::skipped;
      return {};
    case Bill::Reason::too_many:
      return fail(ErrorCode::exhausted, "more than " + std::to_string(kChargesMax) +
                                            " limits hold this request; it cannot be charged to all at once");
    case Bill::Reason::missing: {
      const Rule& rule = *book->rule(bill.rule).rule;
      answer.allowed = false;
      answer.why = Why::missing;
      answer.rule = rule.name;
      if (const auto lacking = book->lacking(bill.rule, facts)) answer.missing = to_string(*lacking);
      answer.retry_after = kNever;
      return charge_denied(*book, bill);
    }
    case Bill::Reason::exempt:
      answer.why = Why::exempt;
      answer.rule = book->rule(bill.rule).rule->name;
      break;
    case Bill::Reason::no_rule:
    case Bill::Reason::limits:
      break;
  }
  if (bill.charges.size() > 0) {
    if (auto charged = charge(*book, request, bill, answer); !charged) return charged;
  }
  if (!answer.allowed) return charge_denied(*book, bill);
  return bill.shadows.empty() ? Result<void>{} : charge_shadows(*book, bill, answer);
}

Result<void> Gate::Impl::charge(const Rulebook& book, const Request& request, const Bill& bill, Answer& answer) {
  Few<Decision, kChargesMax> decisions;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) decisions.add();
  const auto judged = limiter.judge(bill.charges.all(), decisions.all());
  if (!judged) return fail(judged.error());
  answer.allowed = judged->allowed;
  answer.binding = judged->binding;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) {
    answer.limits.push_back(limit_answer(book.limit(bill.limits[i]), bill.charges[i], decisions[i]));
  }
  const LimitAnswer& binding = answer.limits[answer.binding];
  if (answer.allowed && answer.why == Why::exempt) return {};  // a ban that costs nothing to ask
  answer.why = answer.allowed ? Why::within : Why::limited;
  answer.rule = binding.rule;
  if (!answer.allowed) {
    const BookLimit& limit = book.limit(bill.limits[answer.binding]);
    answer.retry_after = jittered(binding.decision.retry_after, book.rule(limit.rule).rule->retry_jitter, request,
                                  bill.charges[answer.binding].key);
  }
  return {};
}

Result<void> Gate::Impl::charge_denied(const Rulebook& book, const Bill& bill) {
  if (!bill.counts_denied) return {};
  Few<Charge, kChargesMax> counted;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) {
    const BookLimit& limit = book.limit(bill.limits[i]);
    if (book.rule(limit.rule).count_denied && bill.charges[i].cost > 0) counted.add(bill.charges[i]);
  }
  if (counted.size() == 0) return {};
  auto verdict = limiter.overdraw(counted.all());
  if (!verdict) return fail(std::move(verdict.error()));
  return {};
}

Result<void> Gate::Impl::charge_shadows(const Rulebook& book, const Bill& bill, Answer& answer) {
  for (const ShadowBill& shadow : bill.shadows) {
    const BookRule& rule = book.rule(shadow.rule);
    auto verdict = limiter.check_all(shadow.charges);
    if (!verdict) continue;  // what is only watched must not fail a request
    for (std::uint32_t i = 0; i < rule.limits; ++i) {
      answer.shadows.push_back(
          limit_answer(book.limit(rule.first_limit + i), shadow.charges[i], verdict->decisions[i]));
    }
    if (!verdict->allowed && rule.count_denied) static_cast<void>(limiter.overdraw(shadow.charges));
  }
  return {};
}

Gate::Gate(Limiter& limiter) : impl_(std::make_unique<Impl>(limiter)) {}
Gate::~Gate() = default;

namespace {

template <class F>
auto guarded(F call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception&) {
    return fail(ErrorCode::exhausted, "out of memory");
  }
}

}  // namespace

Result<PolicyChanges> Gate::apply(Policy policy, Force force) noexcept {
  return guarded([&]() -> Result<PolicyChanges> {
    const std::lock_guard lock(impl_->applying);
    // Read as a text would be: a policy that was put together by hand is held to the same checks.
    auto checked = parse_policy(to_yaml(policy), "the policy");
    if (!checked) return fail(std::move(checked.error()));
    auto book = Rulebook::make(*std::move(checked), [](const Quota& quota) { return compile(quota); });
    if (!book) return fail(std::move(book.error()));
    auto in_force = impl_->rules.load();
    PolicyChanges changes;
    if (in_force != nullptr) changes = compare(in_force->policy(), (*book)->policy());
    if (!changes.refused.empty() && force == Force::no) {
      std::string message = "the change is too large to be made without --force:";
      for (const std::string& line : changes.refused) message += "\n  " + line;
      return fail(ErrorCode::out_of_range, std::move(message));
    }
    in_force.reset();
    impl_->rules.store(*std::move(book));
    return changes;
  });
}

std::shared_ptr<const Rulebook> Gate::rules() const noexcept { return impl_->rules.load(); }

Policy Gate::policy() const {
  const auto book = impl_->rules.load();
  return book == nullptr ? Policy{} : book->policy();
}

Result<Answer> Gate::check(const Request& request) noexcept {
  return guarded([&]() -> Result<Answer> {
    Answer answer;
    if (auto checked = impl_->check(impl_->rules.load(), request, answer); !checked) return fail(checked.error());
    return answer;
  });
}

Result<void> Gate::check(const std::shared_ptr<const Rulebook>& rules, const Request& request,
                         Answer& answer) noexcept {
  return guarded([&] { return impl_->check(rules, request, answer); });
}

Result<Explanation> Gate::explain(const Request& request) noexcept {
  return guarded([&] { return weir::explain(impl_->rules.load(), impl_->limiter, request); });
}

}  // namespace weir
