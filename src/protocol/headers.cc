// Writes rate limit header fields. See headers.h.
#include "protocol/headers.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "protocol/seconds.h"

namespace weir::protocol {
namespace {

constexpr std::int64_t kFieldIntegerMax = 999'999'999'999'999;  // of a structured header field

void append_field_integer(std::string& out, std::int64_t value) {
  base::append_digits(out, std::clamp(value, std::int64_t{0}, kFieldIntegerMax));
}

bool is_bucket(Algorithm algorithm) {
  return algorithm == Algorithm::token_bucket || algorithm == Algorithm::leaky_bucket ||
         algorithm == Algorithm::leaky_meter;
}

Micros window(const Limit& limit) {
  if (!is_bucket(limit.algorithm)) return Micros{limit.period_us};
  const std::int64_t units = limit.capacity * limit.weight;  // below 2^53 for every compiled limit
  return Micros{units / limit.rate + (units % limit.rate > 0 ? 1 : 0)};
}

// Appends `;w=60` if the limit has a window of constant length.
void append_window(std::string& out, const Limit& limit) {
  if (limit.algorithm == Algorithm::concurrency || limit.calendar != nullptr) return;
  out.append(";w=");
  append_field_integer(out, std::max<std::int64_t>(1, seconds_ceil(window(limit))));
}

void append_quoted(std::string& out, std::string_view name) { out.append("\"").append(name).append("\""); }

// Older forms have no names: `100;w=60`.
void append_nameless_policies(std::string& out, std::span<const LimitAnswer> limits) {
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (i > 0) out.append(", ");
    append_field_integer(out, limits[i].limit->capacity);
    append_window(out, *limits[i].limit);
  }
}

void append_policies(std::string& out, std::span<const LimitAnswer> limits) {
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (i > 0) out.append(", ");
    const Limit& limit = *limits[i].limit;
    append_quoted(out, limits[i].name);
    append_field_integer(out.append(";q="), limit.capacity);
    if (limit.algorithm == Algorithm::concurrency) out.append(";qu=\"concurrent-requests\"");
    append_window(out, limit);
  }
}

bool can_never_pass(const Decision& decision) { return !decision.allowed && decision.retry_after == kNever; }

// Returns the seconds to wait until more permits are available; 0 if waiting does not help. Retry-After must not be
// earlier, so on a denial both have the same value.
std::int64_t more_after_seconds(const Decision& decision) {
  if (can_never_pass(decision)) return 0;
  return seconds_ceil(decision.allowed ? decision.reset_after : decision.retry_after);
}

// Clients expect X-RateLimit-Reset in every response. It is omitted only if there will be no reset.
bool has_reset(const Decision& decision) {
  return decision.reset_after > Micros{0} || (decision.limit > 0 && !can_never_pass(decision));
}

constexpr std::string_view kLineEnd = "\r\n";

std::string& begin_field(std::string& out, std::string_view name) { return out.append(name).append(": "); }

void write_number(std::string& out, std::string_view name, std::int64_t value) {
  base::append_digits(begin_field(out, name), value);
  out.append(kLineEnd);
}

void write_nameless_policies(std::string& out, std::span<const LimitAnswer> limits) {
  append_nameless_policies(begin_field(out, "RateLimit-Policy"), limits);
  out.append(kLineEnd);
}

void write_legacy(std::string& out, const Decision& decision, Micros now) {
  write_number(out, "X-RateLimit-Limit", decision.limit);
  write_number(out, "X-RateLimit-Remaining", decision.remaining);
  if (has_reset(decision)) write_number(out, "X-RateLimit-Reset", seconds_ceil(now + decision.reset_after));
}

// Drafts -03 and -06 have one field for each number. Only -06 has a field for the windows.
void write_three(std::string& out, const ReportedLimits& reported, const Decision& decision, bool has_policy_field) {
  append_field_integer(begin_field(out, "RateLimit-Limit"), decision.limit);
  if (!has_policy_field) append_nameless_policies(out.append(", "), reported.limits);
  out.append(kLineEnd);
  write_number(out, "RateLimit-Remaining", decision.remaining);
  write_number(out, "RateLimit-Reset", more_after_seconds(decision));
  if (has_policy_field) write_nameless_policies(out, reported.limits);
}

void write_draft_07(std::string& out, const ReportedLimits& reported, const Decision& decision) {
  write_nameless_policies(out, reported.limits);
  append_field_integer(begin_field(out, "RateLimit").append("limit="), decision.limit);
  append_field_integer(out.append(", remaining="), decision.remaining);
  append_field_integer(out.append(", reset="), more_after_seconds(decision));
  out.append(kLineEnd);
}

void write_draft_11(std::string& out, const ReportedLimits& reported, const Decision& decision) {
  append_policies(begin_field(out, "RateLimit-Policy"), reported.limits);
  out.append(kLineEnd);
  append_quoted(begin_field(out, "RateLimit"), reported.limits[reported.binding].name);
  append_field_integer(out.append(";r="), decision.remaining);
  if (const std::int64_t wait = more_after_seconds(decision); wait > 0) append_field_integer(out.append(";t="), wait);
  out.append(kLineEnd);
}

}  // namespace

void append_rate_limit_fields(std::string& out, ReportedLimits reported, const AnswerStyle& style, Micros now) {
  WEIR_ASSERT(reported.binding < reported.limits.size());
  if (style.limits == ShownLimits::binding) {
    reported = {reported.limits.subspan(reported.binding, 1), 0, reported.retry_after};
  }
  Decision decision = reported.limits[reported.binding].decision;
  decision.retry_after = reported.retry_after;
  if (style.x_ratelimit) write_legacy(out, decision, now);
  switch (style.rate_limit) {
    case RateLimitFields::none:
      break;
    case RateLimitFields::draft_03:
      write_three(out, reported, decision, false);
      break;
    case RateLimitFields::draft_06:
      write_three(out, reported, decision, true);
      break;
    case RateLimitFields::draft_07:
      write_draft_07(out, reported, decision);
      break;
    case RateLimitFields::draft_11:
      write_draft_11(out, reported, decision);
      break;
  }
  if (!style.retry_after || decision.allowed || can_never_pass(decision)) return;
  write_number(out, "Retry-After", std::max<std::int64_t>(1, seconds_ceil(decision.retry_after)));
}

}  // namespace weir::protocol
