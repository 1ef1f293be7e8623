// Compiles quotas. Only the rate of a bucket needs computation; the rest validates, with errors that say what to do.
//
// If no small fraction equals a rate, it becomes the best fraction below it, found on the Stern-Brocot tree. The left
// bound passes through every best approximation from below. One division takes a whole run of steps.
#include "algorithm/limit.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "algorithm/division.h"
#include "base/nearest.h"

namespace weir::algorithm {
namespace {

tl::unexpected<Error> beyond(std::string message) { return fail(ErrorCode::out_of_range, std::move(message)); }
tl::unexpected<Error> wrong(std::string message) { return fail(ErrorCode::invalid_argument, std::move(message)); }

std::string text_of(std::int64_t n) { return std::to_string(n); }

Result<void> check_permits(Algorithm algorithm, std::int64_t permits) {
  const std::int64_t max = algorithm == Algorithm::concurrency ? kConcurrentMax : kPermitsMax;
  if (permits >= 0 && permits <= max) return {};
  return beyond("permits of " + std::string(weir::to_string(algorithm)) + " are 0 to " + text_of(max) + ", not " +
                text_of(permits));
}

Result<void> check_period(std::int64_t period_us, std::int64_t min_us) {
  if (period_us >= min_us && period_us <= kPeriodMax.count()) return {};
  return beyond("a period of " + text_of(period_us) + " us is not between " + text_of(min_us) + " us and " +
                text_of(kPeriodMax.count()) + " us (10 years)");
}

Result<void> check_calendar(const Quota& quota, const Calendar* calendar) {
  if (!quota.calendar) {
    if (calendar == nullptr) return {};
    return wrong("a calendar was passed for a limit without a calendar unit");
  }
  if (quota.algorithm != Algorithm::fixed_window) {
    return wrong("only fixed_window counts by the calendar, not " + std::string(weir::to_string(quota.algorithm)));
  }
  if (quota.period != Micros{0}) return wrong("a limit has a period or a calendar, not both");
  if (calendar == nullptr) return wrong("the calendar of the limit is missing");
  if (calendar->unit() != quota.calendar->unit || calendar->zone_name() != quota.calendar->zone) {
    return wrong("the calendar does not match the limit: its zone is " + base::in_quotes(calendar->zone_name()) +
                 ", the limit needs " + base::in_quotes(quota.calendar->zone) + " by the " +
                 std::string(to_string(quota.calendar->unit)));
  }
  return {};
}

// A burst of 0, or a burst of a bucket that never refills, contradicts itself.
Result<void> check_burst(const Quota& quota) {
  if (!quota.burst) return {};
  if (!is_bucket(quota.algorithm)) {
    return wrong("only buckets have a burst, not " + std::string(weir::to_string(quota.algorithm)) +
                 ": leave the burst out");
  }
  if (*quota.burst < 1 || *quota.burst > kPermitsMax) {
    return beyond("a burst is 1 to " + text_of(kPermitsMax) + ", not " + text_of(*quota.burst));
  }
  if (quota.permits == 0) return wrong("a bucket of 0 permits never refills: leave the burst out to deny everything");
  return {};
}

}  // namespace

Fraction largest_fraction(std::int64_t permits, std::int64_t period_us, Fraction max) {
  const std::int64_t divisor = std::gcd(permits, period_us);
  const Wide p = permits / divisor, t = period_us / divisor;
  if (p <= max.rate && t <= max.weight) return {permits / divisor, period_us / divisor};

  // low <= p/t < high are neighbours on the tree. Every fraction between them has both parts at least as large as
  // their mediant's, so the search ends when the mediant does not fit.
  Wide low_rate = 0, low_weight = 1, high_rate = 1, high_weight = 0;
  while (low_rate + high_rate <= max.rate && low_weight + high_weight <= max.weight) {
    // How often high may be added to low: while the result is at most p/t and fits.
    const Wide lead = p * low_weight - t * low_rate, lag = t * high_rate - p * high_weight;  // lead >= 0, lag > 0
    Wide up = std::min(lead / lag, (max.rate - low_rate) / high_rate);
    if (high_weight > 0) up = std::min(up, (max.weight - low_weight) / high_weight);
    low_rate += up * high_rate;
    low_weight += up * high_weight;
    // How often low may be added to high: while the result is above p/t. low is below p/t, or it would have fitted.
    const Wide lead_left = lead - up * lag;
    const Wide down = (lag - 1) / lead_left;
    high_rate += down * low_rate;
    high_weight += down * low_weight;
  }
  return {static_cast<std::int64_t>(low_rate), static_cast<std::int64_t>(low_weight)};
}

Result<Limit> make_bucket(Algorithm algorithm, std::int64_t permits, std::int64_t period_us, std::int64_t capacity) {
  WEIR_ASSERT(is_bucket(algorithm));
  if (auto ok = check_permits(algorithm, permits); !ok) return fail(ok.error());
  if (auto ok = check_period(period_us, 1); !ok) return fail(ok.error());
  if (permits == 0) return Limit{.algorithm = algorithm, .period_us = period_us, .calendar = nullptr};
  if (capacity < 1 || capacity > kPermitsMax) {
    return beyond("the capacity of a bucket is 1 to " + text_of(kPermitsMax) + ", not " + text_of(capacity));
  }
  if (permits > kPermitsPerMicroMax * period_us) {
    return beyond(text_of(permits) + " permits in " + text_of(period_us) + " us are more than " +
                  text_of(kPermitsPerMicroMax) + " a microsecond, the most a bucket can count: use at most " +
                  text_of(kPermitsPerMicroMax * period_us) + ", or count larger units");
  }
  if (Wide{capacity} * period_us > Wide{kFillMax_us} * permits) {
    const std::int64_t capacity_max = mul_div_floor(kFillMax_us, permits, period_us);
    return beyond("a bucket of " + text_of(capacity) + " that gains " + text_of(permits) + " in " + text_of(period_us) +
                  " us takes more than 142 years to fill: use a burst of at most " + text_of(capacity_max) +
                  ", or more permits");
  }
  const Fraction f = largest_fraction(permits, period_us, {kRateMax, kUnitsMax / (capacity + 1)});
  WEIR_ASSERT(f.rate > 0);
  return Limit{.algorithm = algorithm,
               .permits = permits,
               .period_us = period_us,
               .capacity = capacity,
               .rate = f.rate,
               .weight = f.weight,
               .calendar = nullptr};
}

Result<Limit> make_window(Algorithm algorithm, std::int64_t permits, std::int64_t period_us) {
  WEIR_ASSERT(!is_bucket(algorithm));
  if (auto ok = check_permits(algorithm, permits); !ok) return fail(ok.error());
  if (auto ok = check_period(period_us, 1); !ok) return fail(ok.error());
  return Limit{
      .algorithm = algorithm, .permits = permits, .period_us = period_us, .capacity = permits, .calendar = nullptr};
}

Result<Limit> compile_limit(const Quota& quota, std::shared_ptr<const Calendar> calendar) {
  if (std::ranges::find(kAlgorithms, quota.algorithm) == std::end(kAlgorithms)) {
    return wrong("unknown algorithm number " + text_of(static_cast<int>(quota.algorithm)));
  }
  if (auto ok = check_burst(quota); !ok) return fail(ok.error());
  if (auto ok = check_calendar(quota, calendar.get()); !ok) return fail(ok.error());
  if (quota.calendar) {
    if (auto ok = check_permits(quota.algorithm, quota.permits); !ok) return fail(ok.error());
    return Limit{.algorithm = quota.algorithm,
                 .permits = quota.permits,
                 .capacity = quota.permits,
                 .calendar = std::move(calendar)};
  }
  const std::int64_t period_us = quota.period.count();
  if (auto ok = check_period(period_us, kPeriodMin.count()); !ok) return fail(ok.error());
  if (!is_bucket(quota.algorithm)) return make_window(quota.algorithm, quota.permits, period_us);
  return make_bucket(quota.algorithm, quota.permits, period_us, quota.burst.value_or(quota.permits));
}

bool is_sound(const Limit& limit) {
  const auto within = [](std::int64_t value, std::int64_t low, std::int64_t high) {
    return low <= value && value <= high;
  };
  if (std::ranges::find(kAlgorithms, limit.algorithm) == std::end(kAlgorithms)) return false;
  const bool by_calendar = limit.calendar != nullptr;
  if (by_calendar && limit.algorithm != Algorithm::fixed_window) return false;
  if (!within(limit.period_us, by_calendar ? 0 : 1, by_calendar ? 0 : kPeriodMax.count())) return false;
  const bool may_shift = limit.algorithm == Algorithm::fixed_window && !by_calendar;
  if (!within(limit.phase_us, 0, may_shift ? limit.period_us - 1 : 0)) return false;
  if (!check_permits(limit.algorithm, limit.permits) || limit.events_max < 1) return false;
  if (!is_bucket(limit.algorithm)) return limit.capacity == limit.permits && limit.rate == 1 && limit.weight == 1;
  if (limit.permits == 0) return limit.capacity == 0 && limit.rate == 1 && limit.weight == 1;
  return within(limit.capacity, 1, kPermitsMax) && within(limit.rate, 1, kRateMax) &&
         within(limit.weight, 1, kUnitsMax / (limit.capacity + 1));
}

}  // namespace weir::algorithm

namespace weir {

Result<Limit> phased(Limit limit, std::int64_t phase_us) {
  if (limit.algorithm != Algorithm::fixed_window) {
    return algorithm::wrong("only fixed_window can have a phase, not " + std::string(to_string(limit.algorithm)));
  }
  if (limit.calendar || limit.period_us <= 0) {
    return algorithm::wrong("a limit with a calendar cannot have a phase: a phase needs a period, as in 1000/day");
  }
  if (phase_us < 0 || phase_us >= limit.period_us) {
    return algorithm::beyond("a phase is at least 0 and less than the period of " +
                             algorithm::text_of(limit.period_us) + " us, not " + algorithm::text_of(phase_us) + " us");
  }
  limit.phase_us = phase_us;
  return limit;
}

bool operator==(const Limit& a, const Limit& b) {
  const auto numbers = [](const Limit& l) {
    return std::tuple(l.algorithm, l.permits, l.period_us, l.phase_us, l.capacity, l.rate, l.weight, l.events_max);
  };
  return numbers(a) == numbers(b) && algorithm::has_calendar_of(a, b);
}

}  // namespace weir
