// When a node of a large fleet dials a Redis that is down. Each node dials in its own part of a period, so that they
// do not all reconnect at the same moment.
//
// Uses the wall clock, which the nodes roughly share. If they do not, chance spreads the dials. In a small fleet each
// node waits for its random delay. Pure; any thread. Tested by own_turn_test.cc and F38 of
// tests/fleet_faults_test.cc.
#pragma once

#include <cstdint>

#include "fleet/share.h"
#include "weir/clock.h"

namespace weir::fleet {

inline constexpr std::uint32_t kHerdMin = 8;          // nodes; in a smaller fleet each node is over a tenth of it
inline constexpr Micros kTurnPeriod{800'000};         // so that each node is back within a second
inline constexpr Micros kTurnRest = kTurnPeriod / 8;  // minimum time between two dials

// How long to wait, instead of the random delay `drawn`.
inline Micros own_turn(Micros drawn, NodeRank rank, Micros wall) {
  if (rank.nodes < kHerdMin) return drawn;
  const std::int64_t period = kTurnPeriod.count();
  const std::int64_t own = period * (2 * std::int64_t{rank.rank} + 1) / (2 * std::int64_t{rank.nodes});
  const std::int64_t ahead = ((own - wall.count() % period) % period + period) % period;
  return Micros{ahead < kTurnRest.count() ? ahead + period : ahead};
}

}  // namespace weir::fleet
