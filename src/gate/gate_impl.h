// What the parts of the gate share: the way of a request from the rules to its answer. See weir/gate.h.
//
// Every call begins alike: begin() asks the rules and says what is known without the limiter. Then the bill is charged,
// looked at, reserved or settled, and tell() words what came of it. Included by the sources of this folder only; any
// thread. Tested by tests/gate_test.cc and tests/gate_calls_test.cc.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/ledger.h"
#include "gate/snapshot.h"
#include "gate/tally.h"
#include "gate/watch.h"
#include "policy/rulebook.h"
#include "random_id.h"
#include "weir/gate.h"

namespace weir {

struct Gate::Impl {
  Impl(Limiter& with, const GateOptions& options)
      : limiter(with),
        names(options.key_names),
        name_secret(random_id()),
        watch(with.now()),
        ledger(options.spending, options.key_names == KeyNames::hashed) {}

  Limiter& limiter;
  Snapshot<Rulebook> rules;
  std::mutex applying;  // two changes come one after the other; guards plans
  std::shared_ptr<Plans> plans;
  const KeyNames names;
  const std::string name_secret;
  Tally tally;
  Watch watch;
  Ledger ledger;
  class Namer;  // usage.cc
  template <class F>
  auto counted(F call) -> decltype(call());

  // The bill of a request, and the answer as far as the rules alone can tell it.
  Result<void> begin(const std::shared_ptr<const Rulebook>& book, const Request& request, Bill& bill, Answer& answer);
  Result<PolicyChanges> apply(const Policy& policy, Force force, std::shared_ptr<Plans> by);
  Result<std::shared_ptr<const Rulebook>> make_book(Policy policy, std::shared_ptr<Plans> by);
  // What rules with `count_denied` charge for a denied request.
  Result<void> charge_denied(const Bill& bill, const Answer& answer);
  // Asks the limiter about each rule in shadow, as `ask` does.
  template <class Ask>
  void ask_shadows(const Bill& bill, Answer& answer, Ask ask);

  // For a rule, and for all that were made by hand if it is one.
  void add(const BookRule& rule, Tally::What what, Micros now) noexcept;
  // Counts what was decided; see weir/usage.h. `now` is when, 0 if that was not asked.
  void count(const Request& request, const Bill& bill, const Answer& answer, Micros now) noexcept;
  void count_inline(std::span<const Charge> charges, std::span<const Result<Decision>> answers, Micros now) noexcept;
  void count_reversed(const Request& request, const Answer& allowed, std::size_t limit);

  // What was charged, or denied, enters the ledger; see weir/spending.h. `reserved` are the costs that a settled
  // reservation had, charge by charge, kNotReserved if it had none; `free_reserved` those that it had by what has no
  // limit any longer; `is_new` tells of each charge whether no other view of the request brought it,
  // `free_keys` are those of what has no limit that others brought.
  enum class PostFree : std::uint8_t { yes, no };  // whether what has no limit is entered now, too
  void post(const Bill& bill, const Answer& answer, Micros now, PostFree free = PostFree::yes) noexcept;
  static constexpr std::int64_t kNotReserved = -1;
  void post_settled(const Bill& bill, const Answer& answer, std::span<const std::int64_t> reserved,
                    std::span<const std::int64_t> free_reserved) noexcept;
  void post_part(const Bill& bill, const Answer& answer, std::span<const bool> is_new,
                 std::vector<std::string_view>& free_keys, Micros now) noexcept;
  void post_denial(const BookRule& rule, const Rulebook& book, std::string_view body, Micros now) noexcept;
  class Lines;  // spending.cc

  Result<void> check(const std::shared_ptr<const Rulebook>& book, const Request& request, Answer& answer);
  Result<Micros> charge(const Request& request, const Bill& bill, Answer& answer);  // when it was

  Result<Answer> peek(const Request& request);
  Result<Answer> check_once(std::string_view id, const Request& request);
  Result<RuleReservation> reserve(const Request& request, const ReserveOptions& options);
  Result<Answer> settle(std::string_view id, const Request& request);
  class Together;  // together.cc

  Result<bool> reset(std::string_view rule, const Request& request);
};

// What came of the limits of a bill: a decision for each.
struct Outcome {
  bool allowed = true;
  std::size_t binding = 0;
  std::span<const Decision> decisions;
};

// Nothing stands against the request, as if no rule were about it.
void clear(Answer& answer);

// Words it, in the answer that was begun with the bill. The costs told are those of the bill.
// That servers read the path in more ways than can be charged.
void tell_ambiguous(Answer& answer);
void tell(const Request& request, const Bill& bill, const Outcome& outcome, Answer& answer);
void tell_shadow(const ShadowBill& shadow, std::span<const Decision> decisions, Answer& answer);

// What a check of these charges would be told, were it alone. Changes nothing.
Result<Verdict> look(Limiter& limiter, std::span<const Charge> charges);

// Nothing is thrown to the caller: without memory, a call answers with an error.
template <class F>
auto guarded(F call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception&) {
    return fail(ErrorCode::exhausted, "out of memory");
  }
}

// The same for what is counted: so is that there was no answer.
template <class F>
auto Gate::Impl::counted(F call) -> decltype(call()) {
  auto result = guarded(std::move(call));
  if (!result) tally.add(Tally::kFailed, Tally::What::allowed, Micros{0});
  return result;
}

template <class Ask>
void Gate::Impl::ask_shadows(const Bill& bill, Answer& answer, Ask ask) {
  for (const ShadowBill& shadow : bill.shadows) {
    const Result<Verdict> verdict = ask(shadow);
    if (!verdict) continue;  // what is only watched must not fail a request
    tell_shadow(shadow, verdict->decisions, answer);
    const bool is_counted = !verdict->allowed && answer.rules->rule(shadow.rule).count_denied;
    if (is_counted) static_cast<void>(limiter.overdraw(shadow.charges));
  }
}

}  // namespace weir
