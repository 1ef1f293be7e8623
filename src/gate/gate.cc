// The public functions of the gate. Policies are put into effect here, and every call begins with the rules in effect.
// See weir/gate.h. Any thread.
//
// check.cc, settle.cc and together.cc contain what a call does.
#include "weir/gate.h"

#include <exception>
#include <utility>

#include "gate/explain.h"
#include "gate/gate_impl.h"
#include "weir/limit.h"

namespace weir {

Gate::Gate(Limiter& limiter, const GateOptions& options) : impl_(std::make_unique<Impl>(limiter, options)) {}
Gate::~Gate() = default;

Result<PolicyChanges> Gate::apply(Policy policy, Force force) noexcept {
  return base::guarded([&] {
    const base::MutexLock lock(impl_->applying);
    return impl_->apply(policy, force, impl_->plans);
  });
}

Result<PolicyChanges> Gate::apply(Policy policy, Force force, std::shared_ptr<Plans> plans) noexcept {
  return base::guarded([&] {
    const base::MutexLock lock(impl_->applying);
    return impl_->apply(policy, force, std::move(plans));
  });
}

Result<PolicyChanges> Gate::Impl::apply(const Policy& policy, Force force, std::shared_ptr<Plans> by) {
  auto checked = gate::validated(policy);  // a policy built by hand must pass the same checks
  if (!checked) return fail(std::move(checked.error()));
  auto book = make_book(*std::move(checked), by);
  if (!book) return fail(std::move(book.error()));
  auto in_force = rules.load();
  PolicyChanges changes;
  if (in_force != nullptr) changes = compare(in_force->policy(), (*book)->policy());
  if (!changes.refused.empty() && force == Force::no) {
    std::string message = "the change exceeds max_change; to make it anyway, pass Force::yes:";
    for (const std::string& line : changes.refused) message += "\n  " + line;
    return fail(ErrorCode::out_of_range, std::move(message));
  }
  in_force.reset();
  rules.store(*std::move(book));
  plans = std::move(by);
  return changes;
}

Result<std::shared_ptr<const policy::Rulebook>> Gate::Impl::make_book(Policy policy, std::shared_ptr<Plans> by) {
  tally.begin_policy();
  return policy::Rulebook::make(
      std::move(policy), [](const Quota& quota) { return compile(quota); },
      [this](std::string_view rule) {
        const std::uint32_t number = tally.number_of(rule);
        ledger.learn(number, rule);
        return number;
      },
      std::move(by));
}

Result<void> Gate::use_plans(std::shared_ptr<Plans> plans) noexcept {
  return base::guarded([&]() -> Result<void> {
    const base::MutexLock lock(impl_->applying);
    auto in_force = impl_->rules.load();
    if (in_force != nullptr) {
      auto book = impl_->make_book(in_force->policy(), plans);
      if (!book) return fail(std::move(book.error()));
      in_force.reset();
      impl_->rules.store(*std::move(book));
    }
    impl_->plans = std::move(plans);
    return {};
  });
}

std::shared_ptr<const policy::Rulebook> Gate::rules() const noexcept { return impl_->rules.load(); }

Policy Gate::policy() const {
  const auto book = impl_->rules.load();
  return book == nullptr ? Policy{} : book->policy();
}

AnswerStyle Gate::answer_style() const noexcept {
  const auto book = impl_->rules.load();
  return book == nullptr ? AnswerStyle{} : book->policy().answers;
}

Result<Answer> Gate::check(const Request& request) noexcept {
  return impl_->counted([&]() -> Result<Answer> {
    Answer answer;
    if (auto checked = impl_->check(impl_->rules.load(), request, answer); !checked) return fail(checked.error());
    return answer;
  });
}

Result<void> Gate::check(const std::shared_ptr<const policy::Rulebook>& rules, const Request& request,
                         Answer& answer) noexcept {
  return impl_->counted([&] { return impl_->check(rules, request, answer); });
}

Result<Answer> Gate::peek(const Request& request) noexcept {
  return base::guarded([&] { return impl_->peek(request); });
}

Result<Answer> Gate::check_once(std::string_view id, const Request& request) noexcept {
  return impl_->counted([&] { return impl_->check_once(id, request); });
}

Result<RuleReservation> Gate::reserve(const Request& request, const ReserveOptions& options) noexcept {
  return impl_->counted([&] { return impl_->reserve(request, options); });
}

Result<Answer> Gate::commit(std::string_view id, const Request& request) noexcept {
  return base::guarded([&] { return impl_->settle(id, request); });
}

Result<Answer> Gate::cancel(std::string_view id, const Request& request) noexcept {
  Request nothing = request;
  nothing.cost = 0;
  return base::guarded([&] { return impl_->settle(id, nothing); });
}

Result<bool> Gate::reset(std::string_view rule, const Request& request) noexcept {
  return base::guarded([&] { return impl_->reset(rule, request); });
}

Result<Explanation> Gate::explain(const Request& request) noexcept {
  return base::guarded([&] { return weir::gate::explain(impl_->rules.load(), impl_->limiter, request); });
}

std::string Gate::key_of(const Answer& answer, const Request& request) const noexcept {
  try {
    if (answer.rules == nullptr) return {};
    const policy::Rulebook& book = *answer.rules;
    const auto rule = book.find_rule(answer.rule);
    policy::Facts facts(request, book.reading());
    if (!rule || facts.refuse() || book.lacking(*rule, facts)) return {};
    return book.key_text(*rule, facts);
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace weir
