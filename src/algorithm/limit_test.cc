// Limits: the rate of a bucket against an exhaustive search, and every bound with its error.
//
// Random tests print their seed; WEIR_SEED replays one.
#include "algorithm/limit.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <random>
#include <vector>

#include "algorithm/division.h"
#include "seed.h"

namespace weir::algorithm::limit_test {
namespace {

// All magnitudes are equally likely.
std::int64_t pick_any_size(std::mt19937_64& random, std::int64_t max) {
  const auto bits = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(max)));
  return test::pick(random, 1, std::max<std::int64_t>(1, max >> test::pick(random, 0, bits - 1)));
}

// For each rate the smallest weight that does not favour the client; then the largest of these fractions.
Fraction by_trying_all(std::int64_t permits, std::int64_t period_us, Fraction max) {
  Fraction best{0, 1};
  for (std::int64_t rate = 1; rate <= max.rate; ++rate) {
    const std::int64_t weight = mul_div_ceil(rate, period_us, permits);
    if (weight <= max.weight && Wide{rate} * best.weight > Wide{best.rate} * weight) best = {rate, weight};
  }
  return best;
}

struct Rate {
  std::int64_t permits, period_us, capacity;
};

// Returns whether the rate was accepted.
bool expect_best(const Rate& r) {
  const auto limit = make_bucket(Algorithm::token_bucket, r.permits, r.period_us, r.capacity);
  const bool too_fast = Wide{r.permits} > Wide{64} * r.period_us;
  const bool too_slow = Wide{r.capacity} * r.period_us > (Wide{1} << 52) * r.permits;
  EXPECT_EQ(limit.has_value(), !too_fast && !too_slow) << (limit ? "" : limit.error().message);
  if (!limit) {
    EXPECT_EQ(limit.error().code, ErrorCode::out_of_range);
    return false;
  }
  EXPECT_EQ(limit->permits, r.permits);
  EXPECT_EQ(limit->period_us, r.period_us);
  EXPECT_EQ(limit->capacity, r.capacity);
  const Fraction max{4094, ((std::int64_t{1} << 53) - 4096) / (r.capacity + 1)};
  EXPECT_EQ((Fraction{limit->rate, limit->weight}), by_trying_all(r.permits, r.period_us, max));
  // Never faster than requested, and slower by at most 2.5e-4: (permits/period - rate/weight) / (permits/period).
  const Wide asked = Wide{r.permits} * limit->weight, got = Wide{limit->rate} * r.period_us;
  EXPECT_TRUE(got <= asked);
  EXPECT_TRUE((asked - got) * 4000 <= asked);
  const std::int64_t divisor = std::gcd(r.permits, r.period_us);
  if (r.permits / divisor <= max.rate && r.period_us / divisor <= max.weight) {
    EXPECT_TRUE(got == asked);
  }
  return true;
}

TEST(BucketRate, IsTheLargestFractionAtOrBelowThatFits) {
  auto random = test::seeded();
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Rate rate{pick_any_size(random, kPermitsMax), pick_any_size(random, kPeriodMax.count()),
                    pick_any_size(random, kPermitsMax)};
    accepted += expect_best(rate) ? 1 : 0;
    if (HasFailure()) FAIL() << rate.permits << " in " << rate.period_us << " us, capacity " << rate.capacity;
  }
  EXPECT_GT(accepted, 5'000);
}

