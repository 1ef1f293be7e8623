// When the breaker lets requests to Redis through, and when it does not.

#include "fleet/breaker.h"

#include <gtest/gtest.h>

namespace weir::fleet {
namespace {

constexpr Micros kMs{1'000};

TEST(Breaker, OpensAfterFailuresInARow) {
  Breaker breaker;
  breaker.fail(1 * kMs);
  breaker.fail(2 * kMs);
  breaker.succeed(3 * kMs);
  breaker.fail(4 * kMs);
  breaker.fail(5 * kMs);
  EXPECT_FALSE(breaker.is_open()) << "there was an answer in between";
  breaker.fail(6 * kMs);
  EXPECT_TRUE(breaker.is_open());
  EXPECT_EQ(breaker.since(), 6 * kMs);
  EXPECT_EQ(breaker.openings(), 1u);
}

TEST(Breaker, LetsOneProbeThroughAtATime) {
  Breaker breaker;
  breaker.open(Micros{0});
  EXPECT_FALSE(breaker.lets_through(49 * kMs));
  EXPECT_GE(breaker.probe_at(), 50 * kMs);
  EXPECT_LE(breaker.probe_at(), 150 * kMs);
  EXPECT_TRUE(breaker.lets_through(150 * kMs));
  EXPECT_FALSE(breaker.lets_through(151 * kMs)) << "a probe is in flight";
  breaker.fail(160 * kMs);
  EXPECT_FALSE(breaker.lets_through(161 * kMs));
  EXPECT_TRUE(breaker.lets_through(310 * kMs));
}

TEST(Breaker, ClosesAfterTwoAnswers) {
  Breaker breaker;
  breaker.open(Micros{0});
  ASSERT_TRUE(breaker.lets_through(150 * kMs));
  breaker.succeed(151 * kMs);
  EXPECT_TRUE(breaker.is_open());
  ASSERT_TRUE(breaker.lets_through(151 * kMs)) << "the next probe need not wait";
  breaker.succeed(152 * kMs);
  EXPECT_FALSE(breaker.is_open());
  EXPECT_TRUE(breaker.lets_through(152 * kMs));
}

// Counts the answers in a row until it closes.
int answers_until_closed(Breaker& breaker, Micros now) {
  int answers = 0;
  while (breaker.is_open()) {
    breaker.hurry(now);
    EXPECT_TRUE(breaker.lets_through(now));
    breaker.succeed(now);
    ++answers;
  }
  return answers;
}

TEST(Breaker, RequiresMoreAnswersWhenItOpensAgainSoon) {
  Breaker breaker;
  for (const int wanted : {2, 16, 128, 128}) {
    breaker.open(1'000 * kMs);
    EXPECT_EQ(answers_until_closed(breaker, 1'001 * kMs), wanted);
  }
  breaker.open(30'000 * kMs);
  EXPECT_EQ(answers_until_closed(breaker, 30'001 * kMs), 2) << "it was closed for long enough";
}

TEST(Breaker, ProbesAtOnceWhenItIsHurried) {
  Breaker breaker;
  breaker.open(Micros{0});
  breaker.hurry(1 * kMs);
  EXPECT_TRUE(breaker.lets_through(1 * kMs));
}

// The nodes of a fleet that lost Redis at the same moment do not come back at the same moment.
TEST(Breaker, SpreadsTheProbesOfManyNodes) {
  int early = 0;
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    Breaker breaker({}, seed * 0x9e3779b97f4a7c15u);
    breaker.open(Micros{0});
    early += breaker.probe_at() < 100 * kMs ? 1 : 0;
  }
  EXPECT_GT(early, 400);
  EXPECT_LT(early, 600);
}

}  // namespace
}  // namespace weir::fleet
