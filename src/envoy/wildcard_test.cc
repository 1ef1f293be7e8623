// Tests patterns with stars, by cases and against the obvious definition on random patterns.
#include "envoy/wildcard.h"

#include <gtest/gtest.h>

#include "seed.h"

namespace weir {
namespace {

// A star matches nothing, or one character and then a star.
bool slow_match(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return slow_match(pattern.substr(1), text) || (!text.empty() && slow_match(pattern, text.substr(1)));
  }
  return !text.empty() && pattern[0] == text[0] && slow_match(pattern.substr(1), text.substr(1));
}

TEST(Wildcard, StandsForAnyTextAndForNone) {
  EXPECT_TRUE(Wildcard("path_/api/*").matches("path_/api/"));
  EXPECT_TRUE(Wildcard("path_/api/*").matches("path_/api/v1/users"));
  EXPECT_FALSE(Wildcard("path_/api/*").matches("path_/ap"));
  EXPECT_TRUE(Wildcard("a*b*c").matches("abbbc"));
  EXPECT_FALSE(Wildcard("aba*aba").matches("ababa"));
  EXPECT_TRUE(Wildcard("*").matches(""));
  EXPECT_TRUE(Wildcard("a").matches("a"));
  EXPECT_FALSE(Wildcard("a").matches("ab"));
}

TEST(Wildcard, IsWhatItsDefinitionSays) {
  auto random = test::seeded();
  int matched = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string pattern, text;
    for (std::int64_t k = test::pick(random, 0, 6); k > 0; --k) pattern += "ab**"[test::pick(random, 0, 3)];
    for (std::int64_t k = test::pick(random, 0, 7); k > 0; --k) text += "ab"[test::pick(random, 0, 1)];
    const bool expected = slow_match(pattern, text);
    matched += expected ? 1 : 0;
    ASSERT_EQ(Wildcard(pattern).matches(text), expected) << pattern << " " << text;
  }
  EXPECT_GT(matched, 5'000);
}

}  // namespace
}  // namespace weir
