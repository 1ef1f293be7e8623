// Shares of a limit: together they are the limit, or one permit per node.

#include "fleet/share.h"

#include <gtest/gtest.h>

#include "algorithm/division.h"

namespace weir::fleet {
namespace {

TEST(Share, AllTogetherAreTheLimit) {
  for (const Algorithm algorithm : kAlgorithms) {
    const bool in_flight = algorithm == Algorithm::concurrency;
    for (const std::int64_t permits : {1, 2, 7, 10, 1'000, 99'999}) {
      if (in_flight && permits > 1'000) continue;
      const std::string quota = std::to_string(permits) + (in_flight ? " concurrent" : "/minute");
      const Limit limit = compile(quota, in_flight ? std::nullopt : std::optional(algorithm)).value();
      for (const std::uint32_t nodes : {1u, 2u, 3u, 20u}) {
        std::int64_t sum = 0, bursts = 0;
        for (std::uint32_t rank = 0; rank < nodes; ++rank) {
          const Limit part = share_of(limit, {rank, nodes});
          EXPECT_EQ(part.algorithm, limit.algorithm);
          EXPECT_TRUE(algorithm::is_sound(part)) << quota << " of " << nodes;
          EXPECT_GE(part.permits, 1);
          sum += part.permits;
          bursts += part.capacity;
        }
        if (!algorithm::is_bucket(algorithm)) {
          EXPECT_EQ(sum, std::max<std::int64_t>(permits, nodes)) << quota << " of " << nodes;
        }
        EXPECT_EQ(bursts, std::max<std::int64_t>(limit.capacity, nodes));
      }
    }
  }
}

// With any number of nodes, the shares of a bucket together refill at most as fast as the bucket. For 1/hour on
// twenty nodes, each share refills one permit in 20 hours.
TEST(Share, ABucketRefillsNoFasterOnManyNodes) {
  for (const char* const quota :
       {"1/hour", "3/day", "1/year", "7/s", "100/minute", "99999/hour burst 5", "1000000/s"}) {
    const Limit limit = compile(quota, Algorithm::token_bucket).value();
    for (const std::uint32_t nodes : {2u, 3u, 20u, 1'000u, 100'000u}) {
      const Limit part = share_of(limit, {1, nodes});
      EXPECT_TRUE(algorithm::is_sound(part)) << quota << " of " << nodes;
      EXPECT_EQ(part.capacity, std::max<std::int64_t>(1, part_of(limit.capacity, {1, nodes})));
      if (std::string_view(quota) == "1/year" && nodes > 20) continue;  // one permit in 142 years is the slowest
      // part.rate / part.weight <= limit.rate / limit.weight / nodes, and close to it
      const algorithm::Wide share = algorithm::Wide{part.rate} * limit.weight * std::min(nodes, 2'047u),
                            whole = algorithm::Wide{limit.rate} * part.weight;
      EXPECT_LE(share, whole) << quota << " of " << nodes;
      EXPECT_GE(share * 1'001, whole * 1'000) << quota << " of " << nodes;
    }
  }
  const Limit part = share_of(compile("1/hour", Algorithm::token_bucket).value(), {0, 20});
  EXPECT_EQ(part.capacity, 1);
  EXPECT_EQ(part.weight / part.rate, std::int64_t{20} * 3'600'000'000);
}

TEST(Share, OfABanIsABan) {
  const Limit ban = compile("0/minute", Algorithm::fixed_window).value();
  EXPECT_EQ(share_of(ban, {1, 3}).permits, 0);
}

// With any mix of versions of the limit among the nodes.
TEST(Share, TogetherLeaveWhatIsLeftOfTheHighestVersion) {
  for (std::uint32_t nodes = 1; nodes <= 5; ++nodes) {
    for (std::int64_t capacity = 1; capacity <= 20; ++capacity) {
      for (std::int64_t used = 0; used <= 25; ++used) {
        std::int64_t all = 0;
        for (std::uint32_t rank = 0; rank < nodes; ++rank) all += left_of(capacity, used, {rank, nodes});
        EXPECT_EQ(all, std::max<std::int64_t>(0, capacity - used)) << nodes << " " << capacity << " " << used;
      }
    }
  }
}

TEST(Share, AlsoSplitsWhatIsLeft) {
  std::int64_t sum = 0;
  for (std::uint32_t rank = 0; rank < 3; ++rank) sum += part_of(10, {rank, 3});
  EXPECT_EQ(sum, 10);
  EXPECT_EQ(part_of(1, {0, 3}), 1);
  EXPECT_EQ(part_of(1, {2, 3}), 0) << "nothing is left for the last node";
}

}  // namespace
}  // namespace weir::fleet
