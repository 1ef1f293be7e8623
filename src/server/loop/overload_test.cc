// Tests when a loop sheds, with explicit times.
#include "server/loop/overload.h"

#include <gtest/gtest.h>

namespace weir::server::loop {
namespace {

using std::chrono::milliseconds;

constexpr Micros kMost = milliseconds{20};

// Simulates a loop's turns. turn() returns whether a request at the end of the turn would be shed.
struct LoopTurns {
  explicit LoopTurns(Micros most = kMost) : overload(most) {}

  bool turn(Micros takes, Micros rests = Micros{0}) {
    now += rests;
    overload.begin_turn(now);
    now += takes;
    const bool sheds = overload.is_on() && overload.sheds(now);
    overload.end_turn(now);
    return sheds;
  }
  bool many(int count, Micros takes, Micros rests = Micros{0}) {
    bool any = false;
    for (int i = 0; i < count; ++i) any = turn(takes, rests) || any;
    return any;
  }

  Overload overload;
  Micros now{1'000'000'000};
};

TEST(Overload, ShortTurnsShedNothingHoweverMany) {
  LoopTurns turns;
  EXPECT_FALSE(turns.many(1'000, milliseconds{20}));
}

TEST(Overload, OneLongTurnIsAStallAndNoOverload) {
  LoopTurns turns;
  EXPECT_FALSE(turns.turn(milliseconds{5'000}));
  EXPECT_FALSE(turns.turn(milliseconds{5'000}));
  EXPECT_FALSE(turns.turn(milliseconds{1}));
  EXPECT_FALSE(turns.many(2, milliseconds{90}));
}

TEST(Overload, LongTurnsForATenthOfASecondAreAnOverload) {
  LoopTurns turns;
  EXPECT_FALSE(turns.many(4, milliseconds{25}));
  EXPECT_TRUE(turns.overload.is_on());
  EXPECT_TRUE(turns.turn(milliseconds{25}));
}

TEST(Overload, AShortTurnBetweenShowsThatNobodyWaits) {
  LoopTurns turns;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(turns.many(3, milliseconds{25}));
    EXPECT_FALSE(turns.turn(milliseconds{1}));
  }
}

TEST(Overload, ARestBetweenLongTurnsShowsTheSame) {
  LoopTurns turns;
  EXPECT_FALSE(turns.many(100, milliseconds{100}, milliseconds{21}));
  EXPECT_TRUE(turns.many(100, milliseconds{100}, milliseconds{19}));
}

TEST(Overload, HalfTheTimeOfATurnIsForDecidingTheRestForShedding) {
  LoopTurns turns;
  turns.many(5, milliseconds{25});
  ASSERT_TRUE(turns.overload.is_on());
  turns.overload.begin_turn(turns.now);
  EXPECT_FALSE(turns.overload.sheds(turns.now));
  EXPECT_FALSE(turns.overload.sheds(turns.now + milliseconds{10}));
  EXPECT_TRUE(turns.overload.sheds(turns.now + milliseconds{11}));
}

TEST(Overload, ItLastsWhileSomethingIsShedAndEndsASecondAfterTheLast) {
  LoopTurns turns;
  turns.many(5, milliseconds{25});
  for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(turns.turn(milliseconds{15})) << "shorter turns are due to shedding";
  EXPECT_FALSE(turns.many(90, milliseconds{10}));
  EXPECT_TRUE(turns.overload.is_on());
  EXPECT_FALSE(turns.many(20, milliseconds{10}));
  EXPECT_FALSE(turns.overload.is_on());
  EXPECT_FALSE(turns.turn(milliseconds{25}));
}

TEST(Overload, WithoutABoundNothingIsEverShed) {
  LoopTurns turns(Micros{0});
  EXPECT_FALSE(turns.many(1'000, milliseconds{500}));
}

}  // namespace
}  // namespace weir::server::loop
