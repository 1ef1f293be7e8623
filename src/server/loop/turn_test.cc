// Tests that a turn decides its checks as single checks would be decided, at one time.
#include "server/loop/turn.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace weir::server::loop {
namespace {

class Turns : public testing::Test {
 protected:
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  Limiter limiter{LimiterOptions{.clock = clock}};
  Limit limit = *compile("2/minute", Algorithm::fixed_window);
  Turn turn{limiter};
};

TEST_F(Turns, AnswerEveryCheckAtItsIndex) {
  const std::size_t a = turn.ask({.key = "a", .limit = &limit, .cost = 2});
  const std::size_t b = turn.ask({.key = "b", .limit = &limit, .cost = 1});
  const std::size_t again = turn.ask({.key = "a", .limit = &limit, .cost = 1});
  EXPECT_EQ(turn.asked(), 3U);
  turn.decide();
  EXPECT_TRUE(turn.answer(a)->allowed);
  EXPECT_EQ(turn.answer(b)->remaining, 1);
  EXPECT_FALSE(turn.answer(again)->allowed) << "in the order of asking";
}

TEST_F(Turns, BeginAgainWhenTheyAreCleared) {
  turn.ask({.key = "a", .limit = &limit, .cost = 2});
  turn.decide();
  turn.clear();
  EXPECT_EQ(turn.asked(), 0U);
  const std::size_t place = turn.ask({.key = "b", .limit = &limit, .cost = 1});
  turn.decide();
  EXPECT_EQ(turn.answer(place)->remaining, 1);
}

TEST_F(Turns, ReportTheTimeOfTheirDecisions) {
  clock->set(Micros{5});
  turn.begin();
  EXPECT_EQ(turn.now(), Micros{5});
  clock->set(Micros{9});
  EXPECT_EQ(turn.now(), Micros{5});
  turn.ask({.key = "a", .limit = &limit, .cost = 1});
  turn.decide();
  EXPECT_EQ(turn.now(), Micros{9});
}

TEST_F(Turns, RefuseOnlyTheInvalidCheck) {
  const std::size_t wrong = turn.ask({.key = "", .limit = &limit, .cost = 1});
  const std::size_t right = turn.ask({.key = "a", .limit = &limit, .cost = 1});
  turn.decide();
  EXPECT_FALSE(turn.answer(wrong));
  EXPECT_TRUE(turn.answer(right));
}

}  // namespace
}  // namespace weir::server::loop
