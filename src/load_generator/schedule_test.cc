// Tests the intervals between requests, even after billions of them.
#include "load_generator/schedule.h"

#include <gtest/gtest.h>

namespace weir::load_generator {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Schedule, SpreadsRequestsEvenlyOverTheConnectionsInTurn) {
  const Schedule schedule({.rate = 1'000, .connections = 4, .start_ns = 500});
  for (std::uint64_t n = 0; n < 40; ++n) {
    EXPECT_EQ(schedule.burst_due_ns(n), 500 + static_cast<std::int64_t>(n) * 1'000'000);
    EXPECT_EQ(schedule.due_ns(schedule.connection_of(n), n / 4), schedule.burst_due_ns(n));
  }
}

TEST(Schedule, DoesNotDriftWhenTheRateDividesNothing) {
  const Schedule schedule({.rate = 7'000'003});
  EXPECT_EQ(schedule.burst_due_ns(7'000'003), kSecond);
  EXPECT_EQ(schedule.burst_due_ns(std::uint64_t{7'000'003} * 86'400), 86'400 * kSecond);
}

TEST(Schedule, MakesAllOfABurstDueAtOnce) {
  const Schedule schedule({.rate = 100, .burst = 10, .connections = 2});
  EXPECT_EQ(schedule.due_ns(0, 0), 0);
  EXPECT_EQ(schedule.due_ns(0, 9), 0);
  EXPECT_EQ(schedule.due_ns(1, 0), kSecond / 10);
  EXPECT_EQ(schedule.due_ns(0, 10), kSecond / 5);
  EXPECT_EQ(schedule.burst_due_ns(10), kSecond);
}

}  // namespace
}  // namespace weir::load_generator
