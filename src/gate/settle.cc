// Peeks, idempotent checks, reservations and resets. See gate_impl.h. Any thread.
//
// Rules in shadow mode take the same path as enforced ones, with ids of their own, so that they count what they would
// count if they were enforced.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/binding.h"
#include "base/nearest.h"
#include "base/once_name.h"
#include "base/sha256.h"
#include "gate/gate_impl.h"

namespace weir::gate {
namespace {

// The id of a reservation that has nothing to settle.
constexpr std::string_view kNothingReserved = "none";

std::optional<Error> refuse_id(std::string_view id) {
  if (!id.empty() && id.size() <= kRequestIdBytesMax) return {};
  return Error{ErrorCode::invalid_argument, "the id of a request has 1 to " + std::to_string(kRequestIdBytesMax) +
                                                " bytes; this one has " + std::to_string(id.size())};
}

// The id under which a rule in shadow mode counts a request once. Enforced rules seeing the request must not affect
// it.
std::string shadow_id(std::string_view id, std::string_view rule) {
  const auto hash =
      base::sha256("shadow " + std::to_string(id.size()) + ' ' + std::string(id) + ' ' + std::string(rule));
  return {hash.begin(), hash.end()};
}

// A rule's key for a client, without the limits of the client's plan. So if the plan becomes known or changes, a
// repeated request is still the same request.
std::string_view client_of(const Charge& charge, const policy::BookLimit& limit) {
  return charge.key.substr(0, charge.key.size() - limit.suffix.size());
}

std::string once_name(std::string_view id, const policy::Bill& bill) {
  base::OnceName name;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) {
    const std::string_view client = client_of(bill.charges[i], *bill.limits[i]);
    if (i > 0 && client == client_of(bill.charges[i - 1], *bill.limits[i - 1])) continue;  // another limit of the rule
    name.add(client, bill.charges[i].cost);
  }
  return name.of(id);
}

std::string once_name(std::string_view id, const policy::ShadowBill& shadow, std::string_view rule) {
  base::OnceName name;
  name.add(client_of(shadow.charges[0], *shadow.limits), shadow.charges[0].cost);
  return name.of(shadow_id(id, rule));
}

// The tightest limit of a check, by what would be left after it.
std::size_t binding_after(std::span<const Charge> charges, std::vector<Decision> decisions) {
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    std::int64_t left = 0;
    const bool is_huge = __builtin_sub_overflow(decisions[i].remaining, charges[i].cost, &left);
    decisions[i].remaining = is_huge ? decisions[i].limit : std::clamp<std::int64_t>(left, 0, decisions[i].limit);
  }
  return algorithm::binding_of(decisions);
}

// Settles limit by limit, if the rules have changed and not all limits were reserved. For a limit that is not part of
// the reservation, it returns the current state.
Result<Verdict> settle_each(Limiter& limiter, std::string_view id, std::span<const Charge> actual,
                            std::int64_t not_reserved) {
  Verdict verdict{.allowed = true};
  bool has_settled = false;
  for (const Charge& charge : actual) {
    auto settled = limiter.commit(id, {&charge, 1});
    if (!settled && settled.error().code != ErrorCode::not_found) return fail(std::move(settled.error()));
    has_settled = has_settled || settled.has_value();
    verdict.reserved.push_back(settled ? settled->reserved[0] : not_reserved);
    if (!settled) {
      settled = look(
          limiter,
          std::array{Charge{.key = charge.key, .limit = charge.limit, .space = charge.space, .family = charge.family}});
    }
    if (!settled) return fail(std::move(settled.error()));
    verdict.decisions.push_back(settled->decisions[0]);
  }
  if (!has_settled) {
    return fail(ErrorCode::not_found,
                "no such reservation for this request: it was already settled, or it has expired");
  }
  verdict.binding = algorithm::binding_of(verdict.decisions);
  return verdict;
}

Result<Verdict> settle_all(Limiter& limiter, std::string_view id, std::span<const Charge> actual,
                           std::int64_t not_reserved) {
  if (actual.size() > kReservedMax) return settle_each(limiter, id, actual, not_reserved);
  auto settled = limiter.commit(id, actual);
  if (settled || settled.error().code != ErrorCode::not_found) return settled;
  return settle_each(limiter, id, actual, not_reserved);
}

