// The sums of the counts of several pipelines, and which openings and closings of breakers are reported.
#include "fleet/pipeline_totals.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::fleet {
namespace {

TEST(PipelineTotals, AddOnlyNewCounts) {
  PipelineTotals totals;
  base::PipelineCounts one{.requests = 3, .connects = 1}, one_told, other{.requests = 5}, other_told;
  totals.add(one, one_told);
  totals.add(other, other_told);
  one.requests = 4;
  totals.add(one, one_told);
  totals.add(one, one_told);
  EXPECT_EQ(totals.counts().requests, 9u);
  EXPECT_EQ(totals.counts().connects, 1u);
}

TEST(PipelineTotals, ReportTheFirstBreakerThatOpensAndTheLastThatCloses) {
  std::vector<std::string> reported;
  PipelineTotals totals([&](bool is_down, std::string_view why) {
    reported.push_back((is_down ? "down: " : "back: ") + std::string(why));
  });
  totals.open(1, "timed out", Micros{5});
  totals.open(1, "refused", Micros{6});
  totals.open(-1, "", Micros{7});
  EXPECT_TRUE(totals.state().is_down);
  EXPECT_EQ(totals.state().since, Micros{5});
  totals.open(-1, "", Micros{8});
  EXPECT_EQ(reported, (std::vector<std::string>{"down: timed out", "back: refused"}));
  EXPECT_FALSE(totals.state().is_down);
  EXPECT_EQ(totals.state().since, Micros{8});
  EXPECT_EQ(totals.state().why, "refused");
  EXPECT_EQ(totals.state().why_at, Micros{6});
  totals.record_fault("again", Micros{9});
  EXPECT_EQ(totals.state().why, "again");
  EXPECT_EQ(totals.state().why_at, Micros{9});
  totals.open(1, "", Micros{10});
  totals.leave(1);
  EXPECT_FALSE(totals.state().is_down);
  EXPECT_EQ(reported.size(), 3u) << "the end of a pipeline does not report that Redis is back";
}

}  // namespace
}  // namespace weir::fleet
