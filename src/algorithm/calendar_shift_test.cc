// After any sequence of corrections of the wall clock, windows are the true ones, and no day has two quotas.
//
// The random tests know the true time, which no correction uses: a clock that was wrong is set right at the end.
#include "algorithm/calendar_shift.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "algorithm/fixed_window.h"
#include "algorithm/limit.h"
#include "seed.h"

namespace weir::algorithm::calendar_shift_test {
namespace {

constexpr std::int64_t kSecond = 1'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr std::int64_t kMidnight = 20'774 * kDay;  // 2026-11-17

Limit limit_by(CalendarUnit unit, std::int64_t permits = 10) {
  return {.algorithm = Algorithm::fixed_window,
          .permits = permits,
          .capacity = permits,
          .calendar = std::make_shared<const Calendar>(unit, "UTC", Zone{})};
}

// The clock of a table, whose calendars are corrected.
struct Clock {
  CalendarShift shift{};
  void correct(std::int64_t now_us, std::int64_t time_us) { shift = corrected(shift, now_us, time_us, time_us); }
};

// A client, and a table that drops its key as soon as it has expired.
struct Client {
  const Limit& limit;
  const Clock& clock;
  FixedWindow state{};
  std::vector<std::int64_t> given{};

  Decision ask(std::int64_t now, std::int64_t cost = 1) {
    const ShiftedCalendar shifted(clock.shift);
    if (fixed_window_end(state, limit, now) <= now) state = {};
    if (const auto settled = fixed_window_settle(state, limit, now); settled.moved) state = settled.state;
    const auto stepped = fixed_window_step(state, limit, now, cost);
    if (!stepped.decision.allowed) return stepped.decision;
    state = stepped.next;
    given.insert(given.end(), static_cast<std::size_t>(cost), now);
    return stepped.decision;
  }
  std::int64_t between(std::int64_t from, std::int64_t to) const {
    return std::ranges::count_if(given, [&](std::int64_t at) { return from <= at && at < to; });
  }
};

// The clock shows 23:30 at 0:10. When it is corrected, a key that used its day keeps that usage until the window ends
// as announced. A key that comes later gets the true day.
TEST(CalendarShift, FollowsAClockThatWasBehind) {
  const Limit limit = limit_by(CalendarUnit::day);
  Clock clock;
  Client early{limit, clock}, late{limit, clock};
  const std::int64_t wrong = kMidnight - 30 * kMinute;
  EXPECT_TRUE(early.ask(wrong, 10).allowed);
  clock.correct(40 * kMinute, wrong);
  EXPECT_EQ(early.ask(wrong + kSecond).retry_after.count(), 30 * kMinute - kSecond);
  EXPECT_EQ(late.ask(wrong + kSecond, 10).reset_after.count(), kDay - 10 * kMinute - kSecond) << "the true midnight";
  EXPECT_FALSE(early.ask(kMidnight - 1).allowed);
  EXPECT_EQ(early.ask(kMidnight, 10).reset_after.count(), kDay - 40 * kMinute);
  EXPECT_FALSE(late.ask(kMidnight).allowed);
}

// The clock shows 0:10 at 23:30. The day that has begun continues until the true midnight after next.
TEST(CalendarShift, BeginsNoDayTwiceAfterAClockThatWasAhead) {
  const Limit limit = limit_by(CalendarUnit::day);
  const std::int64_t told = kMidnight + 10 * kMinute;
  Clock clock;
  Client yesterday{limit, clock}, today{limit, clock};
  yesterday.ask(kMidnight - kHour, 10);
  today.ask(told, 10);
  clock.correct(-40 * kMinute, told);
  for (std::int64_t now = told; now < kMidnight + 3 * kDay; now += kMinute) {
    yesterday.ask(now);
    today.ask(now);
  }
  EXPECT_EQ(today.given.size(), 30u);  // the 17th, the 18th and the 19th, each once
  EXPECT_EQ(yesterday.given.size(), 10u + 30u);
  const std::int64_t end = kMidnight + kDay + 40 * kMinute;
  EXPECT_EQ(today.between(told + 1, end), 0) << "the window ends at the true midnight, not as announced";
  EXPECT_EQ(today.between(end, end + kDay), 10);
}

// Reported: a second correction, by one minute more, gave the 17th a second quota.
TEST(CalendarShift, ASecondCorrectionBeginsNoDayAgain) {
  const Limit limit = limit_by(CalendarUnit::day);
  Clock clock;
  Client client{limit, clock};
  EXPECT_TRUE(client.ask(kMidnight - 10 * kMinute, 10).allowed);
  clock.correct(-40 * kMinute, kMidnight + 10 * kMinute);
  clock.correct(-41 * kMinute, kMidnight + 20 * kMinute);
  EXPECT_TRUE(client.ask(kMidnight + 30 * kMinute, 10).allowed) << "the 17th has begun before the corrections";
  for (std::int64_t now = kMidnight + 30 * kMinute; now < kMidnight + kDay + 41 * kMinute; now += kMinute) {
    ASSERT_FALSE(client.ask(now).allowed) << (now - kMidnight) / kMinute;
  }
  EXPECT_TRUE(client.ask(kMidnight + kDay + 41 * kMinute, 10).allowed);
}

// Every minute the clock is set back by a minute more, then every hour, for a day.
TEST(CalendarShift, ManyCorrectionsBackwardGiveOneQuota) {
  for (const std::int64_t each : {kMinute, kHour}) {
    const Limit limit = limit_by(CalendarUnit::day);
    Clock clock;
    Client client{limit, clock};
    EXPECT_TRUE(client.ask(kMidnight, 10).allowed);
    std::int64_t now = kMidnight;
    for (int i = 1; i <= 19; ++i) {
      now += each;
      clock.correct(-i * each, now);
      ASSERT_FALSE(client.ask(now).allowed) << i;
    }
    const std::int64_t end = kMidnight + kDay + 19 * each;
    EXPECT_FALSE(client.ask(end - 1).allowed);
    EXPECT_TRUE(client.ask(end).allowed);
  }
}

// For a minute the clock is two years ahead. Days are not those of that year until then.
TEST(CalendarShift, FollowsAClockThatWasFarAhead) {
  const Limit limit = limit_by(CalendarUnit::day);
  const Limit year = limit_by(CalendarUnit::year);
  Clock clock;
  Client client{limit, clock}, other{limit, clock}, of_year{year, clock};
  const std::int64_t noon = kMidnight + 12 * kHour;
  client.ask(noon, 10);
  of_year.ask(noon, 10);
  clock.correct(800 * kDay, noon);
  EXPECT_EQ(client.ask(noon).retry_after.count(), 12 * kHour) << "until its window ends as announced";
  EXPECT_EQ(other.ask(noon, 10).reset_after.count(), 12 * kHour);
  clock.correct(0, noon + kMinute);
  EXPECT_EQ(other.ask(noon + kMinute).retry_after.count(), 12 * kHour - kMinute);
  EXPECT_LE(client.ask(noon + kMinute, 10).reset_after.count(), 12 * kHour - kMinute);
  for (int day = 1; day < 5; ++day) {
    for (Client* const one : {&client, &other}) {
      EXPECT_TRUE(one->ask(kMidnight + day * kDay, 10).allowed) << day;
      EXPECT_EQ(one->ask(kMidnight + day * kDay).retry_after.count(), kDay) << day;
    }
  }
  EXPECT_FALSE(of_year.ask(kMidnight + 44 * kDay).allowed);
  EXPECT_TRUE(of_year.ask(kMidnight + 45 * kDay, 10).allowed) << "2027-01-01";
}

// Also if it was ahead by one window, whose quota a key may then use: the quota of the true year does not come back.
TEST(CalendarShift, AYearForwardAndBackGivesNoYearAnotherQuota) {
  for (const std::int64_t days : {60, 366, 500, 800}) {
    const Limit limit = limit_by(CalendarUnit::year);
    Clock clock;
    Client client{limit, clock};
    EXPECT_TRUE(client.ask(kMidnight, 10).allowed);
    clock.correct(days * kDay, kMidnight + kHour);
    EXPECT_FALSE(client.ask(kMidnight + kHour).allowed) << days;
    clock.correct(0, kMidnight + 2 * kHour);
    EXPECT_FALSE(client.ask(kMidnight + 2 * kHour).allowed) << days;
    clock.correct(-kDay, kMidnight + 3 * kHour);
    EXPECT_FALSE(client.ask(kMidnight + 3 * kHour).allowed) << days;
    EXPECT_FALSE(client.ask(kMidnight + 44 * kDay).allowed) << days;
    EXPECT_TRUE(client.ask(kMidnight + 46 * kDay, 10).allowed) << days;
  }
}

// A clock that was a year ahead, and then runs too fast: more corrections forward than are remembered one by one.
TEST(CalendarShift, ManyCorrectionsForwardForgetNoYear) {
  const Limit limit = limit_by(CalendarUnit::year);
  Clock clock;
  Client client{limit, clock};
  std::int64_t now = kMidnight;
  EXPECT_TRUE(client.ask(now, 10).allowed);
  for (const std::int64_t wrong :
       {kHour, -kHour, -kDay, 365 * kDay, kSecond, 4 * kSecond, 7 * kSecond, 10 * kSecond, 13 * kSecond, -kDay, kDay}) {
    clock.correct(wrong, now += kSecond);
    ASSERT_FALSE(client.ask(now).allowed) << wrong;
  }
  clock.correct(0, now += kSecond);
  EXPECT_EQ(client.ask(now).retry_after.count(), kMidnight + 45 * kDay - now) << "the end of 2026";
}

// The clock shows the day after tomorrow, or the month after next. Its permits are not denied until then.
TEST(CalendarShift, AClockThatWasTwoWindowsAheadDeniesNoNextWindow) {
  for (const CalendarUnit unit : {CalendarUnit::day, CalendarUnit::week, CalendarUnit::month, CalendarUnit::year}) {
    const Limit limit = limit_by(unit);
    const Window first = limit.calendar->window_at(kMidnight), second = limit.calendar->window_at(first.end_us);
    Clock clock;
    Client client{limit, clock};
    const std::int64_t wrong = second.end_us + kHour, now = kMidnight + 2 * kHour;
    EXPECT_TRUE(client.ask(wrong, 10).allowed);
    clock.correct(now - wrong, wrong);
    const auto at = [&](std::int64_t true_us) { return true_us + wrong - now; };
    EXPECT_EQ(client.ask(at(now)).retry_after.count(), first.end_us - now);
    EXPECT_EQ(client.ask(at(first.end_us), 10).reset_after.count(), second.end_us - first.end_us) << "as announced";
    EXPECT_FALSE(client.ask(at(second.end_us) - 1).allowed);
    EXPECT_TRUE(client.ask(at(second.end_us), 10).allowed);
  }
}

// The clock was set back by mistake, and then set right in two steps.
TEST(CalendarShift, AWindowWhoseEndWasSkippedHasNotEnded) {
  const Limit limit = limit_by(CalendarUnit::day);
  Clock clock;
  Client client{limit, clock};
  const std::int64_t now = kMidnight + 8 * kHour;
  EXPECT_TRUE(client.ask(now, 10).allowed);
  clock.correct(-100 * kDay, now + kHour);
  EXPECT_FALSE(client.ask(now + kHour).allowed);
  clock.correct(-60 * kHour, now + 2 * kHour);
  EXPECT_FALSE(client.ask(now + 2 * kHour).allowed);
  clock.correct(0, now + 3 * kHour);
  EXPECT_EQ(client.ask(now + 3 * kHour).retry_after.count(), kDay - 11 * kHour);
}

// A day ahead, then two, then back by a little: the true day is the earlier one.
TEST(CalendarShift, ASmallCorrectionAfterALargeOneIsFollowed) {
  const Limit limit = limit_by(CalendarUnit::day);
  Clock clock;
  const std::int64_t now = kMidnight - kHour;
  clock.correct(2 * kDay - kHour, now);
  clock.correct(2 * kHour, now);
  clock.correct(0, now);
  Client client{limit, clock};
  EXPECT_TRUE(client.ask(kMidnight, 10).allowed);
  EXPECT_EQ(client.ask(kMidnight + 12 * kHour).retry_after.count(), 12 * kHour);
  EXPECT_EQ(client.ask(kMidnight + kDay, 10).reset_after.count(), kDay);
}

// A reservation of the day before is not refunded to the day that a corrected clock has begun.
TEST(CalendarShift, RefundsOnlyToTheWindowThatWasCharged) {
  const Limit limit = limit_by(CalendarUnit::day);
  const auto refunded = [&](const CalendarShift& shift, std::int64_t charged, std::int64_t now) {
    const ShiftedCalendar shifted(shift);
    const FixedWindow state{fixed_window_at(limit, now).end_us, 10};
    return state.count - fixed_window_refund(state, limit, now, charged_at(limit, charged), 4).count;
  };
  const std::int64_t now = kMidnight + 20 * kMinute;
  Clock clock;
  clock.correct(-40 * kMinute, kMidnight + 10 * kMinute);
  EXPECT_EQ(refunded(clock.shift, kMidnight - 10 * kMinute, now), 0);
  EXPECT_EQ(refunded(clock.shift, kMidnight + 5 * kMinute, now), 4);
  EXPECT_EQ(refunded(clock.shift, kMidnight + 15 * kMinute, now), 4);
  clock.correct(-41 * kMinute, kMidnight + 15 * kMinute);
  EXPECT_EQ(refunded(clock.shift, kMidnight - 10 * kMinute, now), 0);
  EXPECT_EQ(refunded(clock.shift, kMidnight + 12 * kMinute, now), 4);
  Clock behind;
  behind.correct(40 * kMinute, kMidnight - 30 * kMinute);
  EXPECT_EQ(refunded(behind.shift, kMidnight - kHour, now), 0);
  EXPECT_EQ(refunded(behind.shift, kMidnight - 20 * kMinute, now), 0) << "perhaps charged to the window before";
  EXPECT_EQ(refunded(behind.shift, kMidnight + kMinute, now), 4);
}

// What was charged while the clock was two days ahead is not refunded two days later.
TEST(CalendarShift, RefundsNothingToTheSameDayOfAWrongClock) {
  const Limit limit = limit_by(CalendarUnit::day);
  const std::int64_t wrong = kMidnight + 2 * kDay + kHour;
  Clock clock;
  clock.correct(-2 * kDay, wrong);
  Client client{limit, clock};
  for (const std::int64_t charged : {wrong - kHour, wrong + kHour}) {
    for (const std::int64_t later : {kDay, 2 * kDay}) {
      const std::int64_t now = wrong + later;
      client.ask(now, 10);
      const ShiftedCalendar shifted(clock.shift);
      const FixedWindow after = fixed_window_refund(client.state, limit, now, charged_at(limit, charged), 4);
      EXPECT_EQ(after.count, client.state.count) << (charged - wrong) / kHour << " " << later / kDay;
    }
  }
}

// A clock that is wrong by up to `most_us`, and corrected again and again within a day; then it is right. Every true
// day (week, month, year) that begins after that admits the limit once, and wholly. Before, each key gets at most one
// quota for every day that any clock has shown, and one for the day in which all of this began.
void correct_at_random(std::uint64_t seed, CalendarUnit unit, std::int64_t most_us) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", unit " + std::to_string(static_cast<int>(unit)));
  std::mt19937_64 random(seed);
  const Limit limit = limit_by(unit);
  const Calendar& calendar = *limit.calendar;
  Clock clock;
  std::vector<Client> clients(8, Client{limit, clock});
  std::set<std::int64_t> shown;  // the ends of all windows that a clock was in
  std::int64_t now = kMidnight + test::pick(random, 0, 400) * kDay + test::pick(random, 0, kDay);
  const std::int64_t begin = now;
  const std::int64_t truly = test::pick(random, -most_us, most_us) / kSecond * kSecond;
  std::int64_t ahead = 0;
  const std::int64_t corrections = test::pick(random, 1, 12);
  for (std::int64_t i = 0; i <= corrections; ++i) {
    const std::int64_t until = now + test::pick(random, 0, kDay / corrections);
    for (; now < until; now += test::pick(random, 1, kHour)) {
      shown.insert(calendar.window_at(now + ahead).end_us);
      Client& client = clients[static_cast<std::size_t>(test::pick(random, 0, 7))];
      client.ask(now, test::pick(random, 1, 10));
      const Window window = calendar.window_at(now + ahead);
      const ShiftedCalendar shifted(clock.shift);
      const FixedWindow fresh = fixed_window_step({}, limit, now, 1).next;
      const std::int64_t end = fixed_window_end(fresh, limit, now);
      ASSERT_GT(end, now);
      if (most_us >= 19 * kHour / 2) continue;
      ASSERT_TRUE(end == window.end_us - ahead || end == window.next_end_us - ahead) << "the true midnight";
    }
    now = until;
    shown.insert(calendar.window_at(now + ahead).end_us);
    ahead = i == corrections ? truly : test::pick(random, -most_us, most_us) / kSecond * kSecond;
    clock.correct(ahead, now);
    shown.insert(calendar.window_at(now + ahead).end_us);
  }
  for (const Client& client : clients) {
    if (most_us < 19 * kHour / 2) {  // no further ahead than clocks stand still for
      ASSERT_LE(client.between(begin, now), limit.permits * static_cast<std::int64_t>(shown.size()));
    }
  }
  // Some clients ask often, others are away for days.
  Window day = calendar.window_at(now + truly);
  for (int i = 0; i < 4; ++i) {
    const std::int64_t start = i == 0 ? now : day.start_us - truly, end = day.end_us - truly;
    for (std::size_t one = 0; one < clients.size(); ++one) {
      if (test::pick(random, 0, 2) == 0) continue;
      const std::int64_t step = (end - start) / 12;
      for (std::int64_t at = start; at < end - step; at += test::pick(random, 1, 2 * step)) {
        clients[one].ask(at, test::pick(random, 1, 10));
      }
      clients[one].ask(end - 1);
    }
    for (const Client& client : clients) {
      ASSERT_TRUE(i == 0 || client.between(start, end) <= limit.permits) << "day " << i;
    }
    Client fresh{limit, clock};
    ASSERT_TRUE(fresh.ask(end - 1, 10).allowed);
    if (i > 1) {  // the clocks that stood still run again
      ASSERT_EQ(fresh.ask(end - 1).retry_after.count(), 1);
      ASSERT_TRUE(fresh.ask(end, 10).allowed);
    }
    day = calendar.window_at(day.end_us);
  }
}

TEST(CalendarShift, NoDayHasTwoQuotasAfterAnyCorrections) {
  const std::uint64_t seed = test::base_seed();
  for (std::uint64_t i = 0; i < 3'000 && !HasFailure(); ++i) {
    const auto unit = static_cast<CalendarUnit>(i % 4);
    const std::int64_t most[] = {3 * kSecond, kHour, 9 * kHour, 3 * kDay, 500 * kDay};
    correct_at_random(seed + i, unit, most[i / 4 % 5]);
  }
}

}  // namespace
}  // namespace weir::algorithm::calendar_shift_test
