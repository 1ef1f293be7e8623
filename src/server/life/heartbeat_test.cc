// Tests the heartbeat: at half of the watchdog's period, and none while a loop hangs.
#include "server/life/heartbeat.h"

#include <gtest/gtest.h>

#include <array>

namespace weir {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

// Calls look() whenever it is due, for `many` seconds. `moves`: the loops that make progress.
int beats(Heartbeat& heart, std::array<std::uint64_t, 2>& ticks, Micros& now, int many, std::array<bool, 2> moves) {
  int told = 0;
  for (const Micros end = now + Micros{many * kSecond}; now < end;) {
    const Micros next = std::min(std::max(heart.due(), now + Micros{1}), end);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      if (moves[i]) ticks[i] += static_cast<std::uint64_t>(next.count() / kSecond - now.count() / kSecond);
    }
    now = next;
    if (now < end && heart.look(now, ticks)) ++told;
  }
  return told;
}

TEST(Heartbeat, BeatsAtHalfOfThePatience) {
  for (const std::int64_t patience : {1 * kSecond, 10 * kSecond, 30 * kSecond}) {
    Heartbeat heart(Micros{patience}, 2);
    std::array<std::uint64_t, 2> ticks{};
    Micros now{5 * kSecond};
    const int told = beats(heart, ticks, now, 60, {true, true});
    EXPECT_NEAR(told, static_cast<double>(60 * kSecond * 2 / patience), 2) << patience;
  }
}

TEST(Heartbeat, StopsWhileALoopStandsStillAndGoesOn) {
  Heartbeat heart(Micros{4 * kSecond}, 2);
  std::array<std::uint64_t, 2> ticks{};
  Micros now{5 * kSecond};
  EXPECT_GT(beats(heart, ticks, now, 20, {true, true}), 8);
  EXPECT_LE(beats(heart, ticks, now, 60, {true, false}), 2);
  EXPECT_EQ(beats(heart, ticks, now, 60, {true, false}), 0);
  EXPECT_GT(beats(heart, ticks, now, 20, {true, true}), 8);
}

TEST(Heartbeat, NeverBeatsWithoutAWatchdog) {
  Heartbeat heart(Micros{0}, 2);
  EXPECT_EQ(heart.due(), kNever);
}

}  // namespace
}  // namespace weir
