// The sums of several lanes, and which openings and closings of breakers are reported.
#include "fleet/lane_totals.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir {
namespace {

TEST(LaneTotals, AddWhatIsNew) {
  LaneTotals totals;
  LaneCounts one{.asks = 3, .connects = 1}, one_told, other{.asks = 5}, other_told;
  totals.add(one, one_told);
  totals.add(other, other_told);
  one.asks = 4;
  totals.add(one, one_told);
  totals.add(one, one_told);
  EXPECT_EQ(totals.counts().asks, 9u);
  EXPECT_EQ(totals.counts().connects, 1u);
}

TEST(LaneTotals, TellTheFirstThatOpensAndTheLastThatShuts) {
  std::vector<std::string> told;
  LaneTotals totals(
      [&](bool is_away, std::string_view why) { told.push_back((is_away ? "away: " : "back: ") + std::string(why)); });
  totals.open(1, "timed out", Micros{5});
  totals.open(1, "refused", Micros{6});
  totals.open(-1, "", Micros{7});
  EXPECT_TRUE(totals.state().is_away);
  EXPECT_EQ(totals.state().since, Micros{5});
  totals.open(-1, "", Micros{8});
  EXPECT_EQ(told, (std::vector<std::string>{"away: timed out", "back: refused"}));
  EXPECT_FALSE(totals.state().is_away);
  EXPECT_EQ(totals.state().since, Micros{8});
  EXPECT_EQ(totals.state().why, "refused");
  EXPECT_EQ(totals.state().why_at, Micros{6});
  totals.blame("again", Micros{9});
  EXPECT_EQ(totals.state().why, "again");
  EXPECT_EQ(totals.state().why_at, Micros{9});
  totals.open(1, "", Micros{10});
  totals.leave(1);
  EXPECT_FALSE(totals.state().is_away);
  EXPECT_EQ(told.size(), 3u) << "who ends does not say that Redis is back";
}

}  // namespace
}  // namespace weir
