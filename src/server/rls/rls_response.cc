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
#include "server/loop/overload.h"
#include "server/rls/rls_service.h"
#include "server/rls/rls_units.h"

namespace weir::server::rls {
namespace {

constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();

std::uint32_t capped(std::int64_t value) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, std::numeric_limits<std::uint32_t>::max()));
}

// Calendar windows have no period; the quota's text, such as `100/calendar_month`, gives the unit.
protocol::RlsUnit unit_of(const LimitAnswer& answer) {
  if (answer.limit->period_us == 0) {
    if (answer.quota.find("calendar_day") != answer.quota.npos) return protocol::RlsUnit::day;
    if (answer.quota.find("calendar_week") != answer.quota.npos) return protocol::RlsUnit::week;
    if (answer.quota.find("calendar_month") != answer.quota.npos) return protocol::RlsUnit::month;
    return protocol::RlsUnit::year;
  }
  return rls_unit_of(answer.limit->period_us);
}

std::optional<std::int64_t> wait_seconds(Micros wait) {
  if (wait == kNever) return std::nullopt;
  return protocol::seconds_ceil(wait);
}

// The time to the end of the window, even if nothing in it is used, in whole seconds, as in the reference service.
std::int64_t window_left(const Limit& limit, Micros now) {
  const std::int64_t period = limit.period_us / 1'000'000;
  return period - now.count() / 1'000'000 % period;
}

}  // namespace

RlsService::Report RlsService::report_by_rules(const Part& part) const {
  if (!part.is_by_rules) return {};
  const Answer& answer = answer_of(part);
  return {&part, nullptr, answer.binding_limit(), answer.retry_after, !answer.allowed};
}

RlsService::Report RlsService::report_by_own(const Part& part) const {
  const Own* const own = own_of(part);
  if (own == nullptr) return {};
  const bool is_over = own->is_over && own->hold != Hold::shadow;
  return {&part, own, &own->answer, own->answer.decision.retry_after, is_over};
}

namespace {

// The denial with the longest wait or, without denials, the fewest remaining permits, as in Envoy's own header
// fields.
template <class Report>
bool is_tighter(const Report& report, const Report& than) {
  if (report.limit == nullptr && !report.is_over) return false;
  if (than.part == nullptr || (than.limit == nullptr && !than.is_over)) return true;
  if (report.is_over != than.is_over) return report.is_over;
  if (report.is_over) return report.retry_after > than.retry_after;
  return report.limit->decision.remaining < than.limit->decision.remaining;
}

}  // namespace

void RlsService::respond() {
  response_.overall_code = is_denied_ ? protocol::RlsCode::over_limit : protocol::RlsCode::ok;
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
  const Report report = binding();
  if (report.part == nullptr) return;
  if (report.limit != nullptr) describe_limit(report, now);
  if (report.is_over) describe_denial(report, now);
  note(report, now);
}

// What the client sees: of a denial, the limit that denies; otherwise, what remains. Shadow limits do not count.
RlsService::Report RlsService::binding() const {
  Report best;
  const bool is_used_up = is_quota_used_up();
  for (const Part& part : parts_) {
    const Report by_own = report_by_own(part);
    const bool counts = by_own.own != nullptr && (by_own.own->hold == Hold::enforced ||
                                                  (by_own.own->hold == Hold::quota && by_own.is_over == is_used_up));
    for (const Report& report : {report_by_rules(part), counts ? by_own : Report{}}) {
      if (report.part != nullptr && report.is_over == is_denied_ && is_tighter(report, best)) best = report;
    }
  }
  return best;
}

void RlsService::add_status(const Part& part, Micros now) {
  const Report by_rules = report_by_rules(part), by_own = report_by_own(part);
  const Report& report = by_own.part != nullptr && !is_tighter(by_rules, by_own) ? by_own : by_rules;
  protocol::RlsStatus& status = response_.statuses.emplace_back();
  status.code = report.is_over ? protocol::RlsCode::over_limit : protocol::RlsCode::ok;
  if (report.limit == nullptr) {
    const bool is_exempt = part.is_unlimited || answer_of(part).why == Why::exempt;
    if (!report.is_over && is_exempt) status.limit_remaining = kUnlimited;
    return;
  }
  const Decision& decision = report.limit->decision;
  const std::int64_t seconds = protocol::seconds_ceil(decision.reset_after);
  status.seconds_until_reset = report.is_over ? std::max<std::int64_t>(1, seconds) : seconds;
  if (report.own == nullptr) {
    status.current_limit =
        protocol::RlsLimit{capped(report.limit->limit->permits), unit_of(*report.limit), report.limit->name};
    status.limit_remaining = capped(decision.remaining);
    return;
  }
  status.current_limit = report.own->said;
  status.limit_remaining = report.own->is_over ? 0 : capped(decision.remaining);
  if (report.limit->limit->algorithm == Algorithm::fixed_window) {
    status.seconds_until_reset = window_left(*report.limit->limit, now);
  }
}

