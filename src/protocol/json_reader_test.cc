// Tests reading JSON from front to back.
#include "protocol/json_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace weir::protocol {
namespace {

std::string skipped(std::string_view text) {
  JsonTexts texts;
  JsonReader json(text, texts);
  if (!json.skip_value()) return std::string(json.why());
  return json.at_end() ? "sound" : "more";
}

std::string text_of(std::string_view text) {
  JsonTexts texts;
  JsonReader json(text, texts);
  std::string_view out;
  return json.read_text(out) ? std::string(out) : "! " + std::string(json.why());
}

TEST(JsonReader, AcceptsJson) {
  for (const char* text : {"{}", "[]", " [ ] ", "[1,2,[3,{\"a\":[]}]]", "{\"a\":{\"b\":null},\"c\":[true,false]}", "0",
                           "-0", "1.5e+10", "1E5", "\"\"", "\"\\u00e9\\n\"", "\t\r\n null", "[[],{}]"}) {
    EXPECT_EQ(skipped(text), "sound") << text;
  }
}

TEST(JsonReader, RefusesWhatIsNotJson) {
  const std::vector<std::string_view> structures = {"",     "{",    "[",     "]",          "}",
                                                    "[1,]", "[,1]", "{,}",   "{\"a\"}",    "{\"a\":}",
                                                    "[}",   "{]",   "{a:1}", "{\"a\":1,}", "{\"a\":1 \"b\":2}",
                                                    "[1]]", "[1 2]"};
  const std::vector<std::string_view> numbers_and_words = {"01", "1.", ".5", "-", "1e", "+1", "nul", "truee", "NaN"};
  const std::vector<std::string_view> texts = {
      "\"",       "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"",
      "\"a\nb\"", "'a'",     "\"\xff\"",  "\"\xc3\"",    "\"\xed\xa0\x80\"",   "\"\xc0\xaf\""};
  for (const auto& list : {structures, numbers_and_words, texts}) {
    for (const std::string_view text : list) EXPECT_NE(skipped(text), "sound") << text;
  }
}

TEST(JsonReader, BoundsTheDepth) {
  const std::string open(kJsonDepthMax, '['), close(kJsonDepthMax, ']');
  EXPECT_EQ(skipped(open + close), "sound");
  EXPECT_EQ(skipped("[" + open + close + "]"), "nesting is too deep");
  EXPECT_EQ(skipped(std::string(1'000'000, '[')), "nesting is too deep");
}

TEST(JsonReader, ReadsTexts) {
  EXPECT_EQ(text_of(" \"plain \xC3\xA9\""), "plain \xC3\xA9");
  EXPECT_EQ(text_of(R"("a\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00z")"),
            "a\"\\/\b\f\n\r\t\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z");
  EXPECT_EQ(text_of("\"\\u0000\""), std::string(1, '\0'));
  EXPECT_EQ(text_of("7"), "! expected a string in double quotes");
}

TEST(JsonReader, ReturnsTextsWithoutEscapesAsViews) {
  const std::string input = R"(["abc","a\tc"])";
  JsonTexts texts;
  JsonReader json(input, texts);
  std::string_view first, second;
  json.take('[');
  ASSERT_TRUE(json.read_text(first) && json.take(',') && json.read_text(second));
  EXPECT_EQ(first.data(), input.data() + 2);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_EQ(second.data(), texts.front().data());
}

TEST(JsonReader, ReadsWholeNumbers) {
  EXPECT_EQ(base::to_number<std::int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(base::to_number<std::int64_t>("9223372036854775807"), INT64_MAX);
  for (const char* text : {"9223372036854775808", "1.0", "1e3", ""})
    EXPECT_FALSE(base::to_number<std::int64_t>(text)) << text;
}

TEST(JsonValue, HasTheWrittenValues) {
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

TEST(JsonValue, ReadsAMissingMemberAsNull) {
  const auto value = parse_json("[]");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->at("x").at("y").text, "");
  EXPECT_EQ(value->at("x").whole(), 0);
  EXPECT_EQ(value->at("x").number(), 0.0);
}

TEST(JsonValue, RefusesInvalidJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\"}", "nul", "1 2", "\"", "{\"a\":1,}", "[1}", "tru"}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
  EXPECT_FALSE(parse_json(std::string(1'000, '[') + std::string(1'000, ']')));
  EXPECT_TRUE(parse_json(std::string(60, '[') + std::string(60, ']')));
}

}  // namespace
}  // namespace weir::protocol
