// Tests parsing JSON into a tree, and malformed JSON. See json_value.h.
#include "protocol/json_value.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(JsonValue, IsWhatWasWritten) {
  const auto value = parse_json(R"({"a":[1,-2.5,true,false,null,"x\n\u00e9"],"b":{"c":9007199254740993}} )");
  ASSERT_TRUE(value) << value.error().message;
  const auto& items = value->at("a").items;
  ASSERT_EQ(items.size(), 6U);
  EXPECT_EQ(items[0].whole(), 1);
  EXPECT_EQ(items[1].number(), -2.5);
  EXPECT_TRUE(items[2].is_true);
  EXPECT_EQ(items[3].kind, JsonValue::Kind::boolean);
  EXPECT_FALSE(items[3].is_true);
  EXPECT_EQ(items[4].kind, JsonValue::Kind::null);
  EXPECT_EQ(items[5].text, "x\n\xc3\xa9");
  EXPECT_EQ(value->at("b").at("c").whole(), 9007199254740993);
}

TEST(JsonValue, ReadsAsNullWhereNothingIs) {
  const auto value = parse_json("[]");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->at("x").at("y").text, "");
  EXPECT_EQ(value->at("x").whole(), 0);
  EXPECT_EQ(value->at("x").number(), 0.0);
}

TEST(JsonValue, RefusesWhatIsNone) {
  for (const char* text : {"", "{", "[1,]", "{\"a\"}", "nul", "1 2", "\"", "{\"a\":1,}", "[1}", "tru"}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
  EXPECT_FALSE(parse_json(std::string(1'000, '[') + std::string(1'000, ']')));
  EXPECT_TRUE(parse_json(std::string(60, '[') + std::string(60, ']')));
}

}  // namespace
}  // namespace weir
