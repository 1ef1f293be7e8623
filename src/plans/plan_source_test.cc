// Tests that rows and texts convert without loss, and that different rows have different texts.
#include "plans/plan_source.h"

#include <gtest/gtest.h>

#include <set>

namespace weir::plans {
namespace {

TEST(RowText, DifferentRowsHaveDifferentTextsThatParseBack) {
  std::vector<std::optional<std::string>> fields = {
      std::nullopt, "", "pro", "p3:pro", "-", ":", "o--", "1:", std::string("a\0b", 3)};
  std::set<std::string> texts;
  std::size_t rows = 0;
  for (const auto& plan : fields) {
    for (const auto& limits : fields) {
      for (const auto& until : fields) {
        for (const int which : {1, 2, 3}) {
          if (which == 1 && (limits || until)) continue;
          if (which == 2 && plan) continue;
          PlanRow row{.subject = "user:1", .has_plan = (which & 1) != 0, .has_override = (which & 2) != 0};
          if (row.has_plan) row.plan = plan;
          if (row.has_override) row.limits = limits, row.until = until;
          const std::string text = row_text(row);
          const PlanRow back = row_of_text("user:1", text).value();
          EXPECT_EQ(back.subject, "user:1");
          EXPECT_EQ(std::tie(back.has_plan, back.plan, back.has_override, back.limits, back.until, back.error),
                    std::tie(row.has_plan, row.plan, row.has_override, row.limits, row.until, row.error))
              << text;
          texts.insert(text);
          ++rows;
        }
      }
    }
  }
  EXPECT_EQ(texts.size(), rows);
  EXPECT_EQ(row_text({.subject = "user:1"}), "");
  EXPECT_EQ(row_of_text("a", row_text({.error = "two rows"}))->error, "two rows");
}

TEST(RowText, RefusesOtherTexts) {
  for (const char* text : {"x", "p", "p3", "p3:", "p3:pr", "p:pro", "p-1:a", "p3:pro ", "o", "o3:1/s", "o-", "o--x",
                           "e", "e-", "p99999999999999999999:a", "o--p-", "3:pro"}) {
    EXPECT_FALSE(row_of_text("user:1", text)) << text;
  }
  EXPECT_TRUE(row_of_text("user:1", ""));
}

}  // namespace
}  // namespace weir::plans
