// Charges the limits of a request's descriptors: all or none, plus shadow limits and queries. See rls_service.h.
//
// Queries are looked up first, and so are quotas, of which one with permits left is enough. Shadow limits are charged
// last, and only if the request passes, as with shadow rules. If another request uses up a quota in between, that
// quota drops out and the charge is repeated without it; the failed attempt has charged nothing. Tested by
// rls_service_test.cc and rls_envoy_test.cc.
#include <algorithm>
#include <utility>

#include "server/rls/rls_service.h"

namespace weir::server::rls {

Result<void> RlsService::answer_all() {
  for (const Part& part : parts_) {
    const Own* const own = own_of(part);
    Result<void> looked{};
    if (part.is_query) {
      looked = look(part);
    } else if (own != nullptr && own->hold == Hold::quota) {
      looked = look_at_own(part);
    }
    if (!looked) return looked;
  }
  is_denied_ = is_refused();
  if (!is_denied_) {
    if (auto charged = charge(); !charged) return charged;
  } else {
    for (const Part& part : parts_) {
      if (part.is_query) continue;
      if (auto looked = look(part); !looked) return looked;
    }
  }
  return is_known_ && view_->counts_denied ? charge_denied() : Result<void>{};
}

Result<void> RlsService::look(const Part& part) {
  if (auto looked = look_at_rules(part); !looked) return looked;
  return look_at_own(part);
}

Result<void> RlsService::look_at_rules(const Part& part) {
  if (!part.is_by_rules) return {};
  Views& views = part.is_query ? queries_ : charged_;
  Answer& answer = views.answers[part.place];
  if (gate_ == nullptr) {
    answer = Answer{.allowed = true};
    return {};
  }
  auto looked = gate_->peek(views.requests[part.place]);
  if (!looked) return fail(std::move(looked.error()));
  answer = *std::move(looked);
  return {};
}

Charge RlsService::charge_of(const Own& own, std::int64_t cost) {
  return {.key = own.found.key,
          .limit = own.answer.limit,
          .cost = cost,
          .space = KeySpace::envoy,
          .family = own.found.rule != nullptr ? own.found.rule->family : 0};
}

Result<void> RlsService::look_at_own(const Part& part) {
  Own* const own = own_of(part);
  if (own == nullptr) return {};
  auto decision = limiter_.preview(charge_of(*own, part.cost));
  if (!decision) return fail(std::move(decision.error()));
  own->answer.decision = *decision;
  own->is_over = !decision->allowed;
  return {};
}

// Denied by a query, or because every quota is used up: then nothing is charged.
bool RlsService::is_refused() const {
  const auto refuses = [this](const Part& part) {
    if (!part.is_query) return false;
    const Own* const own = own_of(part);
    return (part.is_by_rules && !answer_of(part).allowed) ||
           (own != nullptr && own->hold == Hold::enforced && own->is_over);
  };
  return std::ranges::any_of(parts_, refuses) || is_quota_used_up();
}

// There are quotas, and all are used up. A shadow quota never counts as used up.
bool RlsService::is_quota_used_up() const {
  bool has_quota = false, has_capacity = false;
  for (const Part& part : parts_) {
    const Own* const own = own_of(part);
    if (own == nullptr || own->found.rule == nullptr || !own->found.rule->quota_mode) continue;
    has_quota = true;
    has_capacity = has_capacity || own->hold == Hold::shadow || !own->is_over;
  }
  return has_quota && !has_capacity;
}

Result<void> RlsService::charge() {
  for (;;) {
    collect_charges();
    const auto charged = charge_event();
    if (!charged) return fail(charged.error());
    take_decisions(*charged);
    is_denied_ = !*charged;
    if (!is_denied_ || !may_skip_used_up_quotas()) break;
  }
  for (const Part& part : parts_) {
    Own* const own = own_of(part);
    if (own == nullptr || own->hold != Hold::shadow || part.is_query) continue;
    if (auto done = is_denied_ ? look_at_own(part) : charge_shadow(part, *own); !done) return done;
  }
  return {};
}

// Two descriptors with the same key charge the sum of both, in order, as in the reference service.
void RlsService::collect_charges() {
  also_.clear();
  for (const Part& part : parts_) {
    Own* const own = own_of(part);
    if (own == nullptr) continue;
    own->charge = kNone;
    if (part.is_query || own->hold == Hold::shadow || (own->hold == Hold::quota && own->is_over)) continue;
    const auto same = std::ranges::find(also_, std::string_view(own->found.key), &Charge::key);
    own->charge = static_cast<std::size_t>(same - also_.begin());
    if (same == also_.end()) {
      also_.push_back(charge_of(*own, part.cost));
    } else {
      same->cost += part.cost;
    }
    own->cost_up_to = also_[own->charge].cost;
  }
}

// Returns whether the request passed.
Result<bool> RlsService::charge_event() {
  decisions_.assign(also_.size(), {});
  const std::span requests(charged_.requests);
  const std::span answers = std::span(charged_.answers).first(requests.size());
  if (gate_ != nullptr) {
    const auto rules = gate_->rules();
    if (requests.size() != 1 || !also_.empty()) {
      return gate_->check_together(rules, requests, answers, also_, decisions_);
    }
    if (auto checked = gate_->check(rules, requests[0], answers[0]); !checked) return fail(checked.error());
    return answers[0].allowed;  // the usual case
  }
  for (Answer& answer : answers) answer = Answer{.allowed = true};
  if (also_.empty()) return true;
  auto verdict = limiter_.check_all(also_);
  if (!verdict) return fail(std::move(verdict.error()));
  decisions_ = std::move(verdict->decisions);
  return verdict->allowed;
}

void RlsService::take_decisions(bool is_charged) {
  for (const Part& part : parts_) {
    Own* const own = own_of(part);
    if (own == nullptr || own->charge == kNone) continue;
    Decision decision = decisions_[own->charge];
    const std::int64_t all = also_[own->charge].cost;
    if (is_charged) {
      decision.remaining += all - own->cost_up_to;
    } else if (!decision.allowed && all != part.cost && own->cost_up_to <= decision.remaining) {
      decision.allowed = true;
      decision.retry_after = Micros{0};
    }
    own->answer.decision = decision;
    own->is_over = !decision.allowed;
  }
}

// Only quotas denied the charge, and other quotas have permits left.
bool RlsService::may_skip_used_up_quotas() const {
  const std::span answers = std::span(charged_.answers).first(charged_.requests.size());
  if (!std::ranges::all_of(answers, &Answer::allowed)) return false;
  bool is_used_up = false;
  for (const Part& part : parts_) {
    const Own* const own = own_of(part);
    if (own == nullptr || own->charge == kNone || !own->is_over) continue;
    if (own->hold != Hold::quota) return false;
    is_used_up = true;
  }
  return is_used_up && !is_quota_used_up();
}

Result<void> RlsService::charge_shadow(const Part& part, Own& own) {
  const Charge charge = charge_of(own, part.cost);
  const auto verdict = limiter_.check_all({&charge, 1});
  if (!verdict) return fail(verdict.error());
  own.answer.decision = verdict->binding_decision();
  own.is_over = !verdict->allowed;
  return {};
}

// If the files count denied requests: charges all limits of a denied request, or those that a request which passed
// was over.
Result<void> RlsService::charge_denied() {
  also_.clear();
  for (const Part& part : parts_) {
    const Own* const own = own_of(part);
    if (own == nullptr || own->found.rule == nullptr || part.is_query || part.cost < 0) continue;
    if (is_denied_ || own->is_over) also_.push_back(charge_of(*own, part.cost));
  }
  if (also_.empty()) return {};
  auto verdict = limiter_.overdraw(also_);
  if (!verdict) return fail(std::move(verdict.error()));
  return {};
}

}  // namespace weir::server::rls
