// Tests that waits stay within their step and spread over it.
#include "redis/backoff.h"

#include <gtest/gtest.h>

#include <array>

namespace weir::redis {
namespace {

TEST(RedisBackoff, WaitsARandomTimeUpToAStepThatDoubles) {
  Dice dice(7);
  Backoff backoff(Micros{50'000}, Micros{5'000'000});
  for (Micros step{50'000}; step < Micros{6'400'000}; step *= 2) {
    EXPECT_LE(backoff.next(dice), std::min(step, Micros{5'000'000}));
  }
  for (int i = 0; i < 100; ++i) EXPECT_LE(backoff.next(dice), Micros{5'000'000});
  backoff.reset();
  EXPECT_LE(backoff.next(dice), Micros{50'000});
}

// Of 1,000 clients that lost the same server, no tenth of a step gets many more than a tenth.
TEST(RedisBackoff, SpreadsClientsOverTheWholeStep) {
  std::array<int, 10> tenths{};
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    Dice dice(seed);
    Backoff backoff(Micros{1'000'000}, Micros{1'000'000});
    ++tenths[static_cast<std::size_t>(std::min<std::int64_t>(backoff.next(dice).count() / 100'000, 9))];
  }
  for (const int count : tenths) {
    EXPECT_GT(count, 60);
    EXPECT_LT(count, 150);
  }
}

TEST(RedisBackoff, IsRandomUnlessItGetsASeed) {
  EXPECT_NE(Dice(0).roll(), Dice(0).roll());
  EXPECT_EQ(Dice(5).roll(), Dice(5).roll());
}

}  // namespace
}  // namespace weir::redis
