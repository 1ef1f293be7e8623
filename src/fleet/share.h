// A node's share of a limit while Redis is unavailable: the shares of all nodes together are the limit.
//
// Permits that do not divide evenly go to the nodes with the lowest ranks, and every node gets at least one. So a fleet
// of N nodes admits max(limit, N) per window. A bucket's share refills at rate / N, and its burst is a part of the
// burst, at least 1: a fleet of N admits max(burst, N) at once and never refills faster than the limit. Pure; any
// thread. Tested by share_test.cc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithm/limit.h"
#include "weir/limit.h"

namespace weir::fleet {

// This node's rank among how many nodes; ranks begin at 0. It is aligned to its size, because clang 14 would otherwise
// call libatomic to read an atomic one.
struct alignas(8) NodeRank {
  std::uint32_t rank = 0;
  std::uint32_t nodes = 1;
  friend bool operator==(const NodeRank&, const NodeRank&) = default;
};

// This node's part of a number that is split among all nodes.
constexpr std::int64_t part_of(std::int64_t whole, NodeRank rank) {
  return whole / rank.nodes + (rank.rank < whole % rank.nodes ? 1 : 0);
}

// left_of()
//
// This node's part of what is left of a limit, if `used` of it is used. All parts together are what is left, even if
// some nodes use another version of the limit.
constexpr std::int64_t left_of(std::int64_t capacity, std::int64_t used, NodeRank rank) {
  return std::max<std::int64_t>(0, part_of(capacity, rank) - part_of(used, rank));
}

// share_of()
//
// The share of a ban is a ban. A rate that is too slow to represent exactly becomes the next slower one.
inline Limit share_of(const Limit& limit, NodeRank rank) {
  if (rank.nodes <= 1 || limit.permits == 0) return limit;
  const auto least_one = [&](std::int64_t whole) { return std::max<std::int64_t>(1, part_of(whole, rank)); };
  Limit part = limit;
  if (!algorithm::is_bucket(limit.algorithm)) {
    part.permits = part.capacity = least_one(limit.permits);
    return part;
  }
  constexpr std::int64_t kWeighableNodes = 2'047;  // keeps weight * nodes below 2^63
  const std::int64_t nodes = std::min<std::int64_t>(rank.nodes, kWeighableNodes);
  part.capacity = least_one(limit.capacity);
  const std::int64_t weight_max =
      std::min(algorithm::kUnitsMax / (part.capacity + 1), algorithm::kFillMax_us / part.capacity);
  const algorithm::Fraction f =
      algorithm::largest_fraction(limit.rate, limit.weight * nodes, {algorithm::kRateMax, weight_max});
  part.rate = std::max<std::int64_t>(1, f.rate);
  part.weight = f.rate > 0 ? f.weight : weight_max;
  part.period_us = std::min(limit.period_us, kPeriodMax.count() / nodes) * nodes;
  return part;
}

// The longest time until a charge of this limit has recovered.
inline Micros recovery_of(const Limit& limit) {
  constexpr Micros kLongest{std::int64_t{366} * 86'400 * 1'000'000};
  if (limit.period_us <= 0) return kLongest;  // of a calendar
  if (!algorithm::is_bucket(limit.algorithm)) return 2 * Micros{limit.period_us};
  return Micros{limit.capacity * limit.weight / limit.rate + 1};
}

}  // namespace weir::fleet
