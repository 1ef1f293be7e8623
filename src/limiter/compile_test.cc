// compile(): calendar quotas need a zone file, and the error for a misspelt or missing zone says what to do.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "algorithm/calendar.h"
#include "base/folder_fixture.h"
#include "weir/limit.h"

namespace weir::limiter::compile_test {
namespace {

// A zone folder for one test.
class ZoneFolder : public testing::Test {
 protected:
  ZoneFolder() { setenv("TZDIR", folder_.path().c_str(), 1); }
  ~ZoneFolder() override { unsetenv("TZDIR"); }
  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.at(name)).parent_path());
    folder_.write(name, bytes);
  }
  // A version 1 file with one offset.
  static std::string zone_of(std::int32_t offset_s) {
    std::string bytes = std::string("TZif") + std::string(16, '\0');
    for (const char count : {'\0', '\0', '\0', '\0', '\1', '\4'}) bytes += std::string(3, '\0') + count;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(offset_s >> shift & 255);
    return bytes + std::string("\0\0XYZ\0", 6);
  }
  const base::TestFolder folder_;
};

Error error_of(const Result<Limit>& limit) { return limit ? Error{.message = "no error"} : limit.error(); }

TEST(Compile, ReadsTextAndChecksIt) {
  const auto limit = compile("10/s burst 50");
  ASSERT_TRUE(limit) << limit.error().message;
  EXPECT_EQ(limit->algorithm, Algorithm::token_bucket);
  EXPECT_EQ(limit->capacity, 50);
  EXPECT_EQ(compile("100/minute", Algorithm::sliding_log)->algorithm, Algorithm::sliding_log);
  EXPECT_EQ(error_of(compile("100/minite")).column, 5);
  EXPECT_EQ(error_of(compile("64001/ms", Algorithm::token_bucket)).code, ErrorCode::out_of_range);
}

