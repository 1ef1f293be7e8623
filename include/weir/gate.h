// A limiter behind a policy: may this request pass, by the rules?
//
//   weir::Gate gate(limiter);
//   auto applied = gate.apply(*weir::parse_policy(text, "weir.yaml"));
//   auto answer = gate.check({.user = "42", .ip = "192.0.2.1", .path = "/api/search"});
//   if (answer && !answer->allowed) return too_many(answer->binding_limit()->name);   // `steps: 100/minute`
//
// The policy can be changed at any time: one pointer is swapped, requests under way finish by the rules they began
// with, and what was spent stays spent under the rules' names. Until one is applied every request passes.
// All members may be called from any thread at once. Tested by tests/gate_test.cc and tests/gate_calls_test.cc;
// docs/configuration.md is the guide.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/answer.h"
#include "weir/explanation.h"
#include "weir/limiter.h"
#include "weir/plans.h"
#include "weir/policy.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/spending.h"
#include "weir/usage.h"

namespace weir {

enum class Force : std::uint8_t { no, yes };  // whether a change beyond Policy::max_change is made all the same

struct RuleReservation {
  Answer answer{};   // nothing is reserved if it denies
  std::string id{};  // for commit() or cancel()
};

struct GateOptions {
  KeyNames key_names = KeyNames::plain;  // hashed: of subjects that spend, too, but without a secret
  SpendingOptions spending{};
};

class Gate {
 public:
  explicit Gate(Limiter& limiter, const GateOptions& options = {});  // the limiter outlives the gate
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // apply()
  //
  // Puts the policy in force, or changes nothing. The lines say what has changed, and what starts to count anew.
  Result<PolicyChanges> apply(Policy policy, Force force = Force::no) noexcept;
  // The same with other plans, see use_plans(); no request meets one without the other.
  Result<PolicyChanges> apply(Policy policy, Force force, std::shared_ptr<Plans> plans) noexcept;

  // use_plans()
  //
  // Who says what plan a subject is on, for rules with `limit: plan`; null, the default: each request says it itself.
  Result<void> use_plans(std::shared_ptr<Plans> plans) noexcept;

  // The one in force; null if there is none. Who asks by many requests at once takes it once.
  std::shared_ptr<const Rulebook> rules() const noexcept;
  // What was last applied.
  Policy policy() const;
  // How it wants answers to be worded; the default if there is none.
  AnswerStyle answer_style() const noexcept;

  // check()
  //
  // Charges every limit that the rules name for this request, or none of them.
  Result<Answer> check(const Request& request) noexcept;
  // The same by rules taken before, into an answer whose room is used again.
  Result<void> check(const std::shared_ptr<const Rulebook>& rules, const Request& request, Answer& answer) noexcept;

  // peek()
  //
  // What a check of this cost would be answered, but `remaining` is what is left before it. Charges nothing, in shadow
  // neither.
  Result<Answer> peek(const Request& request) noexcept;

  // check_once()
  //
  // For a request that may be sent twice: with the id of one that was allowed it is allowed, and charged nothing. The
  // id is bound to the rules that the request is charged to, to the client that each of them counts, and to the costs:
  // if one of these differs, it is another request.
  Result<Answer> check_once(std::string_view id, const Request& request) noexcept;

  // check_together()
  //
  // Several views of one request, such as the descriptors that Envoy sends. All that they are charged to is one event:
  // everything is taken or nothing is. A limit that several of them meet under the same key is charged once, with the
  // highest of their costs. `also` are charges beside the rules, part of the same event, answered in `decisions`. Each
  // answer tells of what its own request met: one may say `allowed` although nothing was charged because another one
  // denied. True if all passed.
  Result<bool> check_together(const std::shared_ptr<const Rulebook>& rules, std::span<const Request> requests,
                              std::span<Answer> answers, std::span<const Charge> also = {},
                              std::span<Decision> decisions = {}) noexcept;

  // reserve(), commit(), cancel()
  //
  // As Limiter's, on what the rules charge the request to. commit() and cancel() are given the same request again,
  // commit() with the actual cost; rules that were changed in between settle by the new ones what they can.
  Result<RuleReservation> reserve(const Request& request, const ReserveOptions& options = {}) noexcept;
  Result<Answer> commit(std::string_view id, const Request& request) noexcept;
  Result<Answer> cancel(std::string_view id, const Request& request) noexcept;

  // reset()
  //
  // Forgets what the rule of this name has counted for this request's attributes. True if there was anything; not_found
  // if there is no such rule, invalid_argument if the request lacks an attribute that it counts by.
  Result<bool> reset(std::string_view rule, const Request& request) noexcept;

  // explain()
  //
  // Every rule, why it is about this request or is not, and what it would say. Charges nothing.
  Result<Explanation> explain(const Request& request) noexcept;

  // key_of()
  //
  // What the rule that decided this answer counts the request by, in explain()'s words; empty if no rule did.
  std::string key_of(const Answer& answer, const Request& request) const noexcept;

  // usage(), other_usage()
  //
  // What was decided so far; of every rule in force, in their order.
  std::vector<RuleUsage> usage() const;
  OtherUsage other_usage() const;

  // top_keys()
  //
  // The n keys of a rule, or of all if it is empty, that are met or denied most now; most first. The time that this
  // tells of began so long ago: one to two minutes, or less if the gate is younger. So many bytes are held for it.
  std::vector<TopKey> top_keys(TopBy by, std::string_view rule, std::size_t n) const;
  Micros top_keys_cover() const;
  std::size_t top_keys_bytes() const;

  // spending()
  //
  // What a subject spent, or who spent most; see weir/spending.h. `others` are texts that other processes saved: their
  // numbers are added. not_found if it is not counted, invalid_argument if the question is not understood.
  Result<SpendingReport> spending(const SpendingQuery& query, std::span<const std::string> others = {}) const noexcept;
  SpendingStats spending_stats() const noexcept;

  // unsaved_spending(), spending_saved(), take_spending()
  //
  // The days of which something is new, until they are called saved. What was saved is taken back, each day once, by a
  // gate that has counted nothing yet.
  Result<std::vector<SavedSpending>> unsaved_spending() noexcept;
  void spending_saved(std::int64_t day, std::uint64_t version) noexcept;
  Result<void> take_spending(std::string text) noexcept;

  // count_inline()
  //
  // Counts what the limiter answered beside the rules, under the name kInlineRule.
  void count_inline(std::span<const Charge> charges, std::span<const Result<Decision>> answers, Micros now) noexcept;

  // count_reversed()
  //
  // Whoever asked denies, by one of its limits, what this answer of check() allowed, and gives the charge back: then it
  // counts as denied by that limit's rule, and no longer as allowed.
  void count_reversed(const Request& request, const Answer& allowed, std::size_t limit) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir
