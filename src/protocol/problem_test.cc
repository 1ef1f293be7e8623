// Tests the JSON pieces: exact decimals, escaping, and problem documents.
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

std::string text(std::string_view raw) {
  std::string out;
  append_json_text(out, raw);
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

TEST(Problem, LetsNoTextBreakOutOfItsQuotes) {
  EXPECT_EQ(text("plain"), "\"plain\"");
  EXPECT_EQ(text("a\"b\\c\n\x7f"), R"("a\"b\\c\u000a\u007f")");
  EXPECT_EQ(text("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "\"gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80\"");
}

TEST(Problem, ReplacesWhatIsNotUtf8) {
  const std::string replaced = "\xEF\xBF\xBD";
  for (const char* bad : {"\xFF", "\x80", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
    const std::string out = text(bad);
    EXPECT_EQ(out.substr(0, 4), "\"" + replaced) << out;
    EXPECT_EQ(out.size() % 3, 2u) << out;
  }
}

TEST(Problem, IsADocumentWithItsFourMembers) {
  EXPECT_EQ(problem_body({404, "Not found", "no \"x\""}),
            "{\"type\":\"about:blank\",\"title\":\"Not found\",\"status\":404,\"detail\":\"no \\\"x\\\"\"}\n");
}

}  // namespace
}  // namespace weir::protocol
