// The shared parts of the gate: the path of a request from the rules to its answer. See weir/gate.h.
//
// Every call begins with begin(), which matches the rules and answers what is known without the limiter. Then the
// bill is charged, previewed, reserved or settled, and write_verdict() writes the result into the answer. Only the
// sources of this folder include this file. Any thread. Tested by tests/gate_test.cc and tests/gate_calls_test.cc.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/binding.h"
#include "base/guarded.h"
#include "base/mutex.h"
#include "base/random_id.h"
#include "base/snapshot.h"
#include "policy/rulebook.h"
#include "usage/ledger.h"
#include "usage/tally.h"
#include "usage/watch.h"
#include "weir/gate.h"

namespace weir::gate {

// A verdict on a bill: one decision for each of its limits.
struct VerdictView {
  VerdictView(const Verdict& verdict)  // NOLINT(google-explicit-constructor): it is one
      : allowed(verdict.allowed), binding(verdict.binding), decisions(verdict.decisions) {}
  VerdictView(bool is_allowed, std::span<const Decision> of)
      : allowed(is_allowed), binding(algorithm::binding_of(of, is_allowed)), decisions(of) {}

  bool allowed;
  std::size_t binding;
  std::span<const Decision> decisions;
};

// Checks a policy, so that one made by hand passes the same checks as a text. Returns it in its canonical form.
// policy_text.cc
Result<Policy> validated(const Policy& policy);

// Resets the answer to allowed, as if no rule applied.
void clear(Answer& answer);

// deny_ambiguous() denies a path that HTTP servers read in more ways than can be charged. write_verdict() writes the
// decisions into the answer that begin() began for this bill, with the costs in the bill.
void deny_ambiguous(Answer& answer);
void write_verdict(const Request& request, const policy::Bill& bill, const VerdictView& verdict, Answer& answer);
void write_shadow(const policy::ShadowBill& shadow, std::span<const Decision> decisions, Answer& answer);

// What a check of these charges would return if it were the only one. Changes nothing.
Result<Verdict> look(Limiter& limiter, std::span<const Charge> charges);

}  // namespace weir::gate

namespace weir {

struct Gate::Impl {
  Impl(Limiter& with, const GateOptions& options)
      : limiter(with),
        names(options.key_names),
        name_secret(base::random_id()),
        watch(with.now()),
        ledger(options.usage, options.key_names == KeyNames::hashed) {}

  Limiter& limiter;
  base::Snapshot<policy::Rulebook> rules;
  base::Mutex applying;  // serializes changes
  std::shared_ptr<Plans> plans GUARDED_BY(applying);
  const KeyNames names;
  const std::string name_secret;
  usage::Tally tally;
  usage::Watch watch;
  usage::Ledger ledger;
  class Namer;  // rule_counts.cc
  template <class F>
  auto counted(F call) -> decltype(call());

  // The bill of a request, and the answer as far as the rules alone decide it.
  Result<void> begin(const std::shared_ptr<const policy::Rulebook>& book, const Request& request, policy::Bill& bill,
                     Answer& answer);
  Result<PolicyChanges> apply(const Policy& policy, Force force, std::shared_ptr<Plans> by) REQUIRES(applying);
  Result<std::shared_ptr<const policy::Rulebook>> make_book(Policy policy, std::shared_ptr<Plans> by);
  // Charges a denied request to the rules with `count_denied`.
  Result<void> charge_denied(const policy::Bill& bill, const Answer& answer);
  // Checks each rule in shadow mode with `ask`.
  template <class Ask>
  void ask_shadows(const policy::Bill& bill, Answer& answer, Ask ask);

  // Counts for a rule and, if it was made by hand, also for all such rules together.
  void add(const policy::BookRule& rule, usage::Tally::What what, Micros now) noexcept;
  // Counts the decision; see weir/rule_counts.h. `now` is its time, 0 if the clock was not read.
  void count(const Request& request, const policy::Bill& bill, const Answer& answer, Micros now) noexcept;
  void count_inline(std::span<const Charge> charges, std::span<const Result<Decision>> answers, Micros now) noexcept;
  void count_reversed(const Request& request, const Answer& allowed, std::size_t limit);

  // Enter what was charged or denied into the ledger; see weir/usage.h. `reserved` has the cost that a settled
  // reservation had for each charge, kNotReserved if none. `free_reserved` has the same for what is now unlimited.
  enum class PostFree : std::uint8_t { yes, no };  // whether to enter unlimited charges now, too
  struct OtherViews {                              // of the same request
    std::span<const bool> is_new;                  // for each charge: no other view has brought it
    std::vector<std::string_view>& free_keys;      // of the unlimited charges that other views brought
    bool is_new_key(std::string_view key) {
      if (std::ranges::find(free_keys, key) != free_keys.end()) return false;
      free_keys.push_back(key);
      return true;
    }
  };
  void post(const policy::Bill& bill, const Answer& answer, Micros now, PostFree free = PostFree::yes,
            OtherViews* others = nullptr) noexcept;
  static constexpr std::int64_t kNotReserved = -1;
  void post_settled(const policy::Bill& bill, const Answer& answer, std::span<const std::int64_t> reserved,
                    std::span<const std::int64_t> free_reserved) noexcept;
  void post_denial(const policy::BookRule& rule, const policy::Rulebook& book, std::string_view body,
                   Micros now) noexcept;
  class Lines;  // usage.cc

  Result<void> check(const std::shared_ptr<const policy::Rulebook>& book, const Request& request, Answer& answer);
  Result<Micros> charge(const Request& request, const policy::Bill& bill,
                        Answer& answer);  // returns the time of the charge

  Result<Answer> peek(const Request& request);
  Result<Answer> check_once(std::string_view id, const Request& request);
  Result<RuleReservation> reserve(const Request& request, const ReserveOptions& options);
  Result<Answer> settle(std::string_view id, const Request& request);
  class Together;  // together.cc

  Result<bool> reset(std::string_view rule, const Request& request);
};

// The same for calls that are counted: an error is counted, too.
template <class F>
auto Gate::Impl::counted(F call) -> decltype(call()) {
  auto result = base::guarded(std::move(call));
  if (!result) tally.add(usage::Tally::kFailed, usage::Tally::What::allowed, Micros{0});
  return result;
}

template <class Ask>
void Gate::Impl::ask_shadows(const policy::Bill& bill, Answer& answer, Ask ask) {
  for (const policy::ShadowBill& shadow : bill.shadows) {
    const Result<Verdict> verdict = ask(shadow);
    if (!verdict) continue;  // a rule in shadow mode must not fail a request
    gate::write_shadow(shadow, verdict->decisions, answer);
    const bool is_counted = !verdict->allowed && answer.rules->rule(shadow.rule).count_denied;
    if (is_counted) static_cast<void>(limiter.overdraw(shadow.charges));
  }
}

}  // namespace weir