// Header fields in the policy's style. X-RateLimit-* are left to Envoy, which creates them from the statuses.
void RlsService::describe_limit(const Report& report, Micros now) {
  limits_.clear();
  const auto add = [this](const LimitAnswer& limit) {
    if (std::ranges::find(limits_, limit.name, &LimitAnswer::name) == limits_.end()) limits_.push_back(limit);
  };
  add(*report.limit);
  for (const Part& part : parts_) {
    const Own* const own = own_of(part);
    if (own != nullptr && own->hold != Hold::shadow) add(own->answer);
    if (part.is_by_rules) std::ranges::for_each(answer_of(part).limits, add);
  }
  AnswerStyle style = style_of(report);
  style.x_ratelimit = false;
  fields_.clear();
  protocol::append_rate_limit_fields(fields_, {limits_, 0, report.retry_after}, style, now);
  add_fields();
  response_.dynamic_metadata = protocol::RlsMetadata{.rule = report.limit->rule,
                                                     .allowed = !report.is_over,
                                                     .remaining = report.limit->decision.remaining,
                                                     .retry_after = wait_seconds(report.retry_after),
                                                     .decided_by = report.limit->decision.decided_by};
}

// Converts HTTP/1.1 header lines to pairs with lower-case names.
void RlsService::add_fields() {
  for (std::size_t begin = 0; begin < fields_.size();) {
    const std::size_t colon = fields_.find(": ", begin), end = fields_.find("\r\n", begin);
    const auto name = std::span(fields_).subspan(begin, colon - begin);
    std::ranges::transform(name, name.begin(), [](char c) { return base::lower(c); });
    response_.response_headers.push_back(
        {{name.data(), name.size()}, std::string_view(fields_).substr(colon + 2, end - colon - 2)});
    begin = end + 2;
  }
}

const AnswerStyle& RlsService::style_of(const Report& report) const {
  static constexpr AnswerStyle kUsual{};
  if (!report.part->is_by_rules) return kUsual;
  const AnswerStyle* style = answer_of(*report.part).style;
  return style == nullptr ? kUsual : *style;
}

void RlsService::describe_denial(const Report& report, Micros now) {
  protocol::CheckOutcome outcome;
  if (report.own != nullptr) {
    outcome.by_limit = report.limit;
  } else {
    outcome.by_rules = &answer_of(*report.part);
  }
  http_.clear();
  protocol::write_check(http_, outcome, style_of(report), now);
  response_.raw_body = http_.body;
  response_.response_headers.push_back({"content-type", http_.content_type});
}

void RlsService::note(const Report& report, Micros now) const {
  if (report.own == nullptr) {
    return denials.note(now, answer_of(*report.part), views_of(*report.part).requests[report.part->place]);
  }
  const Own& own = *report.own;
  if (own.found.rule == nullptr) return denials.note(now, own.found.key, own.answer.decision);
  denials.note(now, own.answer, own.found.key);
}

// Counts hits like the reference service's statistics, but each hit in one counter only.
void RlsService::count(const Part& part, const Own& own) {
  if (part.is_query || part.cost < 0) return;
  const envoy::EnvoyRule& rule = *own.found.rule;
  envoy::EnvoyCounts& counts =
      own.found.stat.empty() ? *view_->counts[rule.place]
                             : envoy->tally().counts(rule.domain, own.found.stat, envoy::EnvoyTally::Name::with_values);
  const auto hits = static_cast<std::uint64_t>(part.cost);
  if (own.is_over) {
    return counts.add(own.hold == Hold::shadow ? envoy::EnvoyResult::shadow_mode : envoy::EnvoyResult::over_limit,
                      hits);
  }
  const std::int64_t used = rule.said.requests_per_unit - own.answer.decision.remaining;
  const std::int64_t near_from = std::int64_t{rule.said.requests_per_unit} * 4 / 5;
  const auto near = static_cast<std::uint64_t>(std::clamp<std::int64_t>(used - near_from, 0, part.cost));
  if (near > 0) counts.add(envoy::EnvoyResult::near_limit, near);
  if (hits > near) counts.add(envoy::EnvoyResult::within_limit, hits - near);
}

const protocol::RlsResponse& rls_overload_response(loop::OnOverload what) {
  static const protocol::RlsResponse denied{
      .overall_code = protocol::RlsCode::over_limit,
      .response_headers = {{"retry-after", loop::kOverloadRetrySeconds}, {"x-weir-overload", "denied"}}};
  static const protocol::RlsResponse allowed{.response_headers = {{"x-weir-overload", "allowed"}}};
  return what == loop::OnOverload::allow ? allowed : denied;
}

}  // namespace weir::server::rls
