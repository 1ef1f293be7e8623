// When a node of many dials a Redis that is gone: in its own part of a period, so that they do not all come back in one
// moment.
//
// By the clock on the wall, which nodes have in common more or less; if they have not, their turns are spread by
// chance. Of few nodes each waits as long as it has drawn. Pure; any thread. Tested by own_turn_test.cc and F38 of
// tests/fleet_faults_test.cc.
#pragma once

#include <cstdint>

#include "fleet/share.h"
#include "weir/clock.h"

namespace weir {

inline constexpr std::uint32_t kHerdMin = 8;          // nodes: of fewer, each is more than a tenth of them
inline constexpr Micros kTurnPeriod{800'000};         // so that each is back within a second
inline constexpr Micros kTurnRest = kTurnPeriod / 8;  // between two dials at least

// How long to wait, instead of what was drawn.
inline Micros own_turn(Micros drawn, Seat seat, Micros wall) {
  if (seat.nodes < kHerdMin) return drawn;
  const std::int64_t period = kTurnPeriod.count();
  const std::int64_t own = period * (2 * std::int64_t{seat.rank} + 1) / (2 * std::int64_t{seat.nodes});
  const std::int64_t ahead = ((own - wall.count() % period) % period + period) % period;
  return Micros{ahead < kTurnRest.count() ? ahead + period : ahead};
}

}  // namespace weir
