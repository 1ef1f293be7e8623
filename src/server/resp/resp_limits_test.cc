// Tests that limits are found by their bytes, and that none moves while a turn may use it.
#include "server/resp/resp_limits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::server::resp {
namespace {

Limit limit_of(std::int64_t permits) {
  Limit limit;
  limit.permits = permits;
  return limit;
}

TEST(RespLimits, AreFoundByKindAndBytes) {
  RespLimits limits;
  EXPECT_EQ(limits.find(1, "15"), nullptr);
  const Limit* kept = limits.keep(1, "15", limit_of(7));
  EXPECT_EQ(limits.find(1, "15"), kept);
  EXPECT_EQ(kept->permits, 7);
  EXPECT_EQ(limits.find(2, "15"), nullptr);
  EXPECT_EQ(limits.find(1, "16"), nullptr);
  EXPECT_EQ(limits.find(1, "1"), nullptr);
  limits.end_round();
  EXPECT_EQ(limits.find(1, "15"), kept);
}

TEST(RespLimits, StayWhereTheyAreUntilTheRoundEnds) {
  RespLimits limits;
  const std::size_t many = RespLimits::kSlots * 8;
  for (int round = 0; round < 3; ++round) {
    std::vector<const Limit*> given;
    for (std::size_t i = 0; i < many; ++i) {
      const std::string bytes = "middle" + std::to_string(i) + "of these";
      const Limit* found = limits.find(3, bytes);
      if (found == nullptr) found = limits.keep(3, bytes, limit_of(static_cast<std::int64_t>(i)));
      given.push_back(found);
    }
    for (std::size_t i = 0; i < many; ++i) ASSERT_EQ(given[i]->permits, static_cast<std::int64_t>(i)) << round;
    limits.end_round();
  }
}

TEST(RespLimits, CacheNothingTooLongOrEmpty) {
  RespLimits limits;
  const std::string longest(RespLimits::kBytesMax, '1');
  EXPECT_EQ(limits.keep(1, longest + "1", limit_of(7))->permits, 7);
  EXPECT_EQ(limits.find(1, longest + "1"), nullptr);
  EXPECT_EQ(limits.find(1, longest), nullptr);
  EXPECT_EQ(limits.keep(0, "", limit_of(7))->permits, 7);
  limits.keep(0, "1", limit_of(9));
  EXPECT_EQ(limits.find(0, ""), nullptr);
  limits.keep(1, longest, limit_of(8));
  EXPECT_EQ(limits.find(1, longest)->permits, 8);
}

}  // namespace
}  // namespace weir::server::resp
