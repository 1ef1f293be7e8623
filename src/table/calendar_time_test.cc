// A state file that was created while the wall clock was wrong: its calendars follow the corrected clock, its periods
// do not move.
#include <gtest/gtest.h>

#include "table/table.h"

namespace weir::table::calendar_time_test {
namespace {

constexpr std::int64_t kSecond = 1'000'000, kHour = 3'600 * kSecond, kDay = 24 * kHour;
constexpr std::int64_t kMidnight = 20'774 * kDay;

class CalendarTime : public ::testing::Test {
 protected:
  void open(std::int64_t at) {
    clock_->set(Micros{at});
    table_ = Table::open({.keys = 1'000, .clock = clock_}).value();
  }
  std::int64_t now() const { return clock_->now().count(); }
  Decision check(const std::string& key, const Limit& limit, std::int64_t cost = 1) {
    Debit debit{.name = table_->key_name(limit, key), .limit = &limit, .cost = cost};
    if (!table_->charge_fast(debit, now())) {
      EXPECT_TRUE(table_->charge({&debit, 1}, {}, now()));
    }
    return debit.decision;
  }
  // The wall clock is `ahead_us` ahead of the table's clock, and the sweep records it.
  void correct(std::int64_t ahead_us) {
    Header& header = table_->region().header();
    header.created_us = 0;
    note_wall_clock(header, {{1, 2}, now() + ahead_us, now() - header.clock_offset_us});
  }

  const Limit day_{
      .algorithm = Algorithm::fixed_window,
      .permits = 10,
      .capacity = 10,
      .calendar = std::make_shared<const algorithm::Calendar>(CalendarUnit::day, "UTC", algorithm::Zone{})};
  const Limit hours_ = algorithm::make_window(Algorithm::fixed_window, 10, 24 * kHour).value();
  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{0});
  std::unique_ptr<Table> table_;
};

TEST_F(CalendarTime, FollowsTheFirstStepOfAClockThatWasNeverSet) {
  open(30 * 60 * kSecond);  // it is 1970
  EXPECT_EQ(check("a", day_, 10).reset_after.count(), kDay - 30 * 60 * kSecond);
  EXPECT_EQ(check("b", hours_, 10).reset_after.count(), kDay - 30 * 60 * kSecond);
  correct(kMidnight + 12 * kHour);  // and then 12:30 of a day in 2026
  EXPECT_FALSE(check("a", day_).allowed) << "what was used stays used until its window ends";
  EXPECT_EQ(check("new", day_).reset_after.count(), 11 * kHour + 30 * 60 * kSecond) << "the true midnight";
  EXPECT_EQ(check("new", day_).remaining, 8) << "also on the fast path";
  clock_->advance(Micros{11 * kHour + 30 * 60 * kSecond});
  EXPECT_EQ(check("new", day_).remaining, 9);
  EXPECT_FALSE(check("b", hours_).allowed) << "a period in seconds does not move";
  clock_->advance(Micros{12 * kHour});
  EXPECT_EQ(check("a", day_).reset_after.count(), 12 * kHour) << "the next window is the true day";
  EXPECT_TRUE(check("b", hours_).allowed);
}

TEST_F(CalendarTime, GrantsEachDayOneQuotaWhenTheClockIsSetBack) {
  open(kMidnight - kHour);
  check("a", day_, 10);
  clock_->advance(Micros{kHour + 10 * 60 * kSecond});
  EXPECT_TRUE(check("b", day_, 10).allowed);
  correct(-40 * 60 * kSecond);  // it is 23:30 of the day before
  while (!table_->sweep(now(), 128)) {
  }
  EXPECT_EQ(check("a", day_).reset_after.count(), 24 * kHour - 10 * 60 * kSecond) << "the current day continues";
  EXPECT_FALSE(check("b", day_).allowed);
  clock_->set(Micros{kMidnight + kDay - 1});
  EXPECT_FALSE(check("b", day_).allowed);
  clock_->set(Micros{kMidnight + kDay});
  EXPECT_EQ(check("b", day_).reset_after.count(), 24 * kHour + 40 * 60 * kSecond)
      << "the next window ends with the true day";
}

TEST_F(CalendarTime, IgnoresASmallDifference) {
  open(kMidnight + kHour);
  correct(kSecond);
  EXPECT_EQ(calendar_shift(table_->region().header()), algorithm::CalendarShift{});
  correct(3 * kSecond);
  EXPECT_EQ(calendar_shift(table_->region().header()).now_us, 3 * kSecond);
}

}  // namespace
}  // namespace weir::table::calendar_time_test