TEST(BucketRate, IsTheLargestFractionAtTheEdges) {
  std::vector<Rate> rates;
  for (const std::int64_t capacity : {std::int64_t{1}, std::int64_t{4095}, kPermitsMax - 1, kPermitsMax}) {
    for (const std::int64_t period_us : {std::int64_t{1}, std::int64_t{1'000}, std::int64_t{1'000'000},
                                         std::int64_t{86'400'000'000}, kPeriodMax.count() - 1, kPeriodMax.count()}) {
      for (const std::int64_t around : {std::int64_t{2}, std::int64_t{4094}, period_us, period_us * 64,
                                        mul_div_ceil(capacity, period_us, kFillMax_us), kPermitsMax}) {
        for (std::int64_t permits = around - 1; permits <= around + 1; ++permits) {
          if (permits >= 1 && permits <= kPermitsMax) rates.push_back({permits, period_us, capacity});
        }
      }
    }
  }
  // Weights around the largest that each capacity permits.
  for (const std::int64_t capacity : {std::int64_t{1'000}, std::int64_t{1} << 20, std::int64_t{1} << 26}) {
    const std::int64_t most = kUnitsMax / (capacity + 1);
    for (std::int64_t period_us = most - 3; period_us <= most + 3; ++period_us) {
      for (const std::int64_t permits : {2, 3, 5, 7}) rates.push_back({permits, period_us, capacity});
    }
  }
  for (const Rate& rate : rates) {
    expect_best(rate);
    if (HasFailure()) FAIL() << rate.permits << " in " << rate.period_us << " us, capacity " << rate.capacity;
  }
}

TEST(BucketRate, IsTheLargestFractionUnderAnySmallBounds) {
  for (std::int64_t permits = 1; permits <= 24; ++permits) {
    for (std::int64_t period_us = 1; period_us <= 24; ++period_us) {
      for (const Fraction max : {Fraction{1, 1}, {1, 7}, {7, 1}, {3, 5}, {5, 3}, {8, 8}, {24, 23}, {40, 40}}) {
        const Fraction best = by_trying_all(permits, period_us, max);
        EXPECT_EQ(largest_fraction(permits, period_us, max), best) << permits << "/" << period_us;
      }
    }
  }
}

Limit compiled(std::string_view text, std::optional<Algorithm> algorithm = {}) {
  const auto quota = parse_quota(text, algorithm);
  EXPECT_TRUE(quota) << quota.error().message;
  const auto limit = compile_limit(*quota, nullptr);
  EXPECT_TRUE(limit) << limit.error().message;
  return limit.value_or(Limit{});
}

TEST(Limit, OfABucketHasItsRateInLowestTerms) {
  const Limit three = compiled("3/s", Algorithm::token_bucket);
  EXPECT_EQ(three.rate, 3);
  EXPECT_EQ(three.weight, 1'000'000);
  EXPECT_EQ(three.capacity, 3);
  const Limit burst = compiled("10000/s burst 5000");
  EXPECT_EQ(burst.rate, 1);
  EXPECT_EQ(burst.weight, 100);
  EXPECT_EQ(burst.capacity, 5000);
  EXPECT_EQ(burst.permits, 10'000);
  EXPECT_EQ(burst.period_us, 1'000'000);
  const Limit prime = compiled("4099/s burst 1");  // has no smaller terms, and 4099 is too large a rate
  EXPECT_EQ(prime.rate, 762);
  EXPECT_EQ(prime.weight, 185'899);
}

TEST(Limit, OfEverythingElseHasNoRate) {
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_log, Algorithm::sliding_window}) {
    const Limit limit = compiled("300/15min", algorithm);
    EXPECT_EQ(limit.algorithm, algorithm);
    EXPECT_EQ(limit.permits, 300);
    EXPECT_EQ(limit.capacity, 300);
    EXPECT_EQ(limit.period_us, 900'000'000);
    EXPECT_EQ(limit.rate, 1);
    EXPECT_EQ(limit.weight, 1);
  }
  const Limit flight = compiled("20 concurrent for 5min");
  EXPECT_EQ(flight.capacity, 20);
  EXPECT_EQ(flight.period_us, 300'000'000);
  EXPECT_EQ(compiled("1099511627776/ms").capacity, kPermitsMax);
}

TEST(Limit, OfZeroPermitsHasNoCapacity) {
  for (const Algorithm algorithm : kAlgorithms) {
    const Limit limit = compiled(algorithm == Algorithm::concurrency ? "0 concurrent" : "0/minute", algorithm);
    EXPECT_EQ(limit.permits, 0);
    EXPECT_EQ(limit.capacity, 0);
    EXPECT_EQ(limit.rate, 1);
    EXPECT_EQ(limit.weight, 1);
  }
}

TEST(Limit, RefusesARateBeyondTheBoundsAndNamesTheBound) {
  const auto fast = compile_limit(*parse_quota("64001/ms", Algorithm::token_bucket), nullptr);
  ASSERT_FALSE(fast);
  EXPECT_EQ(fast.error().code, ErrorCode::out_of_range);
  EXPECT_NE(fast.error().message.find("use at most 64000"), std::string::npos) << fast.error().message;
  EXPECT_TRUE(compile_limit(*parse_quota("64000/ms", Algorithm::token_bucket), nullptr));

  // 1/year: 2^52 us are 142.8 years.
  const auto slow = compile_limit(*parse_quota("1/year burst 143"), nullptr);
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, ErrorCode::out_of_range);
  EXPECT_NE(slow.error().message.find("burst of at most 142"), std::string::npos) << slow.error().message;
  EXPECT_TRUE(compile_limit(*parse_quota("1/year burst 142"), nullptr));
}

TEST(Limit, ChecksQuotasThatNoParserHasSeen) {
  const Quota good{Algorithm::token_bucket, 10, Micros{1'000'000}, {}, 50};
  ASSERT_TRUE(compile_limit(good, nullptr));
  const auto refused = [&](auto change, ErrorCode code, const char* says) {
    Quota quota = good;
    change(quota);
    const auto limit = compile_limit(quota, nullptr);
    ASSERT_FALSE(limit) << says;
    EXPECT_EQ(limit.error().code, code) << limit.error().message;
    EXPECT_NE(limit.error().message.find(says), std::string::npos) << limit.error().message;
  };
  const auto range = ErrorCode::out_of_range, invalid = ErrorCode::invalid_argument;
  refused([](Quota& q) { q.permits = -1; }, range, "not -1");
  refused([](Quota& q) { q.permits = kPermitsMax + 1; }, range, "0 to 1099511627776");
  refused([](Quota& q) { q.permits = INT64_MIN; }, range, "0 to 1099511627776");
  refused([](Quota& q) { q.permits = 0; }, invalid, "never refills");
  refused([](Quota& q) { q.period = Micros{0}; }, range, "a period of 0 us");
  refused([](Quota& q) { q.period = Micros{999}; }, range, "1000 us");
  refused([](Quota& q) { q.period = kPeriodMax + Micros{1}; }, range, "10 years");
  refused([](Quota& q) { q.period = Micros::min(); }, range, "10 years");
  refused([](Quota& q) { q.burst = 0; }, range, "a burst is 1 to");
  refused([](Quota& q) { q.burst = -7; }, range, "not -7");
  refused([](Quota& q) { q.burst = INT64_MAX; }, range, "a burst is 1 to");
  refused([](Quota& q) { q.algorithm = Algorithm::sliding_log; }, invalid, "only buckets have a burst");
  refused([](Quota& q) { q.algorithm = static_cast<Algorithm>(99); }, invalid, "99");
  refused([](Quota& q) { q.calendar.emplace(); }, invalid, "only fixed_window");
  const auto in_flight = [](std::int64_t n) {
    return [n](Quota& q) { q = {Algorithm::concurrency, n, kHoldDefault, {}, {}}; };
  };
  refused(in_flight(kConcurrentMax + 1), range, "0 to 10000");
  refused(in_flight(-1), range, "0 to 10000");
  const auto by_day = [](Quota& q) { q = {Algorithm::fixed_window, 5, Micros{0}, CalendarPeriod{}, {}}; };
  refused(by_day, invalid, "calendar of the limit is missing");
}

TEST(Limit, NeedsTheCalendarOfItsQuota) {
  const auto of = [](CalendarUnit unit, const char* zone) {
    return std::make_shared<const Calendar>(unit, zone, Zone{});
  };
  Quota quota{Algorithm::fixed_window, 5, Micros{0}, CalendarPeriod{CalendarUnit::month, "Asia/Tokyo"}, {}};
  const auto limit = compile_limit(quota, of(CalendarUnit::month, "Asia/Tokyo"));
  ASSERT_TRUE(limit) << limit.error().message;
  EXPECT_EQ(limit->period_us, 0);
  EXPECT_EQ(limit->capacity, 5);
  ASSERT_NE(limit->calendar, nullptr);
  EXPECT_FALSE(compile_limit(quota, nullptr));
  EXPECT_FALSE(compile_limit(quota, of(CalendarUnit::day, "Asia/Tokyo")));
  EXPECT_FALSE(compile_limit(quota, of(CalendarUnit::month, "UTC")));
  quota.permits = -1;
  EXPECT_FALSE(compile_limit(quota, of(CalendarUnit::month, "Asia/Tokyo")));
  quota.permits = 5;
  quota.period = Micros{1'000'000};
  EXPECT_FALSE(compile_limit(quota, of(CalendarUnit::month, "Asia/Tokyo")));
  quota.calendar.reset();
  EXPECT_FALSE(compile_limit(quota, of(CalendarUnit::month, "Asia/Tokyo")));
  EXPECT_TRUE(compile_limit(quota, nullptr));
}

TEST(Limit, EqualsAnotherOfTheSameNumbersAndCalendar) {
  const Limit limit = compiled("10/s burst 50");
  EXPECT_EQ(limit, compiled("10/1000ms burst 50"));
  const auto differs = [&](auto change) {
    Limit other = limit;
    change(other);
    EXPECT_FALSE(other == limit);
  };
  differs([](Limit& l) { l.algorithm = Algorithm::leaky_meter; });
  differs([](Limit& l) { ++l.permits; });
  differs([](Limit& l) { ++l.period_us; });
  differs([](Limit& l) { ++l.phase_us; });
  differs([](Limit& l) { ++l.capacity; });
  differs([](Limit& l) { ++l.rate; });
  differs([](Limit& l) { ++l.weight; });
  differs([](Limit& l) { ++l.events_max; });
  const auto day = [](const char* zone) { return std::make_shared<const Calendar>(CalendarUnit::day, zone, Zone{}); };
  differs([&](Limit& l) { l.calendar = day("UTC"); });
  Limit a = limit, b = limit;
  a.calendar = day("UTC");
  b.calendar = day("UTC");
  EXPECT_EQ(a, b);
  b.calendar = day("Asia/Tokyo");
  EXPECT_FALSE(a == b);
  b.calendar = std::make_shared<const Calendar>(CalendarUnit::week, "UTC", Zone{});
  EXPECT_FALSE(a == b);
}

TEST(Limit, OfATestMayHaveAPeriodOfAMicrosecond) {
  EXPECT_EQ(make_bucket(Algorithm::token_bucket, 1, 1, 5)->rate, 1);
  EXPECT_EQ(make_window(Algorithm::fixed_window, 3, 1)->period_us, 1);
  EXPECT_FALSE(make_bucket(Algorithm::token_bucket, 1, 0, 5));
  EXPECT_FALSE(make_bucket(Algorithm::token_bucket, 1, 1, 0));
  EXPECT_FALSE(make_bucket(Algorithm::token_bucket, 1, 1, kPermitsMax + 1));
  EXPECT_FALSE(make_window(Algorithm::fixed_window, 3, 0));
  EXPECT_FALSE(make_window(Algorithm::fixed_window, -3, 1));
}

TEST(Limit, OfAFixedWindowMayHaveAPhase) {
  const Limit minute = make_window(Algorithm::fixed_window, 5, 60'000'000).value();
  EXPECT_EQ(minute.phase_us, 0);
  EXPECT_EQ(phased(minute, 0).value(), minute);
  EXPECT_EQ(phased(minute, 59'999'999)->phase_us, 59'999'999);
  EXPECT_EQ(phased(phased(minute, 7).value(), 0).value(), minute) << "a phase replaces the one before";
  for (const std::int64_t phase_us : {std::int64_t{-1}, std::int64_t{60'000'000}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(phased(minute, phase_us).error().message,
              "a phase is at least 0 and less than the period of 60000000 us, not " + std::to_string(phase_us) + " us");
  }
  Limit other = minute;
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::fixed_window) continue;
    other.algorithm = algorithm;
    EXPECT_EQ(phased(other, 0).error().message,
              "only fixed_window can have a phase, not " + std::string(weir::to_string(algorithm)));
  }
  Limit day = minute;
  day.period_us = 0;
  day.calendar = std::make_shared<const Calendar>(CalendarUnit::day, "UTC", Zone{});
  EXPECT_NE(phased(day, 0).error().message.find("a phase needs a period"), std::string::npos);
}

TEST(AssertionDeathTest, NamesTheConditionAndItsPlace) {
  EXPECT_DEATH(WEIR_ASSERT(1 + 1 == 3), "limit_test.cc:[0-9]+: .*1 \\+ 1 == 3");
}

// Every limit made by the functions is sound; one that differs in a single number may not be.
TEST(Soundness, IsWhatTheArithmeticReliesOn) {
  const Limit window = *make_window(Algorithm::sliding_window, 10, 1'000'000);
  const Limit bucket = *make_bucket(Algorithm::token_bucket, 3, 1'000'000, 50);
  const Limit holds = *make_window(Algorithm::concurrency, kConcurrentMax, 1'000'000);
  const Limit fixed = *make_window(Algorithm::fixed_window, 10, 1'000);
  const Limit day{.algorithm = Algorithm::fixed_window,
                  .permits = 10,
                  .capacity = 10,
                  .calendar = std::make_shared<const Calendar>(CalendarUnit::day, "UTC", Zone{})};
  EXPECT_TRUE(is_sound(day));
  for (const Limit& limit : {window, bucket, holds, *make_bucket(Algorithm::leaky_bucket, 0, 1'000, 1),
                             *make_window(Algorithm::fixed_window, 0, 1), *phased(fixed, 0), *phased(fixed, 999)}) {
    EXPECT_TRUE(is_sound(limit));
  }
  EXPECT_FALSE(is_sound(Limit{}));
  const auto with = [](Limit limit, auto member, auto value) {
    limit.*member = value;
    return limit;
  };
  const std::int64_t huge = std::int64_t{1} << 41;
  for (const Limit& limit :
       {with(window, &Limit::capacity, 9), with(window, &Limit::permits, -1), with(window, &Limit::permits, huge),
        with(window, &Limit::period_us, 0), with(window, &Limit::period_us, INT64_MAX),
        with(window, &Limit::events_max, 0), with(window, &Limit::weight, 2),
        with(window, &Limit::algorithm, static_cast<Algorithm>(9)), with(bucket, &Limit::rate, 0),
        with(bucket, &Limit::rate, kRateMax + 1), with(bucket, &Limit::weight, 0),
        with(bucket, &Limit::weight, kUnitsMax), with(bucket, &Limit::capacity, huge),
        with(bucket, &Limit::capacity, 0), with(with(holds, &Limit::permits, 20'000), &Limit::capacity, 20'000)}) {
    EXPECT_FALSE(is_sound(limit)) << limit.permits << ' ' << limit.period_us << ' ' << limit.capacity << ' '
                                  << limit.rate << ' ' << limit.weight;
  }
  for (const Limit& limit :
       {with(fixed, &Limit::phase_us, -1), with(fixed, &Limit::phase_us, 1'000), with(window, &Limit::phase_us, 1),
        with(bucket, &Limit::phase_us, 1), with(holds, &Limit::phase_us, 1), with(day, &Limit::phase_us, 1)}) {
    EXPECT_FALSE(is_sound(limit)) << weir::to_string(limit.algorithm) << ' ' << limit.phase_us;
  }
}

}  // namespace
}  // namespace weir::algorithm::limit_test
