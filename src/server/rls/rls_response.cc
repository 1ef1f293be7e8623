// Builds the response to Envoy: statuses for Envoy, header fields and body for the client. See rls_service.h.
//
// A status shows the tighter of the rules' limit and the limit beside them. The client sees the tightest limit of all
// descriptors. Tested by rls_service_test.cc and rls_envoy_test.cc.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "protocol/seconds.h"
#include "server/rls/rls_service.h"
#include "server/rls/rls_units.h"

namespace weir {
namespace {

constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();

std::uint32_t capped(std::int64_t value) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, std::numeric_limits<std::uint32_t>::max()));
}

// Calendar windows have no period; the quota's text, such as `100/calendar_month`, gives the unit.
RlsUnit unit_of(const LimitAnswer& answer) {
  if (answer.limit->period_us == 0) {
    if (answer.quota.find("calendar_day") != answer.quota.npos) return RlsUnit::day;
    if (answer.quota.find("calendar_week") != answer.quota.npos) return RlsUnit::week;
    if (answer.quota.find("calendar_month") != answer.quota.npos) return RlsUnit::month;
    return RlsUnit::year;
  }
  return rls_unit_of(answer.limit->period_us);
}

std::optional<std::int64_t> wait_seconds(Micros wait) {
  if (wait == kNever) return std::nullopt;
  return seconds_ceil(wait);
}

// The time to the end of the window, even if nothing in it is used, in whole seconds, as in the reference service.
std::int64_t window_left(const Limit& limit, Micros now) {
  const std::int64_t period = limit.period_us / 1'000'000;
  return period - now.count() / 1'000'000 % period;
}

}  // namespace

RlsService::Told RlsService::told_by_rules(const Part& part) const {
  if (!part.is_by_rules) return {};
  const Answer& answer = answer_of(part);
  return {&part, nullptr, answer.binding_limit(), answer.retry_after, !answer.allowed};
}

RlsService::Told RlsService::told_by_own(const Part& part) const {
  const Own* const own = own_of(part);
  if (own == nullptr) return {};
  const bool is_over = own->is_over && own->hold != Hold::shadow;
  return {&part, own, &own->answer, own->answer.decision.retry_after, is_over};
}

namespace {

// The denial with the longest wait or, without denials, the fewest remaining permits, as in Envoy's own header
// fields.
template <class Told>
bool is_tighter(const Told& told, const Told& than) {
  if (told.limit == nullptr && !told.is_over) return false;
  if (than.part == nullptr || (than.limit == nullptr && !than.is_over)) return true;
  if (told.is_over != than.is_over) return told.is_over;
  if (told.is_over) return told.retry_after > than.retry_after;
  return told.limit->decision.remaining < than.limit->decision.remaining;
}

}  // namespace

void RlsService::respond() {
  response_.overall_code = is_denied_ ? RlsCode::over_limit : RlsCode::ok;
  response_.statuses.clear();
  response_.response_headers.clear();
  response_.raw_body = {};
  response_.dynamic_metadata.reset();
  const Micros now = limiter_.now();
  for (const Part& part : parts_) {
    add_status(part, now);
    const Own* const own = own_of(part);
    if (own != nullptr && own->found.rule != nullptr) count(part, *own);
  }
  const Told told = binding();
  if (told.part == nullptr) return;
  if (told.limit != nullptr) tell_client(told, now);
  if (told.is_over) tell_denial(told, now);
  note(told, now);
}

// What the client sees: of a denial, the limit that denies; otherwise, what remains. Shadow limits do not count.
RlsService::Told RlsService::binding() const {
  Told best;
  const bool is_spent = is_quota_spent();
  for (const Part& part : parts_) {
    const Told by_own = told_by_own(part);
    const bool counts = by_own.own != nullptr && (by_own.own->hold == Hold::enforced ||
                                                  (by_own.own->hold == Hold::quota && by_own.is_over == is_spent));
    for (const Told& told : {told_by_rules(part), counts ? by_own : Told{}}) {
      if (told.part != nullptr && told.is_over == is_denied_ && is_tighter(told, best)) best = told;
    }
  }
  return best;
}

