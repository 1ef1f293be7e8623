// Calendar windows against a slow definition that only reads local time from the C library, and against the known
// dates on which clocks did something unusual.
//
// Random tests print their seed; WEIR_SEED replays one.
#include "algorithm/calendar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "algorithm/zone_fixture.h"
#include "seed.h"

namespace weir::algorithm::calendar_test {
namespace {

using std::chrono::days;
using std::chrono::sys_days;

constexpr std::int64_t kSecond_us = 1'000'000;
constexpr CalendarUnit kUnits[] = {CalendarUnit::day, CalendarUnit::week, CalendarUnit::month, CalendarUnit::year};

// Microseconds of a UTC date.
std::int64_t utc(int year, unsigned month, unsigned day, int hour = 0, int minute = 0) {
  return utc_seconds(year, month, day, hour, minute) * kSecond_us;
}

Zone zone_named(const std::string& name) {
  const auto zone = parse_tzif(zone_bytes(name));
  EXPECT_TRUE(zone) << name << ": these tests need the package tzdata";
  return zone.value_or(Zone{});
}

Calendar calendar_of(CalendarUnit unit, const std::string& name) { return {unit, name, zone_named(name)}; }

// --- the slow definition ---------------------------------------------------------------------------------------

std::int64_t local_at(std::int64_t utc_s) { return utc_s + LibraryZone::offset_at(utc_s); }

// Checks every minute, then every second of the right minute. No clock was past a midnight for less than a minute
// and then went back.
std::int64_t first_second_at_or_past(std::int64_t local_s) {
  std::int64_t t = local_s - 15 * 3600;
  while (local_at(t) < local_s) t += 60;
  for (t -= 59; local_at(t) < local_s;) ++t;
  return t;
}

// Uses the C library's calendar, not <chrono>'s.
bool begins_unit(CalendarUnit unit, sys_days day) {
  const std::time_t t = day.time_since_epoch().count() * std::time_t{86'400};
  std::tm date{};
  gmtime_r(&t, &date);
  if (unit == CalendarUnit::week) return date.tm_wday == 1;
  if (unit == CalendarUnit::month) return date.tm_mday == 1;
  if (unit == CalendarUnit::year) return date.tm_yday == 0;
  return true;
}

std::set<std::int64_t> boundaries_near(CalendarUnit unit, std::int64_t now_us) {
  const int reach[] = {3, 16, 64, 740};
  const sys_days today{days{now_us / kSecond_us / 86'400}};
  std::set<std::int64_t> all;
  for (int d = -reach[static_cast<int>(unit)]; d <= reach[static_cast<int>(unit)]; ++d) {
    const sys_days day = today + days{d};
    if (!begins_unit(unit, day)) continue;
    all.insert(first_second_at_or_past(day.time_since_epoch().count() * std::int64_t{86'400}) * kSecond_us);
  }
  return all;
}

void expect_as_defined(const Calendar& calendar, std::int64_t now_us) {
  const LibraryZone library(calendar.zone_name());
  const auto boundaries = boundaries_near(calendar.unit(), now_us);
  const auto end = boundaries.upper_bound(now_us);
  ASSERT_NE(end, boundaries.begin());
  ASSERT_NE(std::next(end), boundaries.end());
  const Window expected{*std::prev(end), *end, *std::next(end)};
  EXPECT_EQ(calendar.window_at(now_us), expected)
      << to_string(calendar.unit()) << " in " << calendar.zone_name() << " at " << now_us;
}

// Most clocks change only at their transitions, so half of the instants are near one.
std::int64_t interesting_us(std::mt19937_64& random, const Zone& zone) {
  const std::int64_t end_s = utc(2110, 1, 1) / kSecond_us;
  std::int64_t now_s = test::pick(random, 0, end_s);
  if (!zone.transitions.empty() && test::pick(random, 0, 1) == 0) {
    const auto at = static_cast<std::size_t>(test::pick(random, 0, std::ssize(zone.transitions) - 1));
    now_s = std::clamp<std::int64_t>(zone.transitions[at].at_s + test::pick(random, -90'000, 90'000), 0, end_s);
  }
  return now_s * kSecond_us + test::pick(random, 0, kSecond_us - 1);
}

TEST(CalendarByDefinition, AgreesInEveryZone) {
  auto random = test::seeded();
  const auto names = zone_names();
  ASSERT_GT(names.size(), 300u) << "these tests need the package tzdata";
  for (const std::string& name : names) {
    const Zone zone = zone_named(name);
    const Calendar calendar(kUnits[test::pick(random, 0, 3)], name, zone);
    expect_as_defined(calendar, interesting_us(random, zone));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(CalendarByDefinition, AgreesAroundTransitionsAtMidnight) {
  auto random = test::seeded();
  for (const char* name : {"America/St_Johns", "America/Sao_Paulo", "America/Havana", "Asia/Beirut", "Asia/Gaza",
                           "Africa/Cairo", "Asia/Tehran", "America/Nuuk", "Pacific/Apia", "Atlantic/Azores"}) {
    const Zone zone = zone_named(name);
    const Calendar calendar(CalendarUnit::day, name, zone);
    for (int i = 0; i < 25; ++i) {
      const auto at = static_cast<std::size_t>(test::pick(random, 0, std::ssize(zone.transitions) - 1));
      const std::int64_t now_s = zone.transitions[at].at_s + test::pick(random, -7'300, 7'300);
      if (now_s >= 0 && now_s < utc(2110, 1, 1) / kSecond_us) expect_as_defined(calendar, now_s * kSecond_us);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Calendar, HasWindowsThatMeetWithoutGapOrOverlap) {
  auto random = test::seeded();
  for (const std::string& name : zone_names()) {
    const Zone zone = zone_named(name);
    for (const CalendarUnit unit : kUnits) {
      const Calendar calendar(unit, name, zone);
      for (int i = 0; i < 6; ++i) {
        const std::int64_t now = interesting_us(random, zone);
        const Window window = calendar.window_at(now);
        ASSERT_LE(window.start_us, now);
        ASSERT_LT(now, window.end_us);
        ASSERT_LT(window.end_us, window.next_end_us);
        ASSERT_EQ(calendar.window_at(window.end_us - 1), window) << name;
        ASSERT_EQ(calendar.window_at(std::max<std::int64_t>(0, window.start_us)), window) << name;
        const Window next = calendar.window_at(window.end_us);
        ASSERT_EQ(next.start_us, window.end_us) << name;
        ASSERT_EQ(next.end_us, window.next_end_us) << name;
      }
    }
  }
}

// --- the timetable ---------------------------------------------------------------------------------------------

void expect_day(const std::string& zone, std::int64_t now_us, std::int64_t start_us, std::int64_t end_us) {
  const Window window = calendar_of(CalendarUnit::day, zone).window_at(now_us);
  EXPECT_EQ(window.start_us, start_us) << zone;
  EXPECT_EQ(window.end_us, end_us) << zone;
}

TEST(Calendar, BeginsADayLateWhoseMidnightDoesNotExist) {
  // Sao Paulo went from 00:00 to 01:00 on 2018-11-04: 23 hours.
  expect_day("America/Sao_Paulo", utc(2018, 11, 4, 3), utc(2018, 11, 4, 3), utc(2018, 11, 5, 2));
  expect_day("America/Sao_Paulo", utc(2018, 11, 4, 2, 59), utc(2018, 11, 3, 3), utc(2018, 11, 4, 3));
}

TEST(Calendar, BeginsADayOnceWhoseMidnightComesTwice) {
  // Havana went from 01:00 back to 00:00 on 2023-11-05: 25 hours.
  expect_day("America/Havana", utc(2023, 11, 5, 4), utc(2023, 11, 5, 4), utc(2023, 11, 6, 5));
  expect_day("America/Havana", utc(2023, 11, 5, 5), utc(2023, 11, 5, 4), utc(2023, 11, 6, 5));
}

TEST(Calendar, DoesNotReturnToYesterdayWhenTheClockDoes) {
  // St John's went from 00:01 back to 23:01 on 2006-10-29.
  const Calendar calendar = calendar_of(CalendarUnit::day, "America/St_Johns");
  const Window sunday{utc(2006, 10, 29, 2, 30), utc(2006, 10, 30, 3, 30), utc(2006, 10, 31, 3, 30)};
  EXPECT_EQ(calendar.window_at(utc(2006, 10, 29, 2, 30)), sunday);
  EXPECT_EQ(calendar.window_at(utc(2006, 10, 29, 2, 31)), sunday);  // Saturday 23:01 again
  EXPECT_EQ(calendar.window_at(utc(2006, 10, 29, 3, 29)), sunday);
  EXPECT_EQ(calendar.window_at(utc(2006, 10, 29, 3, 30)), sunday);
  EXPECT_EQ(calendar.window_at(utc(2006, 10, 29, 2, 30) - 1).end_us, sunday.start_us);
  // Beirut's clock never shows Sunday's midnight before it is set back to 23:00.
  expect_day("Asia/Beirut", utc(2021, 10, 30, 21), utc(2021, 10, 29, 21), utc(2021, 10, 30, 22));
}

TEST(Calendar, LeavesOutDaysThatAZoneLeftOut) {
  // Samoa had no 2011-12-30, Kwajalein no 1993-08-21.
  const Calendar apia = calendar_of(CalendarUnit::day, "Pacific/Apia");
  EXPECT_EQ(apia.window_at(utc(2011, 12, 30, 9, 59)),
            (Window{utc(2011, 12, 29, 10), utc(2011, 12, 30, 10), utc(2011, 12, 31, 10)}));
  EXPECT_EQ(apia.window_at(utc(2011, 12, 28, 11)).next_end_us, utc(2011, 12, 30, 10));
  EXPECT_EQ(apia.window_at(utc(2011, 12, 30, 10)).start_us, utc(2011, 12, 30, 10));
  const Calendar kwajalein = calendar_of(CalendarUnit::day, "Pacific/Kwajalein");
  EXPECT_EQ(kwajalein.window_at(utc(1993, 8, 21, 11)),
            (Window{utc(1993, 8, 20, 12), utc(1993, 8, 21, 12), utc(1993, 8, 22, 12)}));
}

TEST(Calendar, KnowsLeapDaysMondaysAndYears) {
  const auto in_utc = [](CalendarUnit unit, std::int64_t now) { return Calendar(unit, "UTC", Zone{}).window_at(now); };
  const auto month = CalendarUnit::month, week = CalendarUnit::week, year = CalendarUnit::year;
  EXPECT_EQ(in_utc(month, utc(2024, 2, 29, 23, 59)), (Window{utc(2024, 2, 1), utc(2024, 3, 1), utc(2024, 4, 1)}));
  EXPECT_EQ(in_utc(month, utc(2100, 2, 28)), (Window{utc(2100, 2, 1), utc(2100, 3, 1), utc(2100, 4, 1)}));
  EXPECT_EQ(in_utc(CalendarUnit::day, utc(2000, 2, 28, 12)).next_end_us, utc(2000, 3, 1));
  EXPECT_EQ(in_utc(month, utc(2023, 12, 31)), (Window{utc(2023, 12, 1), utc(2024, 1, 1), utc(2024, 2, 1)}));
  EXPECT_EQ(in_utc(week, utc(2024, 6, 9, 23, 59)), (Window{utc(2024, 6, 3), utc(2024, 6, 10), utc(2024, 6, 17)}));
  EXPECT_EQ(in_utc(week, utc(2024, 6, 10)).start_us, utc(2024, 6, 10));
  EXPECT_EQ(in_utc(year, utc(2024, 12, 31)), (Window{utc(2024, 1, 1), utc(2025, 1, 1), utc(2026, 1, 1)}));
}

TEST(Calendar, AnswersFromTheFirstMicrosecondToTheLast) {
  for (const char* name : {"UTC", "Europe/Berlin", "Pacific/Kiritimati", "Etc/GMT+12"}) {
    for (const CalendarUnit unit : kUnits) {
      const Calendar calendar = calendar_of(unit, name);
      for (const std::int64_t now : {std::int64_t{0}, kTimeEnd - 1}) {
        const Window window = calendar.window_at(now);
        EXPECT_LE(window.start_us, now);
        EXPECT_GT(window.end_us, now);
      }
    }
  }
  const Calendar weeks(CalendarUnit::week, "UTC", Zone{});
  EXPECT_EQ(weeks.window_at(0).start_us, utc(1969, 12, 29));  // the epoch was a Thursday
}

TEST(Calendar, HasATagThatNeverChanges) {
  const auto tag = [](CalendarUnit unit, const char* zone) { return Calendar(unit, zone, Zone{}).tag(); };
  // Fixed values, because stored states contain them.
  EXPECT_EQ(tag(CalendarUnit::day, "UTC"), 1'398'233'669);
  EXPECT_EQ(tag(CalendarUnit::month, "Europe/Berlin"), 1'121'408'266);
  std::set<std::int64_t> tags;
  std::size_t count = 0;
  for (const std::string& name : zone_names()) {
    for (const CalendarUnit unit : kUnits) {
      const std::int64_t value = tag(unit, name.c_str());
      EXPECT_GE(value, 1);
      EXPECT_LT(value, std::int64_t{1} << 31);
      tags.insert(value);
      ++count;
    }
  }
  EXPECT_EQ(tags.size(), count);
}

TEST(Calendar, AcceptsOnlyZoneNamesThatStayInTheirFolder) {
  for (const char* name : {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "W-SU"}) {
    EXPECT_TRUE(is_zone_name(name)) << name;
  }
  for (const char* name :
       {"", "/", "/etc/passwd", "..", "../x", "a/../b", "a//b", "a/", "a b", "a.b", "a\\b", "\xc3\xa9"}) {
    EXPECT_FALSE(is_zone_name(name)) << name;
  }
  EXPECT_FALSE(is_zone_name(std::string_view("UTC\0", 4)));
}

}  // namespace
}  // namespace weir::algorithm::calendar_test
