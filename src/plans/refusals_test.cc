// Tests that each refused row is reported once, and a flood of them as a number.
#include "plans/refusals.h"

#include <gtest/gtest.h>

namespace weir::plans {
namespace {

struct RefusalsTest : testing::Test {
  std::vector<PlanEvent> told;
  Refusals refusals{[this](const PlanEvent& event) { told.push_back(event); }};
};

TEST_F(RefusalsTest, ReportsARefusalOnceUntilTheRowIsValid) {
  refusals.refuse("user:1", "no plan is called 'gold'", Micros{1});
  refusals.refuse("user:1", "no plan is called 'gold'", Micros{2});
  EXPECT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].subject, "user:1");
  refusals.refuse("user:1", "its plan is NULL", Micros{3});
  EXPECT_EQ(told.size(), 2u);
  EXPECT_EQ(refusals.last().size(), 1u);
  EXPECT_EQ(refusals.last()[0].message, "its plan is NULL");
  refusals.accept("user:1");
  EXPECT_TRUE(refusals.last().empty());
  refusals.refuse("user:1", "its plan is NULL", Micros{4});
  EXPECT_EQ(told.size(), 3u);
  EXPECT_EQ(refusals.total(), 4u);
}

TEST_F(RefusalsTest, ReportsSomeOfManyRefusalsAndTheNumberOfTheRest) {
  for (int i = 0; i < 1'000; ++i) refusals.refuse("user:" + std::to_string(i), "its plan is NULL", Micros{i});
  EXPECT_EQ(told.size(), 20u);
  EXPECT_EQ(refusals.last().size(), 100u);
  EXPECT_EQ(refusals.last().back().subject, "user:999");
  refusals.report_rest(Micros{9'000'000});
  EXPECT_EQ(told.size(), 20u);
  refusals.report_rest(Micros{11'000'000});
  ASSERT_EQ(told.size(), 21u);
  EXPECT_EQ(told.back().message.find("980 more rows"), 0u) << told.back().message;
  refusals.report_rest(Micros{99'000'000});
  EXPECT_EQ(told.size(), 21u);
}

}  // namespace
}  // namespace weir::plans