void RlsService::add_status(const Part& part, Micros now) {
  const Told by_rules = told_by_rules(part), by_own = told_by_own(part);
  const Told& told = by_own.part != nullptr && !is_tighter(by_rules, by_own) ? by_own : by_rules;
  RlsStatus& status = response_.statuses.emplace_back();
  status.code = told.is_over ? RlsCode::over_limit : RlsCode::ok;
  if (told.limit == nullptr) {
    const bool is_exempt = part.is_unlimited || answer_of(part).why == Why::exempt;
    if (!told.is_over && is_exempt) status.limit_remaining = kUnlimited;
    return;
  }
  const Decision& decision = told.limit->decision;
  const std::int64_t seconds = seconds_ceil(decision.reset_after);
  status.seconds_until_reset = told.is_over ? std::max<std::int64_t>(1, seconds) : seconds;
  if (told.own == nullptr) {
    status.current_limit = RlsLimit{capped(told.limit->limit->permits), unit_of(*told.limit), told.limit->name};
    status.limit_remaining = capped(decision.remaining);
    return;
  }
  status.current_limit = told.own->said;
  status.limit_remaining = told.own->is_over ? 0 : capped(decision.remaining);
  if (told.limit->limit->algorithm == Algorithm::fixed_window) {
    status.seconds_until_reset = window_left(*told.limit->limit, now);
  }
}

// Header fields in the policy's style. X-RateLimit-* are left to Envoy, which creates them from the statuses.
void RlsService::tell_client(const Told& told, Micros now) {
  limits_.clear();
  const auto add = [this](const LimitAnswer& limit) {
    if (std::ranges::find(limits_, limit.name, &LimitAnswer::name) == limits_.end()) limits_.push_back(limit);
  };
  add(*told.limit);
  for (const Part& part : parts_) {
    const Own* const own = own_of(part);
    if (own != nullptr && own->hold != Hold::shadow) add(own->answer);
    if (part.is_by_rules) std::ranges::for_each(answer_of(part).limits, add);
  }
  AnswerStyle style = style_of(told);
  style.x_ratelimit = false;
  fields_.clear();
  append_rate_limit_fields(fields_, {limits_, 0, told.retry_after}, style, now);
  add_fields();
  response_.dynamic_metadata = RlsMetadata{.rule = told.limit->rule,
                                           .allowed = !told.is_over,
                                           .remaining = told.limit->decision.remaining,
                                           .retry_after = wait_seconds(told.retry_after),
                                           .decided_by = told.limit->decision.decided_by};
}

// Converts HTTP/1.1 header lines to pairs with lower-case names.
void RlsService::add_fields() {
  for (std::size_t begin = 0; begin < fields_.size();) {
    const std::size_t colon = fields_.find(": ", begin), end = fields_.find("\r\n", begin);
    const auto name = std::span(fields_).subspan(begin, colon - begin);
    std::ranges::transform(name, name.begin(), [](char c) { return lower(c); });
    response_.response_headers.push_back(
        {{name.data(), name.size()}, std::string_view(fields_).substr(colon + 2, end - colon - 2)});
    begin = end + 2;
  }
}

const AnswerStyle& RlsService::style_of(const Told& told) const {
  static constexpr AnswerStyle kUsual{};
  if (!told.part->is_by_rules) return kUsual;
  const AnswerStyle* style = answer_of(*told.part).style;
  return style == nullptr ? kUsual : *style;
}

void RlsService::tell_denial(const Told& told, Micros now) {
  CheckOutcome outcome;
  if (told.own != nullptr) {
    outcome.by_limit = told.limit;
  } else {
    outcome.by_rules = &answer_of(*told.part);
  }
  http_.clear();
  write_check(http_, outcome, style_of(told), now);
  response_.raw_body = http_.body;
  response_.response_headers.push_back({"content-type", http_.content_type});
}

void RlsService::note(const Told& told, Micros now) const {
  if (told.own == nullptr) {
    return denials.note(now, answer_of(*told.part), views_of(*told.part).requests[told.part->place]);
  }
  const Own& own = *told.own;
  if (own.found.rule == nullptr) return denials.note(now, own.found.key, own.answer.decision);
  denials.note(now, own.answer, own.found.key);
}

// Counts hits like the reference service's statistics, but each hit in one counter only.
void RlsService::count(const Part& part, const Own& own) {
  if (part.is_question || part.cost < 0) return;
  const EnvoyRule& rule = *own.found.rule;
  EnvoyCounts& counts = own.found.stat.empty()
                            ? *view_->counts[rule.place]
                            : envoy->tally().counts(rule.domain, own.found.stat, EnvoyTally::Name::with_values);
  const auto hits = static_cast<std::uint64_t>(part.cost);
  if (own.is_over) {
    return counts.add(own.hold == Hold::shadow ? EnvoyResult::shadow_mode : EnvoyResult::over_limit, hits);
  }
  const std::int64_t spent = rule.said.requests_per_unit - own.answer.decision.remaining;
  const std::int64_t near_from = std::int64_t{rule.said.requests_per_unit} * 4 / 5;
  const auto near = static_cast<std::uint64_t>(std::clamp<std::int64_t>(spent - near_from, 0, part.cost));
  if (near > 0) counts.add(EnvoyResult::near_limit, near);
  if (hits > near) counts.add(EnvoyResult::within_limit, hits - near);
}

}  // namespace weir
