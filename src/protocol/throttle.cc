// CL.THROTTLE, GCRA and THROTTLE. See throttle.h.
#include "protocol/throttle.h"

#include <cmath>
#include <optional>
#include <string>

#include "base/nearest.h"
#include "base/text.h"
#include "protocol/request_error.h"
#include "protocol/seconds.h"
#include "weir/verdict.h"

namespace weir::protocol {
namespace {

constexpr std::string_view kRefunds = "; to refund, use WEIR.LIMIT with a COST below 0";
constexpr std::int64_t kPeriodMaxSeconds = kPeriodMax.count() / kMicrosPerSecond;

tl::unexpected<Error> cell_error(std::string_view text) { return wrong("Cell error: " + std::string(text)); }

// Parses numbers like redis-cell: a plus sign and leading zeros are allowed.
std::optional<std::int64_t> parse_number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  return base::to_number<std::int64_t>(text);
}

// max_burst, count, period and quantity, as CL.THROTTLE and THROTTLE have them.
using Numbers = std::array<std::int64_t, 4>;

// Parses the numbers behind the key. Returns the place of the first argument that is not a number; 0 if there is none.
std::size_t parse_numbers(std::span<const std::string_view> args, Numbers& numbers) {
  for (std::size_t i = 1; i < args.size(); ++i) {
    const auto number = parse_number(args[i]);
    if (!number) return i;
    numbers[i - 1] = *number;
  }
  return 0;
}

std::optional<Error> refuse_range(std::string_view name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return std::nullopt;
  std::string text(name);
  text.append(" is ").append(std::to_string(value)).append(", but must be between ");
  text.append(std::to_string(least)).append(" and ").append(std::to_string(most));
  return Error{ErrorCode::out_of_range, std::move(text)};
}

struct Bucket {
  std::int64_t max_burst = 0, count = 0, period_us = 0, burst = 0, cost = 1;
};

Result<Throttle> throttle_of(std::string_view key, const Bucket& bucket) {
  if (auto error = refuse_key(key)) return fail(std::move(*error));
  if (auto error = refuse_cost(bucket.cost)) return fail(std::move(*error));
  Result<Throttle> throttle(tl::in_place);  // made in place: g++ 12 suspects a moved optional of being uninitialized
  throttle->key = key;
  throttle->cost = bucket.cost;
  throttle->quota.algorithm = Algorithm::token_bucket;
  throttle->quota.permits = bucket.count;
  throttle->quota.period = Micros{bucket.period_us};
  throttle->quota.burst = bucket.burst;
  return throttle;
}

std::optional<Error> refuse_bucket(std::int64_t least_burst, const Bucket& bucket, std::int64_t period) {
  if (auto error = refuse_range("max_burst", bucket.max_burst, least_burst, kPermitsMax - 1)) return error;
  if (auto error = refuse_range("count per period", bucket.count, 1, kPermitsMax)) return error;
  return refuse_range("period", period, 1, kPeriodMaxSeconds);
}

// Parses seconds, with an optional fraction and exponent like a double in Redis, to whole microseconds.
std::optional<std::int64_t> parse_period(std::string_view text) {
  const auto seconds = base::to_number<double>(text);
  if (!seconds || !std::isfinite(*seconds)) return std::nullopt;
  if (*seconds > static_cast<double>(kPeriodMaxSeconds) || *seconds < 0) return -1;
  return std::llround(*seconds * 1e6);  // below 2^53: exact to the microsecond
}

bool is_tokens(std::string_view word) { return base::lower(word.substr(0, 7)) == "tokens"; }

}  // namespace