TEST(Compile, FindsTheZonesOfTheSystem) {
  const auto limit = compile("100/calendar_month Europe/Berlin");
  ASSERT_TRUE(limit) << limit.error().message;
  ASSERT_NE(limit->calendar, nullptr);
  // At 2024-07-31 22:30 UTC it is already August in Berlin.
  EXPECT_EQ(limit->calendar->window_at(1'722'465'000'000'000).start_us, 1'722'463'200'000'000);
  EXPECT_EQ(*limit, *compile("100/calendar_month Europe/Berlin"));
}

TEST(Compile, NamesTheNearestZoneAndTheColumn) {
  const std::pair<const char*, const char*> zones[] = {
      {"Europe/Berln", "Europe/Berlin"},       {"europe/berlin", "Europe/Berlin"}, {"Berlin", "Europe/Berlin"},
      {"America/NewYork", "America/New_York"}, {"Asia/Toyko", "Asia/Tokyo"},       {"utc", "UTC"},
  };
  for (const auto& [typed, meant] : zones) {
    const std::string text = std::string("100/calendar_month ") + typed;
    const Error error = error_of(compile(text));
    EXPECT_EQ(error.code, ErrorCode::not_found);
    EXPECT_EQ(error.column, 20);
    EXPECT_EQ(error.message, "column 20: unknown time zone '" + std::string(typed) + "'; did you mean " + meant + "?");
  }
  EXPECT_EQ(error_of(compile("1/calendar_day Middle/Earth")).message,
            "column 16: unknown time zone 'Middle/Earth'; zones are named like Europe/Berlin");
  EXPECT_EQ(error_of(compile("1/calendar_day Europe")).code, ErrorCode::not_found);  // a folder
}

// PST is not a misspelt EST: in a word this short every letter counts, and so does every digit.
TEST(Compile, DoesNotReadAnAbbreviationAsAnotherZone) {
  for (const char* typed : {"PST", "pst", "CDT", "CEST", "cest", "WEST", "XX", "GMT+5", "UTC+5", "EST5EDU"}) {
    const Error error = error_of(compile(std::string("1/calendar_day ") + typed));
    EXPECT_EQ(error.code, ErrorCode::not_found) << typed;
    EXPECT_EQ(error.message.find("did you mean"), std::string::npos) << error.message;
  }
  EXPECT_EQ(error_of(compile("1/calendar_day PST")).message,
            "column 16: unknown time zone 'PST'; zones are named by places, like America/Los_Angeles");
  const std::pair<const char*, const char*> cases[] = {
      {"est5edt", "EST5EDT"}, {"etc/gmt+5", "Etc/GMT+5"}, {"Rome", "Europe/Rome"}, {"New_York", "America/New_York"}};
  for (const auto& [typed, meant] : cases) {
    const Error error = error_of(compile(std::string("1/calendar_day ") + typed));
    EXPECT_TRUE(error.message.ends_with(std::string("did you mean ") + meant + "?")) << error.message;
  }
}

// The folder of zones contains other files, too. None is a zone, and the error reveals nothing about the machine.
TEST(Compile, ReadsNoOtherFileAsAZone) {
  for (const std::string name :
       {"leapseconds", "posixrules", "localtime", "posix/UTC", "right/UTC", "Right/Europe/Rome", "Europe", "UTC/UTC"}) {
    const Error error = error_of(compile("1/calendar_day " + name));
    EXPECT_EQ(error.code, ErrorCode::not_found) << name;
    EXPECT_NE(error.message.find("unknown time zone '" + name + "'"), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find("/usr"), std::string::npos) << error.message;
  }
  for (const std::string name : {"tzdata.zi", "zone.tab"}) {  // no zone has a dot in its name
    const Error error = error_of(compile("1/calendar_day " + name));
    EXPECT_EQ(error.code, ErrorCode::invalid_argument) << name;
    EXPECT_NE(error.message.find("'" + name + "' is not a time zone"), std::string::npos) << error.message;
  }
}

TEST(Compile, RefusesHandMadeZoneNamesThatLeaveTheFolder) {
  for (const std::string zone : {"", "../zoneinfo/UTC", "/usr/share/zoneinfo/UTC", "a\nb"}) {
    const Quota quota{Algorithm::fixed_window, 5, Micros{0}, CalendarPeriod{CalendarUnit::day, zone}, {}};
    EXPECT_EQ(error_of(compile(quota)).code, ErrorCode::invalid_argument) << zone;
  }
}

TEST_F(ZoneFolder, IsTheOneThatTheEnvironmentNames) {
  write("UTC", zone_of(0));
  write("Moon/Base", zone_of(3600));
  const auto limit = compile("5/calendar_day Moon/Base");
  ASSERT_TRUE(limit) << limit.error().message;
  EXPECT_EQ(limit->calendar->window_at(0).start_us, -3'600'000'000);
  EXPECT_NE(error_of(compile("5/calendar_day Moon/Bass")).message.find("did you mean Moon/Base?"), std::string::npos);
  EXPECT_EQ(error_of(compile("5/calendar_day Europe/Berlin")).code, ErrorCode::not_found);
}

TEST_F(ZoneFolder, SuggestsTheSameZoneInWhateverOrderItIsListed) {
  for (const char* name : {"Ddd/Base", "Ccc/Base", "UTC", "Aaa/Base", "Bbb/Base", "Eee/Base", "Aaaa/Base"}) {
    write(name, zone_of(0));
  }
  EXPECT_NE(error_of(compile("5/calendar_day base")).message.find("did you mean Aaa/Base?"), std::string::npos);
  write("Base", zone_of(0));
  EXPECT_NE(error_of(compile("5/calendar_day base")).message.find("did you mean Base?"), std::string::npos);
}

TEST_F(ZoneFolder, IsNotSearchedIfAListNamesItsZones) {
  write("UTC", zone_of(0));
  write("Moon/Base", zone_of(0));
  write("Pluto/Ridge", zone_of(0));
  write("Mars/City", zone_of(0));
  write("tzdata.zi",
        "# version 1\nR d 1916 o - Jun 14 23s 1 S\nZ Moon/Base 1 - X\n1 d X\nL Moon/Base Mars/City\nZ Mars/Gone 1 - X");
  const std::pair<const char*, const char*> zones[] = {
      {"Moon/Bass", "did you mean Moon/Base?"},
      {"Mars/Citi", "did you mean Mars/City?"},
      {"Pluto/Rigde", "zones are named like Europe/Berlin"},  // Pluto/Ridge is not in the list
      {"Mars/Gome", "zones are named like Europe/Berlin"},    // Mars/Gone is only in the list
  };
  for (const auto& [typed, says] : zones) {
    const Error error = error_of(compile(std::string("5/calendar_day ") + typed));
    EXPECT_TRUE(error.message.ends_with(says)) << error.message;
  }
}

TEST_F(ZoneFolder, IsSearchedTwoLevelsDeep) {
  for (const char* name : {"UTC", "Moon/Base", "Moon/Far/Crater", "posix/Moon/Bath", "right/Bace"}) {
    write(name, zone_of(0));
  }
  EXPECT_NE(error_of(compile("5/calendar_day Moon/Bath")).message.find("did you mean Moon/Base?"), std::string::npos);
  EXPECT_EQ(error_of(compile("5/calendar_day Moon/Far/Crate")).message.find("did you mean"), std::string::npos);
  EXPECT_TRUE(compile("5/calendar_day Moon/Far/Crater"));
}

TEST_F(ZoneFolder, SaysWhatToInstallWhenItIsEmpty) {
  const Error error = error_of(compile("5/calendar_day Europe/Berlin"));
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_NE(error.message.find("install the package tzdata"), std::string::npos) << error.message;
  EXPECT_EQ(error.message.find(folder_.path()), std::string::npos) << error.message;
  EXPECT_TRUE(compile("5/calendar_day"));
  EXPECT_TRUE(compile("5/calendar_day UTC"));
}

TEST_F(ZoneFolder, NamesTheZoneThatIsBrokenButNotItsPath) {
  write("UTC", zone_of(0));
  write("Broken", "TZif but not for long");
  write("Huge", "TZif" + std::string(2'000'000, 'T'));
  write("Text", "just a text");
  write("Short", "TZ");
  const Error broken = error_of(compile("5/calendar_day Broken"));
  EXPECT_EQ(broken.code, ErrorCode::unavailable);
  EXPECT_NE(broken.message.find("time zone 'Broken'"), std::string::npos) << broken.message;
  EXPECT_EQ(broken.message.find(folder_.path()), std::string::npos) << broken.message;
  EXPECT_NE(error_of(compile("5/calendar_day Huge")).message.find("1048576 bytes"), std::string::npos);
  EXPECT_EQ(error_of(compile("5/calendar_day Text")).code, ErrorCode::not_found);
  EXPECT_EQ(error_of(compile("5/calendar_day Short")).code, ErrorCode::not_found);
}

}  // namespace
}  // namespace weir::limiter::compile_test
