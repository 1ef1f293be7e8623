// When the nodes of a large fleet dial Redis, and those of a small one.

#include "fleet/own_turn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weir::fleet {
namespace {

constexpr Micros kWall{1'794'701'843'991'953};

TEST(OwnTurn, NodesOfALargeFleetDialOneAfterTheOther) {
  for (const std::uint32_t nodes : {8U, 20U, 30U, 1'000U}) {
    std::vector<Micros> turns;
    for (std::uint32_t rank = 0; rank < nodes; ++rank) {
      turns.push_back(own_turn(Micros{3}, {.rank = rank, .nodes = nodes}, kWall));
      EXPECT_GE(turns.back(), kTurnRest);
      EXPECT_LT(turns.back(), kTurnPeriod + kTurnRest);
    }
    std::ranges::sort(turns);
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const auto end = std::ranges::lower_bound(turns, turns[i] + Micros{100'000});
      EXPECT_LE(end - turns.begin() - static_cast<std::ptrdiff_t>(i), static_cast<std::ptrdiff_t>(nodes / 8 + 1)) << i;
    }
  }
}

TEST(OwnTurn, ANodeDialsOnceInAPeriod) {
  const NodeRank rank{.rank = 7, .nodes = 20};
  const Micros first = kWall + own_turn(Micros{0}, rank, kWall);
  EXPECT_EQ(own_turn(Micros{0}, rank, first), kTurnPeriod);
  EXPECT_EQ(own_turn(Micros{0}, rank, first + Micros{1}), kTurnPeriod - Micros{1});
  EXPECT_EQ(own_turn(Micros{0}, rank, first - Micros{1}), kTurnPeriod + Micros{1}) << "the timer expired too early";
}

TEST(OwnTurn, ASmallFleetKeepsItsRandomDelays) {
  EXPECT_EQ(own_turn(Micros{3}, {.rank = 1, .nodes = kHerdMin - 1}, kWall), Micros{3});
}

}  // namespace
}  // namespace weir::fleet