// Settles what was reserved while the plan had limits, under a rule that is now unlimited. Settles every reservation
// found, so that nothing stays charged, and returns what the first one had charged.
Result<std::int64_t> settle_free(Limiter& limiter, std::string_view id, const policy::Rulebook& book,
                                 const policy::FreeCharge& free) {
  std::optional<std::int64_t> reserved;
  if (free.cost < 0) return 0;
  for (const policy::BookTier& tier : book.tiers(book.rule(free.rule))) {
    for (std::uint32_t i = 0; i < tier.limits; ++i) {
      const policy::BookLimit& limit = book.limit(tier.first_limit + i);
      const std::string key = std::string(free.key).append(limit.suffix);
      const Charge charge{.key = key,
                          .limit = policy::limit_of_key(limit, free.key),
                          .cost = free.cost,
                          .space = KeySpace::rules,
                          .family = limit.family};
      const auto settled = limiter.commit(id, {&charge, 1});
      if (!settled && settled.error().code != ErrorCode::not_found) return fail(settled.error());
      if (settled && !reserved) reserved = settled->reserved[0];
    }
  }
  return reserved.value_or(0);
}

Error no_such_rule(const policy::Rulebook& book, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Rule& rule : book.policy().rules) names.push_back(rule.name);
  const std::string_view meant = base::nearest(name, names);
  return {ErrorCode::not_found, "there is no rule called " + base::in_quotes(name) +
                                    (meant.empty() ? "" : "; did you mean " + base::in_quotes(meant) + "?")};
}

// Whether the request has too many charges for a reservation, and its path has several readings.
bool is_too_ambiguous(const policy::Rulebook& book, const Request& request, const policy::Bill& bill) {
  return bill.charges.size() > kReservedMax && policy::Facts(request, book.reading()).readings() > 1;
}

}  // namespace

Result<Verdict> look(Limiter& limiter, std::span<const Charge> charges) {
  Verdict verdict{.allowed = true};
  for (const Charge& charge : charges) {
    auto decision = limiter.preview(charge);
    if (!decision) return fail(std::move(decision.error()));
    verdict.allowed = verdict.allowed && decision->allowed;
    verdict.decisions.push_back(*decision);
  }
  verdict.binding = binding_after(charges, verdict.decisions);
  return verdict;
}

}  // namespace weir::gate

