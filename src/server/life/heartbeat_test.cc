// Tests the heartbeat: it is due at half of the watchdog's period, and stops while a loop hangs.
#include "server/life/heartbeat.h"

#include <gtest/gtest.h>

#include <array>

namespace weir::server::life {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

// Calls look() whenever it is due, for `many` seconds. `moves`: the loops that make progress.
int beats(Heartbeat& heart, std::array<std::uint64_t, 2>& ticks, Micros& now, int many, std::array<bool, 2> moves) {
  int notified = 0;
  for (const Micros end = now + Micros{many * kSecond}; now < end;) {
    const Micros next = std::min(std::max(heart.due(), now + Micros{1}), end);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      if (moves[i]) ticks[i] += static_cast<std::uint64_t>(next.count() / kSecond - now.count() / kSecond);
    }
    now = next;
    if (now < end && heart.look(now, ticks)) ++notified;
  }
  return notified;
}

TEST(Heartbeat, NotifiesAtHalfOfThePeriod) {
  for (const std::int64_t period : {1 * kSecond, 10 * kSecond, 30 * kSecond}) {
    Heartbeat heart(Micros{period}, 2);
    std::array<std::uint64_t, 2> ticks{};
    Micros now{5 * kSecond};
    const int notified = beats(heart, ticks, now, 60, {true, true});
    EXPECT_NEAR(notified, static_cast<double>(60 * kSecond * 2 / period), 2) << period;
  }
}

TEST(Heartbeat, StopsWhileALoopHangs) {
  Heartbeat heart(Micros{4 * kSecond}, 2);
  std::array<std::uint64_t, 2> ticks{};
  Micros now{5 * kSecond};
  EXPECT_GT(beats(heart, ticks, now, 20, {true, true}), 8);
  EXPECT_LE(beats(heart, ticks, now, 60, {true, false}), 2);
  EXPECT_EQ(beats(heart, ticks, now, 60, {true, false}), 0);
  EXPECT_GT(beats(heart, ticks, now, 20, {true, true}), 8);
}

TEST(Heartbeat, IsNeverDueWithoutAWatchdog) {
  Heartbeat heart(Micros{0}, 2);
  EXPECT_EQ(heart.due(), kNever);
}

}  // namespace
}  // namespace weir::server::life
