// Tests config words: attributes, patterns with stars, times and durations, each against its expected meaning.
#include "policy/dimension.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::policy {
namespace {

TEST(Dimension, IsPrintedAsItWasParsed) {
  for (const char* text : {"user", "api_key", "ip", "ip/24", "ip/48", "ip/24/48", "ip/32/20", "tenant", "plan",
                           "method", "host", "path", "identity", "header:x-org", "query:q", "entry:remote", "{id}"}) {
    const auto dimension = parse_dimension(text);
    ASSERT_TRUE(dimension) << text << ": " << dimension.error().message;
    EXPECT_EQ(weir::to_string(*dimension), text);
  }
  EXPECT_EQ(parse_dimension("header:X-Org")->name, "x-org");
  EXPECT_EQ(parse_dimension("ip/128")->v6_bits, 128);
  EXPECT_EQ(parse_dimension("ip/32")->v4_bits, 32);
}

TEST(Dimension, ErrorsSuggestAValidForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"usr", "did you mean user?"},
      {"heder:x", "did you mean header:x?"},
      {"heder:\x88", "known are user"},  // the suggestion is valid and printable
      {"header", "needs a name, as in header:x-org"},
      {"ip/0", "write ip, ip/24"},
      {"ip/24/129", "write ip, ip/24"},
      {"ip/x", "write ip, ip/24"},
      {"header:a b", "a name is 1 to 128"},
      {"{}", "known are user"},
      {"capture", "known are user"},
      {"", "known are user"},
      {"user:x", "known are user"},
  };
  for (const auto& [text, told] : cases) {
    const auto dimension = parse_dimension(text);
    ASSERT_FALSE(dimension) << text;
    EXPECT_NE(dimension.error().message.find(told), std::string::npos) << text << ": " << dimension.error().message;
  }
}

bool plain_glob(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return plain_glob(pattern.substr(1), text) || (!text.empty() && plain_glob(pattern, text.substr(1)));
  }
  return !text.empty() && pattern[0] == text[0] && plain_glob(pattern.substr(1), text.substr(1));
}

// Returns every text of at most `most` of these letters.
std::vector<std::string> every_text(std::string_view letters, std::size_t most) {
  std::vector<std::string> all = {""};
  for (std::size_t i = 0; i < all.size() && all[i].size() < most; ++i) {
    for (const char c : letters) all.push_back(all[i] + c);
  }
  return all;
}

TEST(Glob, AgreesWithThePlainOneOnEverySmallPatternAndText) {
  const auto texts = every_text("ab", 5);
  for (const std::string& pattern : every_text("ab*", 5)) {
    for (const std::string& text : texts) {
      ASSERT_EQ(glob_matches(pattern, text), plain_glob(pattern, text)) << pattern << " " << text;
    }
  }
}

TEST(Glob, IsFastWhereBacktrackingIsSlow) {
  std::string pattern, text(3'000, 'a');
  for (int i = 0; i < 500; ++i) pattern += "*a";
  EXPECT_FALSE(glob_matches(pattern + "b", text));
}

TEST(Time, ParsesEveryCommonForm) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"1970-01-01", 0},
      {"2026-12-31", 1'798'675'200},
      {"2024-02-29T12:00:00Z", 1'709'208'000},
      {"2024-02-29 13:00:00+01:00", 1'709'208'000},
      {"2024-02-29T04:30Z", 1'709'181'000},
      {"2024-02-29T12:00:00.905586Z", 1'709'208'000},
      {"2024-02-28T23:30:00-0500", 1'709'181'000},
  };
  for (const auto& [text, seconds] : cases) {
    const auto time = parse_time(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(time->count(), seconds * 1'000'000) << text;
    EXPECT_EQ(*parse_time(time_text(*time)), *time);
  }
  EXPECT_EQ(time_text(Micros{1'709'208'000'000'000}), "2024-02-29T12:00:00Z");
}

TEST(Time, RefusesInvalidTimes) {
  for (const char* text : {"", "2026", "2026-13-01", "2023-02-29", "2026-12-31T", "2026-12-31T25:00:00Z",
                           "2026-12-31T10:00:00", "2026-12-31x", "2026-12-31T10:00:00+99:00", "2026-12-31T10:00:00.Z",
                           "1969-12-31", "2100-01-01", "31.12.2026"}) {
    EXPECT_FALSE(parse_time(text)) << text;
  }
}

}  // namespace
}  // namespace weir::policy
