// A node's part of a limit, for the time that Redis cannot be asked: what all nodes hold together is the limit.
//
// Permits that do not divide go to the nodes of the lowest ranks, and every node has at least one: so a fleet of N lets
// max(limit, N) through. A part keeps the algorithm and the period; a bucket's burst is parted, too. Pure; any thread.
// Tested by share_test.cc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithm/limit.h"
#include "weir/limit.h"

namespace weir {

// Which node of how many; ranks begin at 0.
struct Seat {
  std::uint32_t rank = 0;
  std::uint32_t nodes = 1;
  friend bool operator==(const Seat&, const Seat&) = default;
};

// Of a number that the nodes part among them.
constexpr std::int64_t part_of(std::int64_t whole, Seat seat) {
  return whole / seat.nodes + (seat.rank < whole % seat.nodes ? 1 : 0);
}

// share_of()
//
// Of a ban, a ban. An error where the part cannot be counted: its rate is too slow for the arithmetic.
inline Result<Limit> share_of(const Limit& limit, Seat seat) {
  if (seat.nodes <= 1 || limit.permits == 0) return limit;
  const auto least_one = [&](std::int64_t whole) { return std::max<std::int64_t>(1, part_of(whole, seat)); };
  if (is_bucket(limit.algorithm)) {
    return make_bucket(limit.algorithm, least_one(limit.permits), limit.period_us, least_one(limit.capacity));
  }
  Limit part = limit;
  part.permits = part.capacity = least_one(limit.permits);
  return part;
}

}  // namespace weir
