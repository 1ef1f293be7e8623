// Tests the JSON pieces: exact decimals, and problem documents.
#include "protocol/problem.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::protocol {
namespace {

std::string seconds(std::int64_t us) {
  std::string out;
  append_json_seconds(out, Micros{us});
  return out;
}

TEST(Problem, WritesSecondsAsExactDecimals) {
  EXPECT_EQ(seconds(0), "0");
  EXPECT_EQ(seconds(1), "0.000001");
  EXPECT_EQ(seconds(100'000), "0.1");
  EXPECT_EQ(seconds(1'500'000), "1.5");
  EXPECT_EQ(seconds(12'000'000), "12");
  EXPECT_EQ(seconds(12'000'010), "12.00001");
  EXPECT_EQ(seconds(4'503'599'627'370'495), "4503599627.370495");
  EXPECT_EQ(seconds(kNever.count()), "null");
}

TEST(Problem, IsADocumentWithItsFourMembers) {
  EXPECT_EQ(problem_body({404, "Not found", "no \"x\""}),
            "{\"type\":\"about:blank\",\"title\":\"Not found\",\"status\":404,\"detail\":\"no \\\"x\\\"\"}\n");
}

}  // namespace
}  // namespace weir::protocol