Result<Throttle> parse_cell_throttle(std::span<const std::string_view> args) {
  if (args.size() < 4 || args.size() > 5) {
    return cell_error("Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]");
  }
  Numbers numbers = {0, 0, 0, 1};
  if (const std::size_t bad = parse_numbers(args, numbers); bad > 0) {
    return cell_error("Couldn't parse as integer: " + std::string(args[bad].substr(0, 64)));
  }
  const auto [max_burst, count, period, quantity] = numbers;
  if (count == 0 || period == 0) return cell_error("Zero rates are not supported");
  if (quantity < 0) return cell_error("Negative quantities are not supported" + std::string(kRefunds));
  Bucket bucket{.max_burst = max_burst, .count = count, .cost = quantity};
  if (auto error = refuse_bucket(0, bucket, period)) return fail(std::move(*error));
  bucket.period_us = period * kMicrosPerSecond;
  bucket.burst = max_burst + 1;
  return throttle_of(args[0], bucket);
}

Result<Throttle> parse_crab_throttle(std::span<const std::string_view> args) {
  constexpr std::string_view kNames[] = {"max_burst", "count_per_period", "period", "quantity"};
  Numbers numbers = {0, 0, 0, 1};
  if (const std::size_t bad = parse_numbers(args, numbers); bad > 0) {
    return wrong("invalid " + std::string(kNames[bad - 1]) + ": " + base::in_quotes(args[bad]) +
                 " is not a whole number");
  }
  const auto [max_burst, count, period, quantity] = numbers;
  Bucket bucket{.max_burst = max_burst, .count = count, .cost = quantity};
  if (auto error = refuse_bucket(1, bucket, period)) return fail(std::move(*error));
  if (quantity < 0) {
    return fail(ErrorCode::out_of_range, "negative quantity: " + std::to_string(quantity) + std::string(kRefunds));
  }
  bucket.period_us = period * kMicrosPerSecond;
  bucket.burst = max_burst;
  return throttle_of(args[0], bucket);
}

Result<Throttle> parse_gcra(std::span<const std::string_view> args) {
  const auto max_burst = parse_number(args[1]), count = parse_number(args[2]);
  if (!max_burst || !count) {
    return wrong("value is not an integer or out of range: " + base::in_quotes(max_burst ? args[2] : args[1]) +
                 " is not a whole number");
  }
  const auto period_us = parse_period(args[3]);
  if (!period_us) return wrong("value is not a valid float: " + base::in_quotes(args[3]));
  if (*period_us <= 0) {
    return fail(ErrorCode::out_of_range, "period must be > 0 and at most " + std::to_string(kPeriodMaxSeconds) +
                                             " seconds, found " + base::in_quotes(args[3]));
  }
  Bucket bucket{.max_burst = *max_burst, .count = *count, .period_us = *period_us};
  if (auto error = refuse_bucket(0, bucket, 1)) return fail(std::move(*error));
  bucket.burst = *max_burst + 1;
  if (args.size() > 4) {
    if (!is_tokens(args[4])) return wrong("syntax error: expected TOKENS, found " + base::in_quotes(args[4]));
    if (args.size() == 5) return wrong("Missing TOKENS value");
    const auto tokens = parse_number(args[5]);
    if (!tokens || *tokens < 0) {
      return wrong("value is out of range: TOKENS must be a whole number of at least 0, found " +
                   base::in_quotes(args[5]) + (tokens ? std::string(kRefunds) : ""));
    }
    bucket.cost = *tokens;
  }
  return throttle_of(args[0], bucket);
}

std::optional<std::int64_t> parse_long_quantity(std::string_view text) {
  const auto number = parse_number(text);
  if (!number || *number < 0 || refuse_cost(*number)) return std::nullopt;
  return number;
}

std::array<std::int64_t, 5> cell_reply(const Decision& decision) {
  const bool has_wait = !decision.allowed && decision.retry_after != kNever;
  return {decision.allowed ? 0 : 1, decision.limit, decision.remaining,
          has_wait ? seconds_ceil(decision.retry_after) : -1, seconds_ceil(decision.reset_after)};
}

std::array<std::int64_t, 5> crab_reply(const Decision& decision) {
  const std::int64_t retry = decision.retry_after == kNever ? -1 : seconds_ceil(decision.retry_after);
  return {decision.allowed ? 1 : 0, decision.limit, decision.remaining, seconds_ceil(decision.reset_after), retry};
}

}  // namespace weir::protocol
