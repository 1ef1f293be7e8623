// Tests that no text breaks out of its JSON string.
#include "base/json_text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::base {
namespace {

std::string text(std::string_view raw) {
  std::string out;
  append_json_text(out, raw);
  return out;
}

TEST(JsonText, LetsNoTextBreakOutOfItsQuotes) {
  EXPECT_EQ(text("plain"), "\"plain\"");
  EXPECT_EQ(text("a\"b\\c\n\x7f"), R"("a\"b\\c\u000a\u007f")");
  EXPECT_EQ(text("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "\"gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80\"");
}

TEST(JsonText, ReplacesWhatIsNotUtf8) {
  const std::string replaced = "\xEF\xBF\xBD";
  for (const char* bad : {"\xFF", "\x80", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
    const std::string out = text(bad);
    EXPECT_EQ(out.substr(0, 4), "\"" + replaced) << out;
    EXPECT_EQ(out.size() % 3, 2u) << out;
  }
}

}  // namespace
}  // namespace weir::base
