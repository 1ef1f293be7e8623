// Writes rate limit header fields. See headers.h.
#include "protocol/headers.h"

#include <algorithm>
#include <cstdint>

#include "base/digits.h"
#include "protocol/seconds.h"

namespace weir {
namespace {

constexpr std::int64_t kFieldIntegerMax = 999'999'999'999'999;  // of a structured header field

void append_field_integer(std::string& out, std::int64_t value) {
  append_digits(out, std::clamp(value, std::int64_t{0}, kFieldIntegerMax));
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

void append_policy(std::string& out, const Limit& limit, std::string_view name) {
  append_quoted(out, name);
  out.append(";q=");
  append_field_integer(out, limit.capacity);
  if (limit.algorithm == Algorithm::concurrency) out.append(";qu=\"concurrent-requests\"");
  append_window(out, limit);
}

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
    append_policy(out, *limits[i].limit, limits[i].name);
  }
}

bool can_never_pass(const Decision& decision) { return !decision.allowed && decision.retry_after == kNever; }

// Returns when waiting helps, 0 if never. Retry-After must not be earlier, so on a denial both have the same value.
std::int64_t more_after_seconds(const Decision& decision) {
  if (can_never_pass(decision)) return 0;
  return seconds_ceil(decision.allowed ? decision.reset_after : decision.retry_after);
}

// Clients expect X-RateLimit-Reset always. It is omitted only where it would promise a reset that never comes.
bool has_reset(const Decision& decision) {
  return decision.reset_after > Micros{0} || (decision.limit > 0 && !can_never_pass(decision));
}

// Where the fields go: into header lines, or into a list.
struct Lines {
  std::string& out;
  std::string& begin(std::string_view name) { return out.append(name).append(": "); }
  void end() { out.append("\r\n"); }
};
struct OneByOne {
  std::vector<Header>& out;
  std::string& begin(std::string_view name) { return out.emplace_back(Header{name, {}}).value; }
  void end() {}
};

template <class Fields>
void write_number(Fields& fields, std::string_view name, std::int64_t value) {
  append_digits(fields.begin(name), value);
  fields.end();
}

template <class Fields>
void write_legacy(Fields& fields, const Decision& decision, Micros now) {
  write_number(fields, "X-RateLimit-Limit", decision.limit);
  write_number(fields, "X-RateLimit-Remaining", decision.remaining);
  if (has_reset(decision)) write_number(fields, "X-RateLimit-Reset", seconds_ceil(now + decision.reset_after));
}

// Drafts -03 and -06: one field per number. They differ in where the windows are.
template <class Fields>
void write_three(Fields& fields, const ToldLimits& told, const Decision& decision, bool has_policy_field) {
  std::string& limit = fields.begin("RateLimit-Limit");
  append_field_integer(limit, decision.limit);
  if (!has_policy_field) append_nameless_policies(limit.append(", "), told.limits);
  fields.end();
  write_number(fields, "RateLimit-Remaining", decision.remaining);
  write_number(fields, "RateLimit-Reset", more_after_seconds(decision));
  if (!has_policy_field) return;
  append_nameless_policies(fields.begin("RateLimit-Policy"), told.limits);
  fields.end();
}

template <class Fields>
void write_draft_07(Fields& fields, const ToldLimits& told, const Decision& decision) {
  append_nameless_policies(fields.begin("RateLimit-Policy"), told.limits);
  fields.end();
  std::string& out = fields.begin("RateLimit").append("limit=");
  append_field_integer(out, decision.limit);
  append_field_integer(out.append(", remaining="), decision.remaining);
  append_field_integer(out.append(", reset="), more_after_seconds(decision));
  fields.end();
}

template <class Fields>
void write_draft_11(Fields& fields, const ToldLimits& told, const Decision& decision) {
  append_policies(fields.begin("RateLimit-Policy"), told.limits);
  fields.end();
  std::string& out = fields.begin("RateLimit");
  append_quoted(out, told.limits[told.binding].name);
  append_field_integer(out.append(";r="), decision.remaining);
  if (const std::int64_t wait = more_after_seconds(decision); wait > 0) append_field_integer(out.append(";t="), wait);
  fields.end();
}

template <class Fields>
void write_fields(Fields fields, ToldLimits told, const AnswerStyle& style, Micros now) {
  if (style.limits == ShownLimits::binding) told = {told.limits.subspan(told.binding, 1), 0, told.retry_after};
  Decision decision = told.limits[told.binding].decision;
  decision.retry_after = told.retry_after;
  if (style.x_ratelimit) write_legacy(fields, decision, now);
  switch (style.rate_limit) {
    case RateLimitFields::none:
      break;
    case RateLimitFields::draft_03:
      write_three(fields, told, decision, false);
      break;
    case RateLimitFields::draft_06:
      write_three(fields, told, decision, true);
      break;
    case RateLimitFields::draft_07:
      write_draft_07(fields, told, decision);
      break;
    case RateLimitFields::draft_11:
      write_draft_11(fields, told, decision);
      break;
  }
  if (!style.retry_after || decision.allowed || can_never_pass(decision)) return;
  write_number(fields, "Retry-After", std::max<std::int64_t>(1, seconds_ceil(decision.retry_after)));
}

}  // namespace

std::string policy_field(const Limit& limit, std::string_view name) {
  std::string field;
  append_policy(field, limit, name);
  return field;
}

void append_rate_limit_fields(std::string& out, const ToldLimits& told, const AnswerStyle& style, Micros now) {
  write_fields(Lines{out}, told, style, now);
}

std::vector<Header> rate_limit_headers(const ToldLimits& told, const AnswerStyle& style, Micros now) {
  std::vector<Header> headers;
  headers.reserve(8);  // no element may move while its value is written
  write_fields(OneByOne{headers}, told, style, now);
  return headers;
}

std::vector<Header> rate_limit_headers(const Limit& limit, const Decision& decision, Micros now) {
  const LimitAnswer alone{kPolicyName, {}, {}, &limit, 1, decision};
  return rate_limit_headers({{&alone, 1}, 0, decision.retry_after}, {}, now);
}

}  // namespace weir
