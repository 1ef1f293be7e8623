// After a correction of the wall clock, windows follow it from the next one on, and no day begins twice.
#include "algorithm/calendar_shift.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "algorithm/fixed_window.h"
#include "algorithm/limit.h"
#include "seed.h"

namespace weir::algorithm::calendar_shift_test {
namespace {

constexpr std::int64_t kSecond = 1'000'000, kHour = 3'600 * kSecond, kDay = 24 * kHour;
constexpr std::int64_t kMidnight = 20'774 * kDay;  // 2026-11-17

Limit limit_by(CalendarUnit unit, std::int64_t permits = 10) {
  return {.algorithm = Algorithm::fixed_window,
          .permits = permits,
          .capacity = permits,
          .calendar = std::make_shared<const Calendar>(unit, "UTC", Zone{})};
}

// A client that sends requests all the time: when it was granted a permit.
struct Client {
  const Limit& limit;
  FixedWindow state{};
  std::vector<std::int64_t> given{};

  void ask(std::int64_t now) {
    if (const auto settled = fixed_window_settle(state, limit, now); settled.moved) state = settled.state;
    const auto stepped = fixed_window_step(state, limit, now, 1);
    if (!stepped.decision.allowed) return;
    state = stepped.next;
    given.push_back(now);
  }
};

// The clock shows 23:30 at 0:10. When it is corrected, a key that used its day keeps that usage until the window ends
// as announced. A key that comes later gets the true day.
TEST(CalendarShift, FollowsAClockThatWasBehind) {
  const Limit limit = limit_by(CalendarUnit::day);
  Client early{limit}, late{limit};
  const std::int64_t wrong = kMidnight - 30 * 60 * kSecond;
  for (int i = 0; i < 20; ++i) early.ask(wrong);
  EXPECT_EQ(early.given.size(), 10u);
  const ShiftedCalendar shifted({0, 40 * 60 * kSecond, wrong});
  for (int i = 0; i < 20; ++i) early.ask(wrong + kSecond), late.ask(wrong + kSecond);
  EXPECT_EQ(early.given.size(), 10u);
  EXPECT_EQ(late.given.size(), 10u);
  EXPECT_EQ(late.state.end_us, kMidnight + kDay - 40 * 60 * kSecond) << "the true midnight";
  for (int i = 0; i < 20; ++i) early.ask(kMidnight);
  EXPECT_EQ(early.given.size(), 20u);
  EXPECT_EQ(early.state.end_us, kMidnight + kDay - 40 * 60 * kSecond);
}

// The clock shows 0:10 at 23:30. The day it has begun continues, and the next one ends at the true midnight.
TEST(CalendarShift, BeginsNoDayTwiceAfterAClockThatWasAhead) {
  const Limit limit = limit_by(CalendarUnit::day);
  const std::int64_t ahead = 40 * 60 * kSecond, told = kMidnight + 10 * 60 * kSecond;
  Client yesterday{limit}, today{limit};
  for (int i = 0; i < 20; ++i) yesterday.ask(kMidnight - kHour), today.ask(told);
  const ShiftedCalendar shifted({0, -ahead, told});
  // For half an hour it is yesterday again; for some forty minutes after the announced end it is still today.
  for (std::int64_t now = told; now < kMidnight + 3 * kDay; now += 60 * kSecond) yesterday.ask(now), today.ask(now);
  // The 17th as announced, the 18th and the 19th, each once.
  EXPECT_EQ(today.given.size(), 30u);
  EXPECT_EQ(yesterday.given.size(), 10u + 30u);
  EXPECT_EQ(limit.calendar->window_at(told).end_us, kMidnight + kDay);
  EXPECT_EQ(limit.calendar->window_at(kMidnight + kDay).end_us, kMidnight + 2 * kDay + ahead);
  EXPECT_EQ(limit.calendar->window_at(kMidnight + 3 * kDay).end_us, kMidnight + 3 * kDay + ahead);
}

// For any correction: windows do not overlap, and from the next one on they end when the true ones do. No true window
// contains two ends, and the window in progress does not begin again.
TEST(CalendarShift, KeepsOneQuotaForEachWindow) {
  const std::uint64_t seed = test::base_seed();
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  for (int i = 0; i < 2'000; ++i) {
    const auto unit = static_cast<CalendarUnit>(random() % 4);
    const Calendar calendar(unit, "UTC", Zone{});
    constexpr std::int64_t kLengths[] = {1, 7, 31, 366};
    const std::int64_t length = kLengths[static_cast<std::size_t>(unit)] * kDay;
    const std::int64_t most = random() % 2 == 0 ? length : 40 * length;
    const std::int64_t before = (up_to(most) - most / 2) / kSecond * kSecond,
                       now = (up_to(most) - most / 2) / kSecond * kSecond;
    const std::int64_t since = kMidnight + up_to(400 * kDay);
    Window was{};
    {
      const ShiftedCalendar shifted({before, before, 0});
      was = calendar.window_at(since);
    }
    const ShiftedCalendar shifted({before, now, since});
    Window last = calendar.window_at(since);
    if (now < before) {
      ASSERT_EQ(last.end_us, was.end_us) << "seed " << seed;
    }
    for (std::int64_t at = since; at < since + 4 * length; at += 1 + up_to(length / 8)) {
      const Window window = calendar.window_at(at);
      ASSERT_LE(window.start_us, at);
      ASSERT_GT(window.end_us, at);
      ASSERT_GT(window.next_end_us, window.end_us);
      if (window.end_us == last.end_us) continue;
      ASSERT_GE(window.end_us, last.end_us) << "seed " << seed;
      Window truly{};
      {
        const ShiftedCalendar plain({now, now, 0});
        truly = calendar.window_at(window.end_us - 1);
        ASSERT_EQ(window.end_us, truly.end_us) << "seed " << seed;
        ASSERT_GE(window.end_us - last.end_us, truly.end_us - truly.start_us)
            << "a true window for itself, seed " << seed;
      }
      last = window;
    }
  }
}

}  // namespace
}  // namespace weir::algorithm::calendar_shift_test
