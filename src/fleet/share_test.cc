// Shares of a limit: all of them together are the limit, or one permit a node.

#include "fleet/share.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir {
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
          const Limit part = share_of(limit, {rank, nodes}).value();
          EXPECT_EQ(part.algorithm, limit.algorithm);
          EXPECT_GE(part.permits, 1);
          sum += part.permits;
          bursts += part.capacity;
        }
        EXPECT_EQ(sum, std::max<std::int64_t>(permits, nodes)) << quota << " of " << nodes;
        EXPECT_EQ(bursts, std::max<std::int64_t>(limit.capacity, nodes));
      }
    }
  }
}

TEST(Share, OfABanIsABan) {
  const Limit ban = compile("0/minute", Algorithm::fixed_window).value();
  EXPECT_EQ(share_of(ban, {1, 3}).value().permits, 0);
}

TEST(Share, PartsWhatIsLeftToo) {
  std::int64_t sum = 0;
  for (std::uint32_t rank = 0; rank < 3; ++rank) sum += part_of(10, {rank, 3});
  EXPECT_EQ(sum, 10);
  EXPECT_EQ(part_of(1, {0, 3}), 1);
  EXPECT_EQ(part_of(1, {2, 3}), 0) << "who came late has nothing left";
}

}  // namespace
}  // namespace weir
