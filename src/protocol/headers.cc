// Writes rate limit header fields. See headers.h.
#include "protocol/headers.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "protocol/seconds.h"

namespace weir::protocol {
namespace {

constexpr std::int64_t kFieldIntegerMax = 999'999'999'999'999;  // of a structured header field

void put_field_integer(base::Pen& out, std::int64_t value) {
  out.put_digits(std::clamp(value, std::int64_t{0}, kFieldIntegerMax));
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

// Writes `;w=60` if the limit has a window of constant length.
void put_window(base::Pen& out, const Limit& limit) {
  if (limit.algorithm == Algorithm::concurrency || limit.calendar != nullptr) return;
  out.put(";w=");
  put_field_integer(out, std::max<std::int64_t>(1, seconds_ceil(window(limit))));
}

void put_quoted(base::Pen& out, std::string_view name) {
  out.put("\"");
  out.put(name);
  out.put("\"");
}

// Older forms have no names: `100;w=60`.
void put_nameless_policies(base::Pen& out, std::span<const LimitAnswer> limits) {
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (i > 0) out.put(", ");
    put_field_integer(out, limits[i].limit->capacity);
    put_window(out, *limits[i].limit);
  }
}

void put_policies(base::Pen& out, std::span<const LimitAnswer> limits) {
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (i > 0) out.put(", ");
    const Limit& limit = *limits[i].limit;
    put_quoted(out, limits[i].name);
    out.put(";q=");
    put_field_integer(out, limit.capacity);
    if (limit.algorithm == Algorithm::concurrency) out.put(";qu=\"concurrent-requests\"");
    put_window(out, limit);
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

void put_number(base::Pen& out, std::string_view name, std::int64_t value) {
  out.put(name);
  out.put_digits(value);
  out.put("\r\n");
}

void put_nameless_policy_field(base::Pen& out, std::span<const LimitAnswer> limits) {
  out.put("RateLimit-Policy: ");
  put_nameless_policies(out, limits);
  out.put("\r\n");
}

void put_legacy(base::Pen& out, const Decision& decision, Micros now) {
  put_number(out, "X-RateLimit-Limit: ", decision.limit);
  put_number(out, "X-RateLimit-Remaining: ", decision.remaining);
  if (has_reset(decision)) put_number(out, "X-RateLimit-Reset: ", seconds_ceil(now + decision.reset_after));
}

// Drafts -03 and -06 have one field for each number. Only -06 has a field for the windows.
void put_three(base::Pen& out, const ReportedLimits& reported, const Decision& decision, bool has_policy_field) {
  out.put("RateLimit-Limit: ");
  put_field_integer(out, decision.limit);
  if (!has_policy_field) {
    out.put(", ");
    put_nameless_policies(out, reported.limits);
  }
  out.put("\r\n");
  put_number(out, "RateLimit-Remaining: ", decision.remaining);
  put_number(out, "RateLimit-Reset: ", more_after_seconds(decision));
  if (has_policy_field) put_nameless_policy_field(out, reported.limits);
}

void put_draft_07(base::Pen& out, const ReportedLimits& reported, const Decision& decision) {
  put_nameless_policy_field(out, reported.limits);
  out.put("RateLimit: limit=");
  put_field_integer(out, decision.limit);
  out.put(", remaining=");
  put_field_integer(out, decision.remaining);
  out.put(", reset=");
  put_field_integer(out, more_after_seconds(decision));
  out.put("\r\n");
}

void put_draft_11(base::Pen& out, const ReportedLimits& reported, const Decision& decision) {
  out.put("RateLimit-Policy: ");
  put_policies(out, reported.limits);
  out.put("\r\nRateLimit: ");
  put_quoted(out, reported.limits[reported.binding].name);
  out.put(";r=");
  put_field_integer(out, decision.remaining);
  if (const std::int64_t wait = more_after_seconds(decision); wait > 0) {
    out.put(";t=");
    put_field_integer(out, wait);
  }
  out.put("\r\n");
}

void put_fields(base::Pen& out, const ReportedLimits& reported, const AnswerStyle& style, Micros now) {
  Decision decision = reported.limits[reported.binding].decision;
  decision.retry_after = reported.retry_after;
  if (style.x_ratelimit) put_legacy(out, decision, now);
  switch (style.rate_limit) {
    case RateLimitFields::none:
      break;
    case RateLimitFields::draft_03:
      put_three(out, reported, decision, false);
      break;
    case RateLimitFields::draft_06:
      put_three(out, reported, decision, true);
      break;
    case RateLimitFields::draft_07:
      put_draft_07(out, reported, decision);
      break;
    case RateLimitFields::draft_11:
      put_draft_11(out, reported, decision);
      break;
  }
  if (!style.retry_after || decision.allowed || can_never_pass(decision)) return;
  put_number(out, "Retry-After: ", std::max<std::int64_t>(1, seconds_ceil(decision.retry_after)));
}

// More than the fields can have. The longest fixed part, of draft -11 on a denial, has fewer than 300 bytes; a limit
// adds its name and fewer than 80.
std::size_t bytes_max(const ReportedLimits& reported) {
  std::size_t bytes = 512 + reported.limits[reported.binding].name.size();
  for (const LimitAnswer& limit : reported.limits) bytes += 96 + limit.name.size();
  return bytes;
}

}  // namespace

void append_rate_limit_fields(std::string& out, ReportedLimits reported, const AnswerStyle& style, Micros now) {
  WEIR_ASSERT(reported.binding < reported.limits.size());
  if (style.limits == ShownLimits::binding) {
    reported = {reported.limits.subspan(reported.binding, 1), 0, reported.retry_after};
  }
  const std::size_t before = out.size(), most = bytes_max(reported);
  out.resize(before + most);
  base::Pen pen(out.data() + before);
  put_fields(pen, reported, style, now);
  const auto after = static_cast<std::size_t>(pen.at() - out.data());
  WEIR_ASSERT(after <= before + most);
  out.resize(after);
}

}  // namespace weir::protocol
