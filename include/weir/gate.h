// A limiter with a policy: do the rules let this request pass?
//
//   weir::Gate gate(limiter);
//   auto applied = gate.apply(*weir::parse_policy(text, "weir.yaml"));
//   auto answer = gate.check({.user = "42", .ip = "192.0.2.1", .path = "/api/search"});
//   if (answer && !answer->allowed) return too_many(answer->binding_limit()->name);   // `steps: 100/minute`
//
// The policy can change at any time: apply() swaps one pointer. Requests in flight finish under the rules they began
// with. Counts belong to the names of rules: a rule of the same name continues them, unless apply() lists that they
// restart. Until a policy is applied, every request passes. Any thread may call any member at any time. Tested by
// tests/gate_test.cc and tests/gate_calls_test.cc; the guide is docs/configuration.md.
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
#include "weir/rule_counts.h"
#include "weir/usage.h"

namespace weir {

enum class Force : std::uint8_t { no, yes };  // yes: apply a change beyond Policy::max_change, too

struct RuleReservation {
  Answer answer{};   // nothing is reserved if this denies
  std::string id{};  // for commit() or cancel()
};

struct GateOptions {
  KeyNames key_names = KeyNames::plain;  // hashed: also hashes the subjects of usage, but without a secret
  UsageOptions usage{};
};

class Gate {
 public:
  explicit Gate(Limiter& limiter, const GateOptions& options = {});  // the limiter must outlive the gate
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // apply()
  //
  // Puts the policy into effect, or changes nothing. The returned lines list what changed and which counts start at
  // zero.
  Result<PolicyChanges> apply(Policy policy, Force force = Force::no) noexcept;
  // The same with other plans, see use_plans(). Every request sees both the new policy and the new plans, or neither.
  Result<PolicyChanges> apply(Policy policy, Force force, std::shared_ptr<Plans> plans) noexcept;

  // use_plans()
  //
  // Sets where rules with `limit: plan` look up the plan of a subject. Null, the default: each request names its
  // plan.
  Result<void> use_plans(std::shared_ptr<Plans> plans) noexcept;

  // The rules in effect; null if there are none. A caller with many requests at once loads them once.
  std::shared_ptr<const policy::Rulebook> rules() const noexcept;
  // The policy applied last.
  Policy policy() const;
  // How responses are worded under the policy; the default style if there is none.
  AnswerStyle answer_style() const noexcept;

  // check()
  //
  // Charges every limit that the rules apply to this request, or none of them.
  Result<Answer> check(const Request& request) noexcept;
  // The same under rules loaded before. Fills `answer`, reusing its memory.
  Result<void> check(const std::shared_ptr<const policy::Rulebook>& rules, const Request& request,
                     Answer& answer) noexcept;

  // peek()
  //
  // What check() would answer for this cost, except that `remaining` is what is left before the charge. Charges
  // nothing, not even rules in shadow mode.
  Result<Answer> peek(const Request& request) noexcept;

  // check_once()
  //
  // Makes check() idempotent. If a request with this id was allowed before, this one is allowed and charged nothing.
  // The id is bound to the rules that charge the request, the client that each rule counts, and the costs. If any of
  // these differs, it is another request.
  Result<Answer> check_once(std::string_view id, const Request& request) noexcept;

  // check_together()
  //
  // Checks several views of one request, such as the descriptors that Envoy sends, as one event: all charges are made
  // or none. If several views meet the same limit under the same key, the limit is charged once, at the highest of
  // their costs. `also` are charges beside the rules, part of the same event; their decisions go to `decisions`.
  // Each answer covers only its own view. It may say `allowed` although nothing was charged because another view
  // denied. Returns true if all passed.
  Result<bool> check_together(const std::shared_ptr<const policy::Rulebook>& rules, std::span<const Request> requests,
                              std::span<Answer> answers, std::span<const Charge> also = {},
                              std::span<Decision> decisions = {}) noexcept;

  // reserve(), commit(), cancel()
  //
  // Like Limiter's, for what the rules charge the request to. Pass commit() and cancel() the same request again, and
  // commit() the actual cost. If the rules changed in between, the new rules settle what they can.
  Result<RuleReservation> reserve(const Request& request, const ReserveOptions& options = {}) noexcept;
  Result<Answer> commit(std::string_view id, const Request& request) noexcept;
  Result<Answer> cancel(std::string_view id, const Request& request) noexcept;

  // reset()
  //
  // Deletes what the named rule has counted for this request's attributes. True if there was anything. Fails with
  // not_found if there is no such rule, invalid_argument if the request lacks an attribute that the rule counts by.
  Result<bool> reset(std::string_view rule, const Request& request) noexcept;

  // explain()
  //
  // For every rule: why it applies to this request or does not, and what it would decide. Charges nothing.
  Result<Explanation> explain(const Request& request) noexcept;

  // key_of()
  //
  // The key that the deciding rule counts this request by, as explain() prints it. Empty if no rule decided.
  std::string key_of(const Answer& answer, const Request& request) const noexcept;

  // rule_counts(), other_counts()
  //
  // Decisions since the gate was made: of every rule in effect, in their order, and of everything else.
  std::vector<RuleCounts> rule_counts() const;
  OtherCounts other_counts() const;

  // top_keys()
  //
  // The n keys of a rule (of all rules if `rule` is empty) with the most hits or denials now, most first. They cover
  // the last top_keys_cover(): one to two minutes, or less if the gate is younger. They use top_keys_bytes() of
  // memory.
  std::vector<TopKey> top_keys(TopBy by, std::string_view rule, std::size_t n) const;
  Micros top_keys_cover() const;
  std::size_t top_keys_bytes() const;

  // usage()
  //
  // What a subject used, or which subjects used most; see weir/usage.h. `others` are texts that other processes
  // saved; their numbers are added. Fails with not_found if usage is not counted, invalid_argument if the query is
  // invalid.
  Result<UsageReport> usage(const UsageQuery& query, std::span<const std::string> others = {}) const noexcept;
  UsageStats usage_stats() const noexcept;

  // unsaved_usage(), usage_saved(), load_usage()
  //
  // unsaved_usage() returns the days that changed since they were last saved; usage_saved() marks a day as
  // saved. load_usage() loads a saved text, each day once, into a gate that has counted nothing yet.
  Result<std::vector<SavedUsage>> unsaved_usage() noexcept;
  void usage_saved(std::int64_t day, std::uint64_t version) noexcept;
  Result<void> load_usage(std::string text) noexcept;

  // count_inline()
  //
  // Counts decisions that the limiter made outside the rules, under the name kInlineRule.
  void count_inline(std::span<const Charge> charges, std::span<const Result<Decision>> answers, Micros now) noexcept;

  // count_reversed()
  //
  // For a caller that denies, by a limit of its own, what this answer of check() allowed, and refunds the charge. The
  // request then counts as denied by the rule of that limit, no longer as allowed.
  void count_reversed(const Request& request, const Answer& allowed, std::size_t limit) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir
