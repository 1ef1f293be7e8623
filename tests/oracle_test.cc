// What scenario files cannot express about the oracle: costs at the ends of the range, time that runs backwards, limits
// that change before a request sees them, made-up calendars, and that its searches find what a plain scan finds.
//
// The expected numbers were worked out by hand from docs/algorithms.md. Random tests print their seed; WEIR_SEED
// replays.
#include "oracle.h"

#include <gtest/gtest.h>

#include <iostream>
#include <limits>
#include <random>

#include "glibc_windows.h"
#include "seed.h"

namespace weir {

// How gtest prints a decision; it looks in the namespace of the value.
static void PrintTo(const Decision& d, std::ostream* out) {
  *out << (d.allowed ? "allow, " : "deny, ") << d.remaining << " left of " << d.limit << ", retry "
       << d.retry_after.count() << ", reset " << d.reset_after.count() << ", delay " << d.delay.count();
}

}  // namespace weir

namespace weir::oracle {
namespace {

Limit windowed(Algorithm algorithm, std::int64_t permits, std::int64_t period_us) {
  Limit limit;
  limit.algorithm = algorithm;
  limit.permits = limit.capacity = permits;
  limit.period_us = period_us;
  return limit;
}
Limit fixed(std::int64_t permits, std::int64_t period) { return windowed(Algorithm::fixed_window, permits, period); }
Limit sliding(std::int64_t permits, std::int64_t period) {
  return windowed(Algorithm::sliding_window, permits, period);
}
Limit logged(std::int64_t permits, std::int64_t period) { return windowed(Algorithm::sliding_log, permits, period); }
Limit concurrent(std::int64_t permits, std::int64_t period) {
  return windowed(Algorithm::concurrency, permits, period);
}

struct Fraction {
  std::int64_t rate, weight;
};
Limit bucket(std::int64_t capacity, Fraction fraction, Algorithm algorithm = Algorithm::token_bucket) {
  Limit limit = windowed(algorithm, capacity, capacity * fraction.weight / std::max<std::int64_t>(1, fraction.rate));
  limit.rate = fraction.rate;
  limit.weight = fraction.weight;
  return limit;
}

constexpr Micros us(std::int64_t count) { return Micros{count}; }

Decision allowed(std::int64_t limit, std::int64_t remaining, std::int64_t reset) {
  return {true, limit, remaining, us(0), us(reset), us(0)};
}
Decision denied(std::int64_t limit, std::int64_t remaining, std::int64_t retry, std::int64_t reset) {
  return {false, limit, remaining, us(retry), us(reset), us(0)};
}

// ------------------------------------------------------------------------------------------------ costs

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

TEST(OracleCosts, AnyIntegerIsSafe) {
  const Limit limits[] = {fixed(kPermitsMax, kPeriodMax.count()), sliding(kPermitsMax, kPeriodMax.count()),
                          logged(kPermitsMax, kPeriodMax.count()), bucket(kPermitsMax, {4094, 8191}),
                          bucket(1, {1, (std::int64_t{1} << 52) - 2048}, Algorithm::leaky_bucket)};
  for (const Limit& limit : limits) {
    const std::int64_t most = limit.capacity;
    Oracle oracle(limit);
    for (const std::int64_t now : {std::int64_t{0}, std::int64_t{1}, kTimeEnd / 2, kTimeEnd - 1}) {
      EXPECT_EQ(oracle.step(now, kLeast), allowed(most, most, 0));
      EXPECT_EQ(oracle.step(now, kMost).retry_after, kNever);
      EXPECT_EQ(oracle.step(now, most + 1).retry_after, kNever);
      EXPECT_EQ(oracle.step(now, most).remaining, 0);
      const Decision full = oracle.step(now, 1);
      EXPECT_FALSE(full.allowed);
      EXPECT_GT(full.retry_after, us(0));
      EXPECT_LT(full.retry_after, kNever);
      EXPECT_LE(full.retry_after, full.reset_after);
      EXPECT_EQ(oracle.step(now, kLeast + 1).remaining, most);
    }
  }
  Oracle permits(concurrent(kConcurrentMax, kPeriodMax.count()));
  EXPECT_EQ(permits.acquire(kTimeEnd - 1, "a", kMost).retry_after, kNever);
  EXPECT_TRUE(permits.acquire(kTimeEnd - 1, "a", kConcurrentMax).allowed);
  EXPECT_EQ(permits.acquire(kTimeEnd - 1, "a", kLeast), allowed(kConcurrentMax, kConcurrentMax, 0));
}

TEST(OracleCosts, ALimitOfZeroAllowsOnlyPeeksAndRefunds) {
  for (const Limit& limit : {fixed(0, 1000), sliding(0, 1000), logged(0, 1000), bucket(0, {0, 1})}) {
    Oracle oracle(limit);
    EXPECT_EQ(oracle.step(5, 1), denied(0, 0, kNever.count(), 0));
    EXPECT_EQ(oracle.step(5, 0), allowed(0, 0, 0));
    EXPECT_EQ(oracle.step(5, -1), allowed(0, 0, 0));
  }
}

TEST(OracleCosts, ARefundIsAllowedEvenBeyondTheLimit) {
  Oracle oracle(sliding(100, 100));
  oracle.step(0, 80);
  oracle.step(100, 20);
  oracle.change(sliding(50, 100));
  EXPECT_FALSE(oracle.step(100, 0).allowed);  // 50 + 20
  EXPECT_EQ(oracle.step(100, -1), allowed(50, 0, 195));
}

TEST(OracleCosts, AChargeAndItsRefundAtOneInstantChangeNothing) {
  for (const Limit& limit : {fixed(9, 100), sliding(9, 100), logged(9, 100), bucket(9, {3, 100})}) {
    Oracle oracle(limit);
    oracle.step(150, 3);
    oracle.step(210, 2);
    const Decision before = oracle.step(220, 0);
    oracle.step(220, 3);
    EXPECT_EQ(oracle.step(220, -3), before);
    EXPECT_EQ(oracle.step(220, 0), before);
  }
}

TEST(OracleCosts, AFullLogLetsOnlyItsLastMicrosecondGrow) {
  Limit limit = logged(100, 1000);
  limit.events_max = 3;
  Oracle oracle(limit);
  oracle.step(10, 1);
  oracle.step(20, 1);
  EXPECT_EQ(oracle.step(30, 1), allowed(100, 97, 1000));
  EXPECT_EQ(oracle.step(30, 2), allowed(100, 95, 1000));
  EXPECT_EQ(oracle.step(31, 1), denied(100, 0, 979, 999));
  EXPECT_EQ(oracle.step(31, 0), allowed(100, 0, 999));
  EXPECT_EQ(oracle.step(1010, 1), allowed(100, 95, 1000));
}

// -------------------------------------------------------------------------------------- time backwards

TEST(OracleBackwards, ABucketIsSeenAsIfItHadNotDrained) {
  Oracle oracle(bucket(5, {1, 10}));
  EXPECT_EQ(oracle.step(1000, 2), allowed(5, 3, 20));
  EXPECT_EQ(oracle.step(990, 0), allowed(5, 2, 30));
  EXPECT_EQ(oracle.step(1010, 0), allowed(5, 4, 10));
}

TEST(OracleBackwards, ABucketGrowsAtMostToItsCapacityAndDrainsFromThere) {
  for (const std::int64_t cost : {1, 6}) {  // a denial: the correction stays
    Oracle oracle(bucket(5, {1, 10}));
    oracle.step(1000, 2);
    EXPECT_EQ(oracle.step(900, cost).reset_after, us(50));
    EXPECT_EQ(oracle.step(910, 0), allowed(5, 1, 40));
    EXPECT_EQ(oracle.step(1000, 0), allowed(5, 5, 0));
  }
}

TEST(OracleBackwards, AFixedWindowOneAheadIsUsedUntilItEnds) {
  Oracle oracle(fixed(5, 100));
  oracle.step(250, 3);
  EXPECT_EQ(oracle.step(150, 2), allowed(5, 0, 150));
  EXPECT_EQ(oracle.step(199, 1), denied(5, 0, 101, 101));
  EXPECT_EQ(oracle.step(299, 1), denied(5, 0, 1, 1));
  EXPECT_EQ(oracle.step(300, 1), allowed(5, 4, 100));
}

TEST(OracleBackwards, AFixedWindowFurtherAheadMovesToNow) {
  for (const std::int64_t cost : {3, 6}) {  // both are denied
    Oracle oracle(fixed(5, 100));
    oracle.step(250, 3);
    EXPECT_EQ(oracle.step(50, cost).reset_after, us(50));
    EXPECT_EQ(oracle.step(99, 0), allowed(5, 2, 1));
    EXPECT_EQ(oracle.step(100, 0), allowed(5, 5, 0));
    EXPECT_EQ(oracle.step(250, 0), allowed(5, 5, 0));
  }
}

TEST(OracleBackwards, ASlidingWindowOneAheadIsSeenAtItsStart) {
  Oracle oracle(sliding(10, 100));
  oracle.step(150, 6);
  EXPECT_EQ(oracle.step(250, 4), allowed(10, 3, 126));  // 3 + 4 used; 4 fades below 1 at 376
  EXPECT_EQ(oracle.step(180, 1), denied(10, 0, 21, 196));
  EXPECT_EQ(oracle.step(180, -1), allowed(10, 1, 187));  // 3 fades below 1 at 367
  EXPECT_EQ(oracle.step(180, 1), allowed(10, 0, 196));   // charged to the window ahead
  EXPECT_EQ(oracle.step(250, 0), allowed(10, 3, 126));
}

TEST(OracleBackwards, ASlidingWindowFurtherAheadMovesToNow) {
  Oracle oracle(sliding(10, 100));
  oracle.step(250, 9);
  oracle.step(390, 8);                                     // 0 of 9 left over, 8
  EXPECT_EQ(oracle.step(110, 1), denied(10, 0, 91, 181));  // 9 + 8, cut to 10, in [100, 200)
  EXPECT_EQ(oracle.step(250, 0), allowed(10, 5, 41));
  EXPECT_EQ(oracle.step(300, 0), allowed(10, 10, 0));
}

TEST(OracleBackwards, EventsAfterNowMoveToNow) {
  for (const std::int64_t cost : {1, 6}) {
    Oracle oracle(logged(5, 100));
    oracle.step(140, 1);
    oracle.step(200, 1);
    oracle.step(220, 3);
    EXPECT_EQ(oracle.step(150, cost).reset_after, us(100));
    EXPECT_EQ(oracle.step(239, 1), denied(5, 0, 1, 11));
    EXPECT_EQ(oracle.step(240, 0), allowed(5, 1, 10));
    EXPECT_EQ(oracle.step(250, 0), allowed(5, 5, 0));
  }
}

TEST(OracleBackwards, PermitsLastNoLongerThanTheirTimeFromNow) {
  Oracle oracle(concurrent(2, 100));
  oracle.acquire(500, "a", 1);
  EXPECT_EQ(oracle.acquire(100, "b", 2), denied(2, 1, 100, 100));
  Oracle released = oracle;
  EXPECT_TRUE(released.release(199, "a"));
  EXPECT_FALSE(oracle.release(200, "a"));
  EXPECT_TRUE(oracle.acquire(550, "b", 2).allowed);
}

TEST(OracleBackwards, PermitsThatWereOverDoNotComeBack) {
  Oracle oracle(concurrent(2, 100));
  oracle.acquire(0, "a", 1);
  oracle.acquire(100, "b", 1);
  EXPECT_EQ(oracle.acquire(50, "c", 0), allowed(2, 1, 100));
}

TEST(OracleBackwards, AFullRefundRemovesTheKey) {
  for (const Limit& limit : {fixed(5, 100), sliding(5, 100), logged(5, 100), bucket(5, {1, 10})}) {
    Oracle oracle(limit);
    oracle.step(250, 3);
    oracle.step(250, -3);
    Oracle fresh(limit);
    EXPECT_EQ(oracle.step(150, 2), fresh.step(150, 2));
    EXPECT_EQ(oracle.step(240, 2), fresh.step(240, 2));
  }
}

TEST(OracleBackwards, AChangeThatLeavesLessThanAPermitInUseRemovesTheKey) {
  Oracle oracle(sliding(5, 100));
  oracle.step(50, 3);
  oracle.step(180, 0);  // a peek: 3 x 20 / 100 is less than one, but nothing changed
  EXPECT_EQ(oracle.step(110, 0), allowed(5, 3, 57));
  oracle.step(180, -1);
  EXPECT_EQ(oracle.step(110, 0), allowed(5, 5, 0));
}

TEST(OracleBackwards, WhatPeeksAndDenialsSawIsNotOver) {
  Oracle level(bucket(5, {1, 10}));
  level.step(100, 2);
  for (const std::int64_t cost : {0, 6}) level.step(500, cost);
  EXPECT_EQ(level.step(110, 0), allowed(5, 4, 10));
  Oracle log(logged(5, 100));
  log.step(100, 2);
  for (const std::int64_t cost : {0, 6}) log.step(500, cost);
  EXPECT_EQ(log.step(110, 0), allowed(5, 3, 90));
}

// ------------------------------------------------------------------------------------------ new limits

TEST(OracleChanges, ALimitThatNobodySawNeverRuled) {
  for (const Limit& limit : {fixed(9, 100), sliding(9, 100), logged(9, 100), bucket(9, {3, 100})}) {
    Limit smaller = limit;
    smaller.permits = smaller.capacity = 1;
    Oracle oracle(limit);
    oracle.step(150, 5);
    Oracle untouched = oracle;
    oracle.change(smaller);
    oracle.change(limit);
    EXPECT_EQ(oracle.step(160, 1), untouched.step(160, 1));
    oracle.change(smaller);
    EXPECT_FALSE(oracle.step(160, 1).allowed);
    oracle.change(limit);
    EXPECT_FALSE(oracle.step(160, 8).allowed) << "a denial changed nothing";
  }
}

TEST(OracleChanges, ABucketIsRoundedUpToTheNewUnit) {
  Oracle oracle(bucket(10, {1, 1000}));
  oracle.step(0, 1);
  oracle.change(bucket(10, {1, 3}));
  EXPECT_EQ(oracle.step(1, 0), allowed(10, 9, 999));  // a peek changes nothing
  EXPECT_EQ(oracle.step(1, 1), allowed(10, 8, 6));    // 0.999 permits are 2.997 units of a third: 3, and 3 more
}

TEST(OracleChanges, AStateThatIsAheadIsCorrectedUnderTheOldLimitFirst) {
  Oracle counter(fixed(5, 100));
  counter.step(250, 3);
  counter.change(fixed(10, 100));
  EXPECT_EQ(counter.step(150, 0), allowed(10, 7, 150));  // still the window [200, 300)

  Oracle same_period(sliding(10, 100));
  same_period.step(250, 3);
  same_period.change(sliding(20, 100));
  EXPECT_EQ(same_period.step(150, 0), allowed(20, 17, 217));  // still the window [200, 300)

  Oracle other_period(sliding(10, 100));
  other_period.step(150, 6);
  other_period.step(250, 4);
  other_period.change(sliding(20, 1000));
  EXPECT_EQ(other_period.step(180, 0), allowed(20, 20, 0));  // another state

  Oracle level(bucket(5, {1, 10}));
  level.step(1000, 2);
  level.change(bucket(50, {1, 10}));
  EXPECT_EQ(level.step(0, 0), allowed(50, 45, 50));  // grown to the old capacity, not to the new

  Oracle permits(concurrent(2, 100));
  permits.acquire(500, "a", 1);
  permits.change(concurrent(2, 1000));
  EXPECT_EQ(permits.acquire(100, "b", 0), allowed(2, 1, 100));
}

TEST(OracleChanges, AReleaseNamesNoLimit) {
  Oracle oracle(concurrent(2, 100));
  oracle.acquire(0, "a", 1);
  oracle.acquire(0, "b", 1);
  oracle.change(concurrent(2, 10));
  EXPECT_TRUE(oracle.release(5, "a"));
  EXPECT_EQ(oracle.acquire(50, "c", 0), allowed(2, 1, 50));
}

// ------------------------------------------------------------------------------------------- calendars

// Windows of uneven length.
Window uneven(std::int64_t now) {
  constexpr std::int64_t kStarts[] = {0, 100, 130, 400, 1000, 1001, 2000, 5000, 9000};
  std::size_t i = 0;
  while (kStarts[i + 1] <= now) ++i;
  return {kStarts[i], kStarts[i + 1], kStarts[i + 2]};
}

TEST(OracleCalendar, CountsInTheWindowOfNow) {
  Oracle oracle(fixed(5, 0), uneven);
  EXPECT_EQ(oracle.step(99, 5), allowed(5, 0, 1));
  EXPECT_EQ(oracle.step(100, 4), allowed(5, 1, 30));
  EXPECT_EQ(oracle.step(129, 2), denied(5, 1, 1, 1));
  EXPECT_EQ(oracle.step(130, 2), allowed(5, 3, 270));
  EXPECT_EQ(oracle.step(1000, 1), allowed(5, 4, 1));
}

TEST(OracleCalendar, OneWindowAheadIsUsedAndMoreMoves) {
  Oracle oracle(fixed(5, 0), uneven);
  oracle.step(200, 3);
  Oracle far = oracle;
  EXPECT_EQ(oracle.step(110, 0), allowed(5, 2, 290));
  EXPECT_EQ(oracle.step(399, 0), allowed(5, 2, 1));
  EXPECT_EQ(far.step(50, 0), allowed(5, 2, 50));
  EXPECT_EQ(far.step(200, 0), allowed(5, 2, 200)) << "a peek corrected nothing";
  EXPECT_EQ(far.step(50, 3), denied(5, 2, 50, 50));
  EXPECT_EQ(far.step(200, 0), allowed(5, 5, 0)) << "a denial did";
}

TEST(OracleCalendar, EachCalendarCountsAlone) {
  Oracle oracle(fixed(5, 100));
  oracle.step(150, 3);
  oracle.change(fixed(5, 0), uneven);
  EXPECT_EQ(oracle.step(150, 1), allowed(5, 4, 250));
  oracle.change(fixed(3, 0), [](std::int64_t now) { return Window{now, now + 7, now + 14}; });
  EXPECT_EQ(oracle.step(300, 1), allowed(3, 2, 7));
}

constexpr std::int64_t kHour = 3'600'000'000;

TEST(GlibcWindows, FollowEachOtherWithoutGaps) {
  for (const char* zone :
       {"UTC", "Europe/Berlin", "America/Sao_Paulo", "America/St_Johns", "Pacific/Apia", "Australia/Lord_Howe"}) {
    for (const CalendarUnit unit : {CalendarUnit::day, CalendarUnit::week, CalendarUnit::month, CalendarUnit::year}) {
      const auto windows = glibc_windows({unit, zone});
      ASSERT_TRUE(windows) << windows.error().message;
      Window window = (*windows)(1'262'300'000'000'000);  // the last hours of 2009
      for (int i = 0; i < (unit == CalendarUnit::day ? 760 : 30); ++i) {
        ASSERT_LT(window.start, window.end) << zone;
        ASSERT_LT(window.end, window.next_end) << zone;
        ASSERT_EQ((*windows)(window.end - 1), window) << zone;
        const Window next = (*windows)(window.end);
        ASSERT_EQ(next.start, window.end) << zone;
        ASSERT_EQ(next.end, window.next_end) << zone;
        window = next;
      }
    }
  }
}

TEST(GlibcWindows, SkipTheDayThatSamoaSkipped) {
  const auto windows = glibc_windows({CalendarUnit::day, "Pacific/Apia"});
  ASSERT_TRUE(windows);
  const std::int64_t jump = 1'325'239'200'000'000;  // 2011-12-30 10:00 UTC
  EXPECT_EQ((*windows)(jump - 1), (Window{jump - 24 * kHour, jump, jump + 24 * kHour}));
  EXPECT_EQ((*windows)(jump), (Window{jump, jump + 24 * kHour, jump + 48 * kHour}));
}

TEST(GlibcWindows, ADayBeginsWithTheFirstOfTwoMidnights) {
  const auto windows = glibc_windows({CalendarUnit::day, "America/St_Johns"});
  ASSERT_TRUE(windows);
  const std::int64_t midnight = 1'289'097'000'000'000;  // 2010-11-07 02:30 UTC; a minute later it is 23:01 again
  EXPECT_EQ((*windows)(midnight + kHour / 4), (Window{midnight, midnight + 25 * kHour, midnight + 49 * kHour}));
}

TEST(GlibcWindows, AnUnknownZoneIsAnError) {
  const auto windows = glibc_windows({CalendarUnit::day, "Europe/Atlantis"});
  ASSERT_FALSE(windows);
  EXPECT_NE(windows.error().message.find("Europe/Atlantis"), std::string::npos);
}

// ----------------------------------------------------------------------------------------------- phases

TEST(OraclePhase, ShiftsTheWindowsOfAPeriod) {
  Limit limit = fixed(5, 100);
  limit.phase_us = 30;
  Oracle oracle(limit);
  EXPECT_EQ(oracle.step(0, 5), allowed(5, 0, 30)) << "the first window began before the epoch";
  EXPECT_EQ(oracle.step(29, 1), denied(5, 0, 1, 1));
  EXPECT_EQ(oracle.step(30, 2), allowed(5, 3, 100));
  EXPECT_EQ(oracle.step(129, 4), denied(5, 3, 1, 1));
  EXPECT_EQ(oracle.step(130, 4), allowed(5, 1, 100));
  limit.phase_us = 90;
  oracle.change(limit);
  EXPECT_EQ(oracle.step(140, 0), allowed(5, 5, 0)) << "another phase is another state";
}

// --------------------------------------------------------------------------------------------- searches

Limit any_limit(std::mt19937_64& dice, Algorithm algorithm) {
  const std::int64_t permits = test::pick(dice, 0, 9);
  const std::int64_t period = test::pick(dice, 1, 40);
  if (algorithm != Algorithm::token_bucket && algorithm != Algorithm::leaky_bucket &&
      algorithm != Algorithm::leaky_meter) {
    Limit limit = windowed(algorithm, permits, period);
    limit.events_max = test::pick(dice, 1, 5);
    if (algorithm == Algorithm::fixed_window) limit.phase_us = test::pick(dice, 0, period - 1);
    return limit;
  }
  return bucket(permits, {test::pick(dice, 1, 7), test::pick(dice, 1, 50)}, algorithm);
}

Decision request(Oracle& oracle, Algorithm algorithm, std::int64_t now, std::int64_t cost, std::string_view id) {
  return algorithm == Algorithm::concurrency ? oracle.acquire(now, id, cost) : oracle.step(now, cost);
}

// What the oracle would answer: asked of a copy.
Decision ask(Oracle oracle, Algorithm algorithm, std::int64_t now, std::int64_t cost, std::string_view id = "new") {
  return request(oracle, algorithm, now, cost, id);
}

// Every field of an answer against what a plain scan, microsecond by microsecond, permit by permit, finds.
// `before` and `after` are the oracle before and after the request.
void expect_as_scanned(const Oracle& before, const Oracle& after, Algorithm algorithm, std::int64_t now,
                       std::int64_t cost, std::string_view id, const Decision& decision) {
  const auto& [allowed, limit, remaining, retry_after, reset_after, delay, made] = decision;
  ASSERT_EQ(made, DecidedBy::here);
  ASSERT_EQ(allowed, retry_after == us(0));
  ASSERT_EQ(retry_after == kNever, !allowed && cost > limit);
  if (!allowed && retry_after != kNever) {
    for (std::int64_t w = 0; w <= retry_after.count(); ++w) {
      ASSERT_EQ(ask(before, algorithm, now + w, cost, id).allowed, w == retry_after.count()) << w;
    }
  }
  for (std::int64_t w = 0; w <= reset_after.count(); ++w) {
    const Decision peek = ask(after, algorithm, now + w, 0);
    ASSERT_EQ(peek.allowed && peek.remaining == limit, w == reset_after.count()) << w;
  }
  ASSERT_GE(remaining, 0);
  for (std::int64_t n = 1; n <= limit + 1; ++n) {
    ASSERT_EQ(ask(after, algorithm, now, n).allowed, n <= remaining) << n;
  }
  ASSERT_GE(delay, us(0));
}

class EveryAlgorithm : public testing::TestWithParam<Algorithm> {};

TEST_P(EveryAlgorithm, AnswersAsAPlainScanDoes) {
  std::mt19937_64 dice = test::seeded();
  const Algorithm algorithm = GetParam();
  for (int run = 0; run < 150; ++run) {
    Oracle oracle(any_limit(dice, algorithm));
    bool was_own = true;  // the state belongs to the version that decides
    std::int64_t now = test::pick(dice, 0, 1000);
    for (int i = 0; i < 30; ++i) {
      if (test::pick(dice, 0, 9) == 0) {
        oracle.change(any_limit(dice, algorithm));
        was_own = false;
      }
      now = std::max<std::int64_t>(
          0, now + (test::pick(dice, 0, 9) == 0 ? -test::pick(dice, 0, 120) : test::pick(dice, 0, 15)));
      const std::int64_t cost = test::pick(dice, -2, 6);
      const std::string id(1, static_cast<char>('a' + test::pick(dice, 0, 3)));
      if (algorithm == Algorithm::concurrency && test::pick(dice, 0, 3) == 0) oracle.release(now, id);
      // A clock that ran back is corrected now, not in a scan's future: a request that can never pass sees to it.
      request(oracle, algorithm, now, INT64_MAX, id);
      const Oracle before = oracle;
      const Decision decision = request(oracle, algorithm, now, cost, id);
      expect_as_scanned(before, oracle, algorithm, now, cost, id, decision);
      // What was used before drains at the rate of the version that admits.
      const bool queues = algorithm == Algorithm::leaky_bucket && decision.allowed && cost >= 0;
      if (was_own || !queues) {
        ASSERT_EQ(decision.delay, queues ? ask(before, algorithm, now, 0).reset_after : us(0));
      }
      was_own = was_own || (decision.allowed && cost > 0);
      if (HasFatalFailure()) {
        FAIL() << testing::PrintToString(decision) << ", run " << run << ", step " << i << ", now " << now << ", cost "
               << cost;
      }
    }
  }
}

TEST_P(EveryAlgorithm, IsNotMovedByPeeksAndDenials) {
  std::mt19937_64 dice = test::seeded();
  const Algorithm algorithm = GetParam();
  for (int run = 0; run < 300; ++run) {
    Oracle quiet(any_limit(dice, algorithm));
    Oracle busy = quiet;
    std::int64_t now = test::pick(dice, 0, 1000);
    for (int i = 0; i < 30; ++i) {
      now += test::pick(dice, 0, 15);
      const std::int64_t cost = test::pick(dice, -2, 6);
      const std::string id = std::to_string(test::pick(dice, 0, 3));
      const Decision peek = request(busy, algorithm, now, 0, id);
      EXPECT_FALSE(request(busy, algorithm, now, peek.limit + 1, id).allowed);
      ASSERT_EQ(request(busy, algorithm, now, cost, id), request(quiet, algorithm, now, cost, id)) << run << " " << i;
    }
  }
}

// When time leaps about, no client is locked out for longer than a full limit takes to recover.
TEST_P(EveryAlgorithm, RecoversWhateverTimeDoes) {
  std::mt19937_64 dice = test::seeded();
  const Algorithm algorithm = GetParam();
  for (int run = 0; run < 300; ++run) {
    const Limit limit = any_limit(dice, algorithm);
    // A window ahead ends within two periods; what it admitted fades within a third.
    const std::int64_t windows = algorithm == Algorithm::sliding_window ? 3
                                 : algorithm == Algorithm::fixed_window ? 2
                                                                        : 1;
    const bool drains = limit.rate > 1 || limit.weight > 1;
    const std::int64_t recovery =
        drains ? (limit.capacity * limit.weight + limit.rate - 1) / limit.rate : windows * limit.period_us;
    Oracle oracle(limit);
    for (int i = 0; i < 40; ++i) {
      const std::string id = std::to_string(test::pick(dice, 0, 20));
      const Decision decision = request(oracle, algorithm, test::pick(dice, 0, 300), test::pick(dice, 0, 3), id);
      ASSERT_LE(decision.reset_after.count(), recovery);
      ASSERT_LE(decision.remaining, decision.limit);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, EveryAlgorithm, testing::ValuesIn(kAlgorithms),
                         [](const auto& algorithm) { return std::string(to_string(algorithm.param)); });

}  // namespace
}  // namespace weir::oracle
