// Rate limit header fields. See headers.h.
#include "protocol/headers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "protocol/seconds.h"

namespace weir {
namespace {

constexpr std::int64_t kFieldIntegerMax = 999'999'999'999'999;  // of a structured field

std::string quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

std::string field_integer(std::int64_t value) {
  return std::to_string(std::clamp(value, std::int64_t{0}, kFieldIntegerMax));
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

bool can_never_pass(const Decision& decision) { return !decision.allowed && decision.retry_after == kNever; }

// When waiting changes something, 0 if it does not. Retry-After must not be earlier, so on a denial both say the same.
std::int64_t more_after_seconds(const Decision& decision) {
  if (can_never_pass(decision)) return 0;
  return seconds_ceil(decision.allowed ? decision.reset_after : decision.retry_after);
}

// Clients of X-RateLimit-Reset expect it always; it is left out only where it would promise what does not come.
bool has_reset(const Decision& decision) {
  return decision.reset_after > Micros{0} || (decision.limit > 0 && !can_never_pass(decision));
}

void append_two_digits(std::string& out, std::int64_t value) {
  out.push_back(static_cast<char>('0' + value / 10));
  out.push_back(static_cast<char>('0' + value % 10));
}

}  // namespace

std::string policy_field(const Limit& limit, std::string_view name) {
  std::string field = quoted(name);
  field.append(";q=").append(field_integer(limit.capacity));
  if (limit.algorithm == Algorithm::concurrency) return field.append(";qu=\"concurrent-requests\"");
  if (limit.calendar != nullptr) return field;
  return field.append(";w=").append(field_integer(std::max<std::int64_t>(1, seconds_ceil(window(limit)))));
}

std::vector<Header> rate_limit_headers(const Limit& limit, const Decision& decision, Micros now) {
  const NamedDecision alone{kPolicyName, limit, decision};
  return rate_limit_headers({&alone, 1}, 0, decision.retry_after, now);
}

std::vector<Header> rate_limit_headers(std::span<const NamedDecision> limits, std::size_t binding, Micros retry_after,
                                       Micros now) {
  Decision decision = limits[binding].decision;
  decision.retry_after = retry_after;
  std::vector<Header> headers;
  headers.reserve(6);
  headers.push_back({"X-RateLimit-Limit", std::to_string(decision.limit)});
  headers.push_back({"X-RateLimit-Remaining", std::to_string(decision.remaining)});
  if (has_reset(decision)) {
    headers.push_back({"X-RateLimit-Reset", std::to_string(seconds_ceil(now + decision.reset_after))});
  }
  std::string policies;
  for (const NamedDecision& one : limits) {
    policies.append(policies.empty() ? "" : ", ").append(policy_field(one.limit, one.name));
  }
  headers.push_back({"RateLimit-Policy", std::move(policies)});
  std::string state = quoted(limits[binding].name);
  state.append(";r=").append(field_integer(decision.remaining));
  if (const std::int64_t wait = more_after_seconds(decision); wait > 0) {
    state.append(";t=").append(field_integer(wait));
  }
  headers.push_back({"RateLimit", std::move(state)});
  if (!decision.allowed && !can_never_pass(decision)) {
    headers.push_back({"Retry-After", std::to_string(std::max<std::int64_t>(1, seconds_ceil(decision.retry_after)))});
  }
  return headers;
}

std::string http_date(Micros now) {
  static constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  using std::chrono::sys_days;
  const auto days = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date{sys_days{days}};
  const std::int64_t second = std::chrono::floor<std::chrono::seconds>(now - days).count();
  std::string out(kDays[std::chrono::weekday{sys_days{days}}.c_encoding()]);
  out.append(", ");
  append_two_digits(out, static_cast<unsigned>(date.day()));
  out.append(" ").append(kMonths[static_cast<unsigned>(date.month()) - 1]).append(" ");
  out.append(std::to_string(static_cast<int>(date.year()))).append(" ");
  append_two_digits(out, second / 3600);
  out.push_back(':');
  append_two_digits(out, second / 60 % 60);
  out.push_back(':');
  append_two_digits(out, second % 60);
  return out.append(" GMT");
}

}  // namespace weir
