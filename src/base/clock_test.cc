// The clocks that read the system's. table/file_test.cc tests how an offset is chosen, with made-up readings.

#include "weir/clock.h"

#include <gtest/gtest.h>

#include <limits>

namespace weir::base::clock_test {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

TEST(SharedClock, ShowsTheSameTimeForTheSameOffset) {
  const ClockReading reading = read_clocks();
  std::int64_t offset_us = 1'700'000'000 * kSecond - reading.boot_us, latest_us = 0;
  const auto one = make_shared_clock(offset_us, latest_us), other = make_shared_clock(offset_us, latest_us);
  const Micros first = one->now(), second = other->now(), third = one->now();
  EXPECT_LE(Micros{1'700'000'000 * kSecond}, first);
  EXPECT_LE(first, second);
  EXPECT_LE(second, third);
  offset_us += 1'000 * kSecond;
  EXPECT_LE(third + Micros{1'000 * kSecond}, other->now());
}

TEST(SharedClock, StoresTheLatestTimeAboutOnceASecond) {
  const ClockReading reading = read_clocks();
  const std::int64_t offset_us = 1'700'000'000 * kSecond - reading.boot_us;
  std::int64_t latest_us = 0;
  const auto clock = make_shared_clock(offset_us, latest_us);
  const std::int64_t seen_us = clock->now().count();
  EXPECT_EQ(latest_us, seen_us);
  for (const std::int64_t ahead_us : {seen_us + 3'600 * kSecond, std::numeric_limits<std::int64_t>::max()}) {
    latest_us = ahead_us;
    clock->now();
    EXPECT_EQ(latest_us, ahead_us) << "it never goes back";
  }
}

TEST(SharedClock, ReturnsAValidTimeForAnyOffset) {
  for (const std::int64_t offset_us :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), kTimeEnd}) {
    std::int64_t latest_us = std::numeric_limits<std::int64_t>::min();
    const Micros now = make_shared_clock(offset_us, latest_us)->now();
    EXPECT_GE(now.count(), 0);
    EXPECT_LT(now.count(), kTimeEnd);
  }
}

TEST(Clocks, ReturnTheSameBootIdAgain) {
  const ClockReading first = read_clocks(), second = read_clocks();
  EXPECT_NE(first.boot_id, (std::array<std::uint64_t, 2>{}));
  EXPECT_EQ(first.boot_id, second.boot_id);
  EXPECT_LE(first.boot_us, second.boot_us);
  EXPECT_GT(first.wall_us, 1'600'000'000 * kSecond);
}

}  // namespace
}  // namespace weir::base::clock_test