namespace weir {

Result<Answer> Gate::Impl::peek(const Request& request) {
  Answer answer;
  policy::Bill bill;
  if (auto begun = begin(rules.load(), request, bill, answer); !begun) return fail(begun.error());
  if (answer.allowed && bill.charges.size() > 0) {
    const auto verdict = gate::look(limiter, bill.charges.all());
    if (!verdict) return fail(verdict.error());
    gate::write_verdict(request, bill, *verdict, answer);
  }
  if (!answer.allowed) return answer;
  for (const policy::ShadowBill& shadow : bill.shadows) {
    if (const auto verdict = gate::look(limiter, shadow.charges))
      gate::write_shadow(shadow, verdict->decisions, answer);
  }
  return answer;
}

Result<Answer> Gate::Impl::check_once(std::string_view id, const Request& request) {
  if (auto wrong = gate::refuse_id(id)) return fail(std::move(*wrong));
  Answer answer;
  policy::Bill bill;
  if (auto begun = begin(rules.load(), request, bill, answer); !begun) return fail(begun.error());
  bool is_repeated = false;
  if (answer.allowed && bill.charges.size() > 0) {
    const auto verdict = limiter.charge_once(gate::once_name(id, bill), bill.charges.all());
    if (!verdict) return fail(verdict.error());
    is_repeated = verdict->repeated;
    gate::write_verdict(request, bill, *verdict, answer);
  }
  if (!answer.allowed) {
    if (auto counted = charge_denied(bill, answer); !counted) return fail(counted.error());
  } else {
    ask_shadows(bill, answer, [&](const policy::ShadowBill& shadow) {
      return limiter.charge_once(gate::once_name(id, shadow, answer.rules->rule(shadow.rule).rule->name),
                                 shadow.charges);
    });
  }
  if (!is_repeated) post(bill, answer, Micros{0});
  count(request, bill, answer, Micros{0});
  return answer;
}

Result<RuleReservation> Gate::Impl::reserve(const Request& request, const ReserveOptions& options) {
  RuleReservation out{.id = std::string(options.id.empty() ? gate::kNothingReserved : options.id)};
  if (auto wrong = gate::refuse_id(out.id)) return fail(std::move(*wrong));
  if (request.cost < 0) return fail(ErrorCode::out_of_range, "the cost of a reservation must be 0 or more permits");
  policy::Bill bill;
  if (auto begun = begin(rules.load(), request, bill, out.answer); !begun) return fail(begun.error());
  if (out.answer.allowed && bill.charges.size() > 0 && gate::is_too_ambiguous(*out.answer.rules, request, bill)) {
    gate::deny_ambiguous(out.answer);
    bill.counts_denied = false;  // as for any path that is too ambiguous to charge
  }
  if (out.answer.allowed && bill.charges.size() > 0) {
    auto reserved = limiter.reserve(bill.charges.all(), options);
    if (!reserved) return fail(std::move(reserved.error()));
    out.id = std::move(reserved->id);
    gate::write_verdict(request, bill, reserved->verdict, out.answer);
  }
  if (!out.answer.allowed) {
    if (auto counted = charge_denied(bill, out.answer); !counted) return fail(counted.error());
  } else {
    ask_shadows(bill, out.answer, [&](const policy::ShadowBill& shadow) -> Result<Verdict> {
      return limiter.reserve(shadow.charges, {.id = out.id, .lasts = options.lasts}).map(&Reservation::verdict);
    });
  }
  post(bill, out.answer, Micros{0}, PostFree::no);
  count(request, bill, out.answer, Micros{0});
  return out;
}

Result<Answer> Gate::Impl::settle(std::string_view id, const Request& request) {
  if (auto wrong = gate::refuse_id(id)) return fail(std::move(*wrong));
  Answer answer;
  policy::Bill bill;
  if (auto begun = begin(rules.load(), request, bill, answer); !begun) return fail(begun.error());
  if (!answer.allowed) gate::clear(answer);  // what has happened cannot be denied
  std::vector<std::int64_t> reserved;
  if (bill.charges.size() > 0) {
    auto verdict = gate::settle_all(limiter, id, bill.charges.all(), kNotReserved);
    if (!verdict) return fail(verdict.error());
    gate::write_verdict(request, bill, *verdict, answer);
    reserved = std::move(verdict->reserved);
  }
  std::vector<std::int64_t> free_reserved;
  for (const policy::FreeCharge& one : bill.free) {
    const auto settled = gate::settle_free(limiter, id, *answer.rules, one);
    if (!settled) return fail(settled.error());
    free_reserved.push_back(*settled);
  }
  post_settled(bill, answer, reserved, free_reserved);
  ask_shadows(bill, answer, [&](const policy::ShadowBill& shadow) { return limiter.commit(id, shadow.charges); });
  return answer;
}

Result<bool> Gate::Impl::reset(std::string_view name, const Request& request) {
  const auto book = rules.load();
  if (book == nullptr) return fail(ErrorCode::not_found, "there are no rules yet");
  const auto number = book->find_rule(name);
  if (!number) return fail(gate::no_such_rule(*book, name));
  policy::Facts facts(request, book->reading());
  if (auto wrong = facts.refuse()) return fail(std::move(*wrong));
  policy::KeyArena arena;
  const auto keys = book->keys_of(*number, facts, arena);
  if (!keys) return fail(keys.error());
  bool found = false;
  for (const std::string_view key : *keys) {
    const auto forgotten = limiter.reset_rule_key(key);
    if (!forgotten) return fail(forgotten.error());
    found = found || *forgotten;
  }
  return found;
}

}  // namespace weir
