// Tests percentiles against a sorted list of the same values, at every magnitude.
#include "load_generator/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "seed.h"

namespace weir::load_generator {
namespace {

TEST(Histogram, IsExactForSmallValues) {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 200; ++value) histogram.record(value);
  EXPECT_EQ(histogram.percentile(50'000), 100U);
  EXPECT_EQ(histogram.percentile(99'000), 198U);
  EXPECT_EQ(histogram.percentile(100'000), 200U);
  EXPECT_EQ(histogram.max(), 200U);
}

TEST(Histogram, OfNothingIsZero) {
  EXPECT_EQ(Histogram{}.percentile(99'000), 0U);
  EXPECT_EQ(Histogram{}.max(), 0U);
}

TEST(Histogram, OfOneValueIsThatValue) {
  Histogram histogram;
  histogram.record(1'234'567);
  EXPECT_EQ(histogram.percentile(1), 1'234'567U);
  EXPECT_EQ(histogram.percentile(99'900), 1'234'567U);
}

TEST(Histogram, IsAtMostOnePercentTooHighAndNeverTooLow) {
  std::mt19937_64 random(test::base_seed());
  Histogram histogram;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 50'000; ++i) {
    values.push_back(random() >> (24 + random() % 40));  // covers every power of two
    histogram.record(values.back());
  }
  std::ranges::sort(values);
  for (std::uint32_t part = 1'000; part <= 100'000; part += 500) {
    const std::uint64_t truth = values[(values.size() * part + 99'999) / 100'000 - 1];
    EXPECT_GE(histogram.percentile(part), truth) << part;
    EXPECT_LE(histogram.percentile(part), truth + truth / 100) << part;
  }
}

TEST(Histogram, CountsValuesBeyondItsRangeAndTheMaximum) {
  Histogram histogram;
  histogram.record(~std::uint64_t{0});
  histogram.record(5);
  EXPECT_EQ(histogram.count(), 2U);
  EXPECT_EQ(histogram.percentile(50'000), 5U);
  EXPECT_EQ(histogram.percentile(100'000), ~std::uint64_t{0});
}

TEST(Histogram, OfTwoThreadsIsTheirSum) {
  Histogram one, other;
  one.record(10);
  other.record(1'000);
  other.record(2'000);
  one.merge(other);
  EXPECT_EQ(one.count(), 3U);
  EXPECT_EQ(one.percentile(33'000), 10U);
  EXPECT_EQ(one.max(), 2'000U);
  one.clear();
  EXPECT_EQ(one.count(), 0U);
  EXPECT_EQ(one.percentile(50'000), 0U);
}

}  // namespace
}  // namespace weir::load_generator
