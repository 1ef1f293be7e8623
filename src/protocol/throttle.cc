// CL.THROTTLE's values. See throttle.h.
#include "protocol/throttle.h"

#include <charconv>
#include <optional>
#include <string>

#include "protocol/request_cost.h"
#include "protocol/seconds.h"
#include "weir/verdict.h"

namespace weir {
namespace {

constexpr std::int64_t kPeriodMaxSeconds = kPeriodMax.count() / kMicrosPerSecond;

tl::unexpected<Error> cell_error(std::string_view text) {
  return fail(ErrorCode::invalid_argument, "Cell error: " + std::string(text));
}

// As redis-cell reads numbers: a plus sign and leading zeros are fine.
std::optional<std::int64_t> parse_number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Error> refuse_range(std::string_view name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return std::nullopt;
  std::string text(name);
  text.append(" is ").append(std::to_string(value)).append(", but must be between ");
  text.append(std::to_string(least)).append(" and ").append(std::to_string(most));
  return Error{ErrorCode::out_of_range, std::move(text)};
}

}  // namespace

Result<Throttle> parse_throttle(std::span<const std::string_view> args) {
  if (args.size() < 4 || args.size() > 5) {
    return cell_error("Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]");
  }
  std::int64_t numbers[4] = {0, 0, 0, 1};  // max_burst, count, period, quantity
  for (std::size_t i = 1; i < args.size(); ++i) {
    const auto number = parse_number(args[i]);
    if (!number) return cell_error("Couldn't parse as integer: " + std::string(args[i].substr(0, 64)));
    numbers[i - 1] = *number;
  }
  const auto [max_burst, count, period, quantity] = numbers;
  if (count == 0 || period == 0) return cell_error("Zero rates are not supported");
  if (auto error = refuse_key(args[0])) return fail(std::move(*error));
  if (auto error = refuse_range("max_burst", max_burst, 0, kPermitsMax - 1)) return fail(std::move(*error));
  if (auto error = refuse_range("count per period", count, 1, kPermitsMax)) return fail(std::move(*error));
  if (auto error = refuse_range("period", period, 1, kPeriodMaxSeconds)) return fail(std::move(*error));
  if (auto error = refuse_cost(quantity)) return fail(std::move(*error));

  Result<Throttle> throttle(tl::in_place);  // made in place: g++ 12 suspects a moved optional of being uninitialized
  throttle->key = args[0];
  throttle->cost = quantity;
  throttle->quota.algorithm = Algorithm::token_bucket;
  throttle->quota.permits = count;
  throttle->quota.period = Micros{period * kMicrosPerSecond};
  throttle->quota.burst = max_burst + 1;
  return throttle;
}

std::array<std::int64_t, 5> throttle_reply(const Decision& decision) {
  const bool has_wait = !decision.allowed && decision.retry_after != kNever;
  return {decision.allowed ? 0 : 1, decision.limit, decision.remaining,
          has_wait ? seconds_ceil(decision.retry_after) : -1, seconds_ceil(decision.reset_after)};
}

}  // namespace weir
