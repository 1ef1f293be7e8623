// Tests counting under a bounded number of names.
#include "envoy/envoy_tally.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(EnvoyTally, CountsByName) {
  EnvoyTally tally;
  EnvoyCounts& counts = tally.counts("edge", "user", EnvoyTally::Name::of_file);
  counts.add(EnvoyResult::near_limit, 3);
  EXPECT_EQ(&counts, &tally.counts("edge", "user", EnvoyTally::Name::with_values));
  EXPECT_NE(&counts, &tally.counts("inside", "user", EnvoyTally::Name::of_file));
  const auto all = tally.all();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].domain, "edge");
  EXPECT_EQ(all[0].descriptor, "user");
  EXPECT_EQ(all[0].hits[1], 3U);
}

TEST(EnvoyTally, MakesOnlySoManyNamesWithValues) {
  EnvoyTally tally;
  for (std::size_t i = 0; i < kEnvoyValueSeriesMax + 100; ++i) {
    tally.counts("edge", "user_" + std::to_string(i), EnvoyTally::Name::with_values).add(EnvoyResult::over_limit, 1);
  }
  EXPECT_EQ(tally.all().size(), kEnvoyValueSeriesMax + 1);
  EXPECT_EQ(tally.counts("edge", kEnvoyOther, EnvoyTally::Name::of_file).hits[2], 100U);
  tally.counts("edge", "of the file", EnvoyTally::Name::of_file);
  EXPECT_EQ(tally.all().size(), kEnvoyValueSeriesMax + 2);
}

}  // namespace
}  // namespace weir
