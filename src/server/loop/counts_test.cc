// Tests a loop's counters and histograms: every value is in the bucket whose upper bound is at or above it.
#include "server/loop/counts.h"

#include <gtest/gtest.h>

namespace weir::server::loop {
namespace {

TEST(Times, PutsEachIntoTheBucketThatEndsAtOrAboveIt) {
  Times times;
  times.add(0);
  times.add(10);
  times.add(11, 3);
  times.add(1'000'000);
  times.add(1'000'001);
  EXPECT_EQ(times.count(0), 2U);
  EXPECT_EQ(times.count(1), 3U);
  EXPECT_EQ(times.count(Times::kEnds.size() - 1), 1U);
  EXPECT_EQ(times.count(Times::kEnds.size()), 1U);
  EXPECT_EQ(times.sum_us(), 10U + 33U + 1'000'000U + 1'000'001U);
}

TEST(Times, TakesATimeThatRanBackwardsForNone) {
  Times times;
  times.add(-5);
  EXPECT_EQ(times.count(0), 1U);
  EXPECT_EQ(times.sum_us(), 0U);
}

}  // namespace
}  // namespace weir::server::loop
