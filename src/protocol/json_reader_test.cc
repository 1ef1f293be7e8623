// Tests reading JSON from front to back.
#include "protocol/json_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
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

TEST(JsonReader, TakesWhatIsJson) {
  for (const char* text : {"{}", "[]", " [ ] ", "[1,2,[3,{\"a\":[]}]]", "{\"a\":{\"b\":null},\"c\":[true,false]}", "0",
                           "-0", "1.5e+10", "1E5", "\"\"", "\"\\u00e9\\n\"", "\t\r\n null", "[[],{}]"}) {
    EXPECT_EQ(skipped(text), "sound") << text;
  }
}

TEST(JsonReader, RefusesWhatIsNot) {
  for (const char* text : {"",
                           "{",
                           "[",
                           "]",
                           "}",
                           "[1,]",
                           "[,1]",
                           "{,}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "01",
                           "1.",
                           ".5",
                           "-",
                           "1e",
                           "+1",
                           "nul",
                           "truee",
                           "\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "\"a\nb\"",
                           "[1 2]",
                           "{\"a\":1 \"b\":2}",
                           "[}",
                           "{]",
                           "NaN",
                           "'a'",
                           "[1]]"}) {
    EXPECT_NE(skipped(text), "sound") << text;
  }
  for (const char* text : {"\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xc0\xaf\""})
    EXPECT_NE(skipped(text), "sound");
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

TEST(JsonReader, LeavesTextsWhereTheyAreIfItCan) {
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
  EXPECT_EQ(whole_number("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(whole_number("9223372036854775807"), INT64_MAX);
  for (const char* text : {"9223372036854775808", "1.0", "1e3", ""}) EXPECT_FALSE(whole_number(text)) << text;
}

}  // namespace
}  // namespace weir
