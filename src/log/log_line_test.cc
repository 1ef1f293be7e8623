// Log lines as text, as JSON and for the journal, with hostile values.
#include "log/log_line.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::log::log_line_test {
namespace {

const Micros kTime{1'794'812'400'123'000};

std::string line_of(LogFormat format, std::string_view message, std::initializer_list<LogField> fields = {},
                    LogLevel level = LogLevel::warn) {
  return write_log_line({level, kTime, message, {fields.begin(), fields.size()}}, format);
}

TEST(LogLine, IsWrittenForPeople) {
  EXPECT_EQ(line_of(LogFormat::text, "all is well"), "weir: all is well\n");
  EXPECT_EQ(line_of(LogFormat::text, "denied", {{"rule", "login"}, {"key", "a b"}, {"none", ""}, {"eq", "a=b"}}),
            "weir: denied rule=login key=\"a b\" none=\"\" eq=\"a=b\"\n");
  EXPECT_EQ(line_of(LogFormat::text, "denied", {{"key", "say \"x\\\""}}), "weir: denied key=\"say \\\"x\\\\\\\"\"\n");
}

TEST(LogLine, IsWrittenForMachines) {
  EXPECT_EQ(line_of(LogFormat::json, "denied", {{"rule", "login"}}),
            "{\"ts\":\"2026-11-16T07:00:00.123Z\",\"level\":\"warn\",\"msg\":\"denied\",\"rule\":\"login\"}\n");
  EXPECT_EQ(line_of(LogFormat::json, "a \"b\"", {{"k", "\\"}}, LogLevel::debug),
            "{\"ts\":\"2026-11-16T07:00:00.123Z\",\"level\":\"debug\",\"msg\":\"a \\\"b\\\"\",\"k\":\"\\\\\"}\n");
}

TEST(LogLine, HasTheLevelForTheJournal) {
  EXPECT_EQ(line_of(LogFormat::journal, "a", {}, LogLevel::debug), "<7>a\n");
  EXPECT_EQ(line_of(LogFormat::journal, "a", {}, LogLevel::info), "<6>a\n");
  EXPECT_EQ(line_of(LogFormat::journal, "a", {}, LogLevel::warn), "<4>a\n");
  EXPECT_EQ(line_of(LogFormat::journal, "a", {{"k", "v"}}, LogLevel::error), "<3>a k=v\n");
}

TEST(LogLine, EscapesControlCharacters) {
  const std::string_view hostile("a\nweir: all is well\x1b[2J\x7f\0\r", 26);
  for (const LogFormat format : {LogFormat::text, LogFormat::json, LogFormat::journal}) {
    const std::string line = line_of(format, hostile, {{"key", hostile}});
    EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
    for (const char c : line.substr(0, line.size() - 1)) {
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) << line;
    }
  }
  EXPECT_EQ(line_of(LogFormat::text, "a\nb\xC2\x9B", {{"k", "\x1b\xff\xc3\xa9"}}),
            "weir: a\\x0ab\\xc2\\x9b k=\"\\x1b\\xff\xc3\xa9\"\n");
  EXPECT_EQ(line_of(LogFormat::json, "a\n\xff").substr(48), "\"msg\":\"a\\u000a\xEF\xBF\xBD\"}\n");
  EXPECT_EQ(line_of(LogFormat::json, "\xC2\x9B\xC2\xA9\xC2\x85").substr(48), "\"msg\":\"\\u009b\xC2\xA9\\u0085\"}\n");
}

// Invisible characters that a terminal, browser or editor acts on: line ends, writing directions, zero width.
TEST(LogLine, EscapesInvisibleCharacters) {
  EXPECT_EQ(line_of(LogFormat::text, "a", {{"k", "x\u202Ey\u2028z"}}),
            "weir: a k=\"x\\xe2\\x80\\xaey\\xe2\\x80\\xa8z\"\n");
  EXPECT_EQ(line_of(LogFormat::text, "x\u202Ey"), "weir: x\\xe2\\x80\\xaey\n");
  EXPECT_EQ(line_of(LogFormat::json, "x\u202Ey\u2028z").substr(48), "\"msg\":\"x\\u202ey\\u2028z\"}\n");
  EXPECT_EQ(line_of(LogFormat::json, "\U000E0041").substr(48), "\"msg\":\"\\udb40\\udc41\"}\n");
  const std::string_view all[] = {"\u061C", "\u180E", "\u200B", "\u200C", "\u200D", "\u200E",     "\u200F",
                                  "\u2028", "\u2029", "\u202A", "\u202B", "\u202C", "\u202D",     "\u202E",
                                  "\u2060", "\u2066", "\u2067", "\u2068", "\u2069", "\uFEFF",     "\uFFF9",
                                  "\u0085", "\u009B", "\x7f",   "\x1b",   "\n",     "\U000E0001", "\U000E007F"};
  for (const std::string_view one : all) {
    for (const LogFormat format : {LogFormat::text, LogFormat::json, LogFormat::journal}) {
      const std::string line = line_of(format, one, {{"k", one}});
      EXPECT_EQ(line.substr(0, line.size() - 1).find(one), line.npos) << line;
    }
  }
  for (const std::string_view visible :
       {"\u00E4", "\u20AC", "\u05D0", "\u0639", "\u4E2D", "\U0001F600", "\u2027", "\u2030"}) {
    EXPECT_NE(line_of(LogFormat::text, visible).find(visible), std::string::npos) << visible;
    EXPECT_NE(line_of(LogFormat::json, visible).find(visible), std::string::npos) << visible;
  }
}

TEST(LogLine, IsNeverTooLong) {
  const std::string control(5'000, '\x01'), plain(5'000, 'x'), umlauts = [] {
    std::string text;
    for (int i = 0; i < 2'000; ++i) text += "\xc3\xa4";
    return text;
  }();
  for (const LogFormat format : {LogFormat::text, LogFormat::json, LogFormat::journal}) {
    for (const std::string& text : {control, plain, umlauts}) {
      const std::string line = line_of(format, text, {{"a", text}, {"b", text}, {"c", text}, {"d", text}, {"e", "f"}});
      EXPECT_LE(line.size(), kLogLineMax);
      EXPECT_EQ(line.back(), '\n');
      EXPECT_NE(line.find("..."), line.npos);
      EXPECT_EQ(line.find("\xEF\xBF\xBD"), line.npos) << "no half of a character";
    }
    EXPECT_NE(line_of(format, plain, {{"a", plain}, {"e", "f"}}).find("f"), std::string::npos);
  }
}

TEST(LogLevels, HaveNames) {
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error}) {
    EXPECT_EQ(log_level_of(to_string(level)), level);
  }
  EXPECT_EQ(log_level_of("loud"), std::nullopt);
}

}  // namespace
}  // namespace weir::log::log_line_test
