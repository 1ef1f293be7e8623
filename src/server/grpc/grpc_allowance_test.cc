// Tests how the allowance accumulates, is used up and grows with calls.
#include "server/grpc/grpc_allowance.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::seconds;

constexpr Micros kNow{1'794'747'404'000'000};

// How many frames can be spent, one by one.
std::uint64_t all_of(GrpcAllowance& allowance, Micros now) {
  std::uint64_t count = 0;
  while (count < 1'000'000 && allowance.spend(1, now)) ++count;
  return count;
}

TEST(GrpcAllowance, IsTenSecondsWorthAndThenSoManyASecond) {
  GrpcAllowance allowance(100);
  const std::uint64_t first = all_of(allowance, kNow);
  EXPECT_GE(first, 1'000U);
  EXPECT_LE(first, 2'000U) << "the first refill may come with it";
  EXPECT_EQ(all_of(allowance, kNow), 0U);
  EXPECT_EQ(all_of(allowance, kNow + seconds{1}), 100U);
  EXPECT_EQ(all_of(allowance, kNow + seconds{3}), 200U);
  EXPECT_EQ(all_of(allowance, kNow + seconds{1'000}), 1'000U);
}

TEST(GrpcAllowance, GrowsWithTheCallsThatAreAnswered) {
  GrpcAllowance allowance(100);
  all_of(allowance, kNow);
  for (int i = 0; i < 10'000; ++i) {
    allowance.earn(1);
    ASSERT_TRUE(allowance.spend(GrpcAllowance::kFramesOfCall, kNow));
  }
  EXPECT_FALSE(allowance.spend(1, kNow));
}

TEST(GrpcAllowance, SpendsAllOrNothing) {
  GrpcAllowance allowance(100);
  EXPECT_FALSE(allowance.spend(1'001, kNow));
  EXPECT_TRUE(allowance.spend(1'000, kNow));
}

TEST(GrpcAllowance, AClockThatRunsBackFillsNothing) {
  GrpcAllowance allowance(100);
  all_of(allowance, kNow);
  EXPECT_FALSE(allowance.spend(1, kNow - seconds{60}));
}

}  // namespace
}  // namespace weir
