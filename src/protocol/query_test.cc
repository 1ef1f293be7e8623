// Tests targets and queries: splitting, decoding, and bounds.
#include "protocol/query.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::protocol {
namespace {

TEST(Query, SplitsATarget) {
  const auto parts = [](std::string_view target) {
    const Target split = split_target(target);
    return std::string(split.path) + "|" + std::string(split.query);
  };
  EXPECT_EQ(parts("/a/b"), "/a/b|");
  EXPECT_EQ(parts("/a?b=c?d"), "/a|b=c?d");
  EXPECT_EQ(parts("http://x"), "/|");
  EXPECT_EQ(parts("HTTP://x:80/a?b"), "/a|b");
  EXPECT_EQ(parts("http://x?b"), "/|b");
  EXPECT_EQ(parts("*"), "*|");
  EXPECT_EQ(parts(""), "|");
}

TEST(Query, DecodesOnceAndStrictly) {
  EXPECT_EQ(base::percent_decoded("a%20b+%2525%C3%a9"), "a b+%25\xC3\xA9");
  for (const char* bad : {"%", "%2", "a%", "%zz", "%-1", "% 1", "%+1"}) EXPECT_FALSE(base::percent_decoded(bad)) << bad;
}

TEST(Query, ReadsParametersInOrder) {
  const auto parameters = parse_query("a=1&&b&c=&%61=x%3dy=z");
  ASSERT_TRUE(parameters);
  ASSERT_EQ(parameters->size(), 4u);
  EXPECT_EQ((*parameters)[0].value, "1");
  EXPECT_EQ((*parameters)[1].name, "b");
  EXPECT_EQ((*parameters)[2].value, "");
  EXPECT_EQ((*parameters)[3].name, "a");
  EXPECT_EQ((*parameters)[3].value, "x=y=z");
  EXPECT_TRUE(parse_query("")->empty());
  EXPECT_FALSE(parse_query("a=%"));
  std::string many;
  for (std::size_t i = 0; i <= kQueryParametersMax; ++i) many += "a&";
  EXPECT_NE(parse_query(many).error().message.find("more than 100"), std::string::npos);
}

}  // namespace
}  // namespace weir::protocol
