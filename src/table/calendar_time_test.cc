// A state file that was created while the wall clock was wrong: its calendars follow the corrected clock, its periods
// do not move.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "seed.h"
#include "table/table.h"

namespace weir::table::calendar_time_test {
namespace {

algorithm::CalendarShift shift_in(const Header& header) {
  return calendar_shift(header).value_or(algorithm::CalendarShift{});
}

constexpr std::int64_t kSecond = 1'000'000, kHour = 3'600 * kSecond, kDay = 24 * kHour;
constexpr std::int64_t kMidnight = 20'774 * kDay;

class CalendarTime : public ::testing::Test {
 protected:
  void open(std::int64_t at, const std::string& file = {}) {
    clock_->set(Micros{at});
    table_.reset();
    table_ = Table::open({.file = file, .keys = 1'000, .clock = clock_}).value();
  }
  std::int64_t now() const { return clock_->now().count(); }
  Decision check(const std::string& key, const Limit& limit, std::int64_t cost = 1) {
    Debit debit{.name = table_->key_name(limit, key), .limit = &limit, .cost = cost};
    if (!table_->charge_fast(debit, now())) {
      EXPECT_TRUE(table_->charge({&debit, 1}, {}, now()));
    }
    return debit.decision;
  }
  // The wall clock is `ahead_us` ahead of the table's clock, and the sweep records it. The file was made by the clock
  // of the machine, not by the table's.
  void correct(std::int64_t ahead_us) {
    Header& header = table_->region().header();
    const std::int64_t created = std::exchange(header.created_us, 0);
    note_wall_clock(header, {{1, 2}, now() + ahead_us, now() - header.clock_offset_us});
    header.created_us = created;
  }
  void sweep() {
    while (!table_->sweep(now(), 128)) {
    }
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
  sweep();
  EXPECT_EQ(check("a", day_).reset_after.count(), 24 * kHour + 30 * 60 * kSecond)
      << "the current day continues until it truly ends";
  EXPECT_FALSE(check("b", day_).allowed);
  clock_->set(Micros{kMidnight + kDay + 40 * 60 * kSecond - 1});
  EXPECT_FALSE(check("b", day_).allowed);
  clock_->advance(Micros{1});
  EXPECT_EQ(check("b", day_).reset_after.count(), 24 * kHour);
}

// Reported: 10 at 23:50, 10 at 0:30 and 10 at 0:40, all on one true day. Also if the server restarts in between.
TEST_F(CalendarTime, ASecondCorrectionGivesNoDayAnotherQuota) {
  constexpr std::int64_t kMinute = 60 * kSecond;
  const auto folder = std::filesystem::temp_directory_path() / ("weir-calendar-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  for (const std::string& file : {std::string{}, (folder / "state").string()}) {
    const auto go_to = [&](std::int64_t minutes) {
      file.empty() ? clock_->set(Micros{kMidnight + minutes * kMinute}) : open(kMidnight + minutes * kMinute, file);
      sweep();
    };
    open(kMidnight - 10 * kMinute, file);
    EXPECT_TRUE(check("a", day_, 10).allowed);
    go_to(10);
    correct(-40 * kMinute);
    go_to(20);
    correct(-41 * kMinute);
    go_to(30);
    EXPECT_TRUE(check("a", day_, 10).allowed) << "the 17th had begun before the corrections";
    for (const std::int64_t at : {40, 41, 700, 1'440, 1'480}) {
      go_to(at);
      EXPECT_FALSE(check("a", day_).allowed) << at;
      EXPECT_EQ(check("b", day_, 0).remaining, 10);
    }
    go_to(1'481);
    EXPECT_TRUE(check("a", day_, 10).allowed);
    EXPECT_EQ(check("a", day_).retry_after.count(), kDay);
  }
  table_.reset();
  std::filesystem::remove_all(folder);
}

// Keys in a table that is swept all the time. The clock is corrected at random within a day, and then right.
TEST_F(CalendarTime, NoDayHasTwoQuotasAfterAnyCorrections) {
  std::mt19937_64 random = test::seeded();
  for (int round = 0; round < 100 && !HasFailure(); ++round) {
    open(kMidnight + test::pick(random, 0, kDay));
    const std::int64_t corrections = test::pick(random, 1, 8);
    std::int64_t ahead = 0;
    for (std::int64_t i = 0; i < corrections; ++i) {
      for (int request = 0; request < 10; ++request) {
        clock_->advance(Micros{test::pick(random, 0, kDay / 100)});
        check("k" + std::to_string(test::pick(random, 0, 3)), day_, test::pick(random, 1, 10));
        sweep();
      }
      ahead = test::pick(random, -9 * kHour, 9 * kHour) / kSecond * kSecond;
      correct(ahead);
      ahead = shift_in(table_->region().header()).now_us;  // not for a small difference
    }
    const std::int64_t midnight = (now() + ahead) / kDay * kDay + kDay - ahead;
    for (std::int64_t day = 0; day < 3; ++day) {
      std::map<std::string, std::int64_t> admitted;
      while (now() < midnight + day * kDay) {  // the rest of the day of the last correction
        check("k" + std::to_string(test::pick(random, 0, 3)), day_, test::pick(random, 1, 10));
        clock_->set(Micros{std::min(midnight + day * kDay, now() + test::pick(random, 1, 3 * kHour))});
        sweep();
      }
      while (now() < midnight + (day + 1) * kDay - kHour) {
        const std::string key = "k" + std::to_string(test::pick(random, 0, 3));
        const std::int64_t cost = test::pick(random, 1, 10);
        admitted[key] += check(key, day_, cost).allowed ? cost : 0;
        clock_->advance(Micros{test::pick(random, 1, kHour)});
        sweep();
      }
      for (const auto& [key, permits] : admitted) EXPECT_LE(permits, 10) << key << " on day " << day;
    }
  }
}

// The file was made before the first NTP step: the clock was ahead, and is now behind the file's creation.
TEST_F(CalendarTime, FollowsAClockThatIsSetBackBehindTheCreationOfTheFile) {
  Header header{};
  const std::int64_t boot = 10 * kSecond, wrong = kMidnight + 400 * kDay;
  const auto at = [&](std::int64_t wall, std::int64_t booted) { return ClockReading{{1, 2}, wall, booted}; };
  header.created_us = wrong;
  set_clock(header, at(wrong, boot));
  note_wall_clock(header, at(wrong + kSecond, boot + kSecond));
  EXPECT_EQ(shift_in(header), algorithm::CalendarShift{});
  note_wall_clock(header, at(kMidnight, boot + 2 * kSecond));
  EXPECT_EQ(shift_in(header).now_us, -400 * kDay - 2 * kSecond);
  std::int64_t drifted = kMidnight;  // by a second a minute
  for (std::int64_t minute = 1; minute <= 9; ++minute) {
    drifted += 61 * kSecond;
    note_wall_clock(header, at(drifted, boot + 2 * kSecond + minute * 60 * kSecond));
  }
  EXPECT_EQ(shift_in(header).now_us, -400 * kDay + 7 * kSecond);
}

// A machine without a clock of its own starts in 1970. Its days go on from the latest time until the clock is set.
TEST_F(CalendarTime, DoesNotFollowAClockThatWasNotSetSinceTheMachineStarted) {
  Header header{};
  const auto at = [&](std::int64_t boot_id, std::int64_t wall, std::int64_t booted) {
    return ClockReading{{static_cast<std::uint64_t>(boot_id), 2}, wall, booted};
  };
  header.created_us = kMidnight;
  set_clock(header, at(1, kMidnight, 10 * kSecond));
  set_clock(header, at(2, 20 * kSecond, 20 * kSecond));
  note_wall_clock(header, at(2, 30 * kSecond, 30 * kSecond));
  EXPECT_EQ(shift_in(header), algorithm::CalendarShift{});
  note_wall_clock(header, at(2, kMidnight + kHour, 40 * kSecond));
  EXPECT_EQ(shift_in(header).now_us, kHour - 20 * kSecond);
}

// A kill while the clock is set for a new boot: it is set again from the same values.
TEST_F(CalendarTime, AKillWhileTheClockIsSetForgetsNothing) {
  Header header{};
  header.created_us = kMidnight;
  set_clock(header, {{1, 2}, kMidnight, 10 * kSecond});
  note_wall_clock(header, {{1, 2}, kMidnight + kHour, 20 * kSecond});
  const Header before = header;
  const ClockReading next{{3, 4}, kMidnight + 2 * kHour, 5 * kSecond};
  set_clock(header, next);
  const Header after = header;
  header.latest_us = before.latest_us;  // as if it had been killed before the last two were stored
  std::copy(std::begin(before.boot_id), std::end(before.boot_id), header.boot_id);
  set_clock(header, next);
  EXPECT_EQ(shift_in(header), shift_in(after));
  EXPECT_EQ(header.clock_offset_us, after.clock_offset_us);
}

// A reader never takes words of two corrections for one.
TEST_F(CalendarTime, ACorrectionIsReadAsAWhole) {
  Header header{};
  header.created_us = 1;
  set_clock(header, {{1, 2}, kMidnight, 10 * kSecond});
  note_wall_clock(header, {{1, 2}, kMidnight + kHour, 10 * kSecond});
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    for (std::int64_t i = 1; i <= 100'000; ++i) {
      const std::int64_t boot = 10 * kSecond + i * kSecond;
      note_wall_clock(header, {{1, 2}, kMidnight + i * kSecond + (i % 100) * kHour, boot});
    }
    is_over = true;
  });
  std::int64_t read = 0;
  for (; !is_over; ++read) {
    const algorithm::CalendarShift shift = shift_in(header);
    const std::int64_t i = (shift.since_us - kMidnight) / kSecond;
    ASSERT_EQ(shift.now_us, i == 0 ? kHour : i % 100 * kHour) << i;
  }
  writer.join();
  EXPECT_GT(read, 0);
}

// Also if it is suspended during two of them, after which the same words are in effect.
TEST_F(CalendarTime, TwoCorrectionsDoNotLookLikeNone) {
  Header header{};
  header.created_us = 1;
  set_clock(header, {{1, 2}, kMidnight, 10 * kSecond});
  note_wall_clock(header, {{1, 2}, kMidnight + kHour, 10 * kSecond});
  const std::uint64_t before = header.calendar_shift;
  note_wall_clock(header, {{1, 2}, kMidnight + 2 * kHour, 10 * kSecond});
  note_wall_clock(header, {{1, 2}, kMidnight + 3 * kHour, 10 * kSecond});
  EXPECT_NE(header.calendar_shift, before);
}

TEST_F(CalendarTime, IgnoresASmallDifference) {
  open(kMidnight + kHour);
  correct(kSecond);
  EXPECT_EQ(shift_in(table_->region().header()), algorithm::CalendarShift{});
  correct(3 * kSecond);
  EXPECT_EQ(shift_in(table_->region().header()).now_us, 3 * kSecond);
}

}  // namespace
}  // namespace weir::table::calendar_time_test
