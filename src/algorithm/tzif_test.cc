// Time zones: every zone of this machine against the C library, rules at their transitions, and malformed bytes.
//
// Random tests print their seed; WEIR_SEED replays one.
#include "algorithm/tzif.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "algorithm/zone_fixture.h"
#include "seed.h"

namespace weir::algorithm::tzif_test {
namespace {

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 255);
}

struct Block {
  std::vector<std::pair<std::int64_t, int>> times;  // and the kind of local time that begins there
  std::vector<std::int32_t> offsets = {0};
  std::uint64_t leaps = 0;
  std::uint64_t marks = 0;
};

std::string block_text(const Block& block, char version, int time_bytes) {
  std::string out = "TZif";
  out += version;
  out += std::string(15, '\0');
  for (const std::uint64_t n : {block.marks, block.marks, block.leaps, block.times.size(), block.offsets.size()}) {
    put(out, n, 4);
  }
  put(out, 4, 4);
  for (const auto& [at, kind] : block.times) put(out, static_cast<std::uint64_t>(at), time_bytes);
  for (const auto& [at, kind] : block.times) put(out, static_cast<std::uint64_t>(kind), 1);
  for (const std::int32_t offset : block.offsets) put(out, static_cast<std::uint32_t>(offset), 4), put(out, 0, 2);
  return out + std::string("XYZ\0", 4) + std::string(block.leaps * static_cast<std::size_t>(time_bytes + 4), '\0') +
         std::string(2 * block.marks, '\0');
}

std::string modern(const Block& block, const std::string& footer, char version = '2') {
  return block_text(Block{}, version, 4) + block_text(block, version, 8) + "\n" + footer + "\n";
}

Zone zone_of_rule(const std::string& rule) {
  const auto zone = parse_tzif(modern({}, rule, '3'));
  EXPECT_TRUE(zone) << rule << ": " << zone.error().message;
  return zone.value_or(Zone{});
}

TEST(Tzif, GivesEveryZoneTheOffsetsOfTheCLibrary) {
  auto random = test::seeded();
  const auto names = zone_names();
  ASSERT_GT(names.size(), 300u) << "the package tzdata is missing";
  const std::int64_t begin = 0, end = utc_seconds(2110, 1, 1);
  for (const std::string& name : names) {
    const auto zone = parse_tzif(zone_bytes(name));
    ASSERT_TRUE(zone) << name << ": " << zone.error().message;
    const LibraryZone library(name);
    const auto compare = [&](std::int64_t t) {
      ASSERT_EQ(zone->offset_at(t), library.offset_at(t)) << name << " at " << t;
    };
    for (int i = 0; i < 200; ++i) compare(test::pick(random, begin, end));
    for (const Zone::Transition& transition : zone->transitions) {
      if (transition.at_s <= begin || transition.at_s >= end) continue;
      for (std::int64_t t = transition.at_s - 1; t <= transition.at_s + 1; ++t) compare(t);
    }
    if (HasFatalFailure()) return;
  }
}

TEST(Tzif, GivesARuleTheOffsetsOfTheCLibrary) {
  auto random = test::seeded();
  const char* rules[] = {"CET-1CEST,M3.5.0,M10.5.0/3",
                         "EST5EDT,M3.2.0,M11.1.0",
                         "EST5EDT4,M3.2.0/02:00:00,M11.1.0/2",
                         "AEST-10AEDT,M10.1.0,M4.1.0/3",
                         "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
                         "IST-1GMT0,M10.5.0,M3.5.0/1",
                         "EET-2EEST,M3.4.4/50,M10.4.4/50",
                         "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
                         "<+0330>-3:30<+0430>,J79/24,J263/24",
                         "XST3XDT,59,J300/3:30:15",
                         "XST+3XDT,J60,299",
                         "XST-5:45:30"};
  for (const char* rule : rules) {
    const Zone zone = zone_of_rule(rule);
    const LibraryZone library(rule);
    for (int i = 0; i < 3'000; ++i) {
      const std::int64_t t = test::pick(random, 0, utc_seconds(2200, 1, 1));
      ASSERT_EQ(zone.offset_at(t), library.offset_at(t)) << rule << " at " << t;
    }
  }
}

TEST(Tzif, UsesTheUsualDatesForARuleWithoutDates) {
  EXPECT_TRUE(*parse_zone_rule("EST5EDT") == *parse_zone_rule("EST5EDT,M3.2.0,M11.1.0"));
  EXPECT_EQ(parse_zone_rule("EST5EDT4:30")->daylight_s, -16'200);
}

TEST(Tzif, KnowsDaylightSavingThatNeverEnds) {
  const Zone zone = zone_of_rule("XXX3EDT4,0/0,J365/23");
  for (int year = 1970; year < 2130; ++year) {
    EXPECT_EQ(zone.offset_at(utc_seconds(year, 1, 1, 2, 59, 59)), -4 * 3600);
    EXPECT_EQ(zone.offset_at(utc_seconds(year, 1, 1, 3)), -4 * 3600);
    EXPECT_EQ(zone.offset_at(utc_seconds(year, 7, 1)), -4 * 3600);
  }
  // An end past its own next beginning, and one equal to its beginning.
  EXPECT_EQ(zone_of_rule("XXX3EDT4,0/0,J365/30").offset_at(utc_seconds(2030, 1, 1, 8)), -4 * 3600);
  EXPECT_EQ(zone_of_rule("XXX3EDT4,J1/1,J1/0").offset_at(utc_seconds(2030, 1, 1, 4)), -3 * 3600);
}

TEST(Tzif, CountsDaysOfTheYearWithAndWithoutLeapDays) {
  const auto begins = [](const char* rule, int year, unsigned month, unsigned day) {
    const Zone zone = zone_of_rule(rule);
    const std::int64_t at = utc_seconds(year, month, day, 2);
    return zone.offset_at(at - 1) == 0 && zone.offset_at(at) == 3600;
  };
  EXPECT_TRUE(begins("UTC0DST,J59,J300", 2024, 2, 28));
  EXPECT_TRUE(begins("UTC0DST,J60,J300", 2024, 3, 1));
  EXPECT_TRUE(begins("UTC0DST,J60,J300", 2023, 3, 1));
  EXPECT_TRUE(begins("UTC0DST,59,300", 2024, 2, 29));
  EXPECT_TRUE(begins("UTC0DST,59,300", 2023, 3, 1));
  EXPECT_TRUE(begins("UTC0DST,60,300", 2100, 3, 2));
  EXPECT_TRUE(begins("UTC0DST,M2.5.4,J300", 2024, 2, 29));
  EXPECT_TRUE(begins("UTC0DST,M2.5.4,J300", 2023, 2, 23));
}

TEST(Tzif, AcceptsHoursUpToAWeekFromTheDay) {
  const Zone zone = zone_of_rule("UTC0DST,M3.1.0/167,M10.1.0/-167");
  EXPECT_EQ(zone.offset_at(utc_seconds(2024, 3, 3) + 167 * 3600 - 1), 0);
  EXPECT_EQ(zone.offset_at(utc_seconds(2024, 3, 3) + 167 * 3600), 3600);
  EXPECT_EQ(zone.offset_at(utc_seconds(2024, 10, 6) - 167 * 3600 - 3600 - 1), 3600);
  EXPECT_EQ(zone.offset_at(utc_seconds(2024, 10, 6) - 167 * 3600 - 3600), 0);
}

TEST(Tzif, RefusesInvalidRules) {
  for (const char* rule : {"",
                           "C",
                           "CE-1",
                           "CET",
                           "CET-",
                           "CET-25",
                           "CET-1:60",
                           "CET-1CEST,",
                           "CET-1CEST,M3.5.0",
                           "CET-1CEST,M3.5.0,",
                           "CET-1CEST,M13.5.0,M10.5.0",
                           "CET-1CEST,M3.6.0,M10.5.0",
                           "CET-1CEST,M3.0.0,M10.5.0",
                           "CET-1CEST,M3.5.7,M10.5.0",
                           "CET-1CEST,J0,J10",
                           "CET-1CEST,J366,J10",
                           "CET-1CEST,366,1",
                           "CET-1CEST,1,2x",
                           "CET-1CEST,1/168,2",
                           "CET-1CEST,1/2:60,2",
                           "<CET-1",
                           "<C>-1",
                           "<C T>-1",
                           "CET-1CE",
                           "CET-1CEST,1,2,3",
                           "CET-1 "}) {
    EXPECT_FALSE(parse_zone_rule(rule)) << rule;
  }
}

TEST(Tzif, ReadsTheOldBlockOfAVersion1File) {
  Block block;
  block.times = {{-100, 1}, {2'000, 0}};
  block.offsets = {-3600, 7200};
  const auto zone = parse_tzif(block_text(block, 0, 4));
  ASSERT_TRUE(zone) << zone.error().message;
  EXPECT_EQ(zone->offset_at(-101), -3600);
  EXPECT_EQ(zone->offset_at(-100), 7200);
  EXPECT_EQ(zone->offset_at(1'999), 7200);
  EXPECT_EQ(zone->offset_at(2'000), -3600);
  EXPECT_EQ(zone->offset_at(INT64_MAX), -3600);
  EXPECT_EQ(zone->offset_at(INT64_MIN), -3600);
}

TEST(Tzif, PrefersTheNewBlockAndContinuesWithItsRule) {
  Block block;
  block.times = {{-(std::int64_t{1} << 40), 1}, {utc_seconds(2020, 10, 25, 1), 1}};
  block.offsets = {600, 3600};
  for (const char version : {'2', '3', '4'}) {
    const auto zone = parse_tzif(modern(block, "CET-1CEST,M3.5.0,M10.5.0/3", version));
    ASSERT_TRUE(zone) << zone.error().message;
    EXPECT_EQ(zone->offset_at(-(std::int64_t{1} << 40) - 1), 600);
    EXPECT_EQ(zone->offset_at(utc_seconds(2020, 7, 1)), 3600);
    EXPECT_EQ(zone->offset_at(utc_seconds(2021, 7, 1)), 7200);
    EXPECT_EQ(zone->offset_at(utc_seconds(2300, 7, 1)), 7200);
    EXPECT_EQ(zone->offset_at(utc_seconds(2300, 12, 1)), 3600);
  }
  EXPECT_EQ(parse_tzif(modern(block, ""))->offset_at(utc_seconds(2021, 7, 1)), 3600);
}

TEST(Tzif, SaysWhyItRefusesAFile) {
  const auto refused = [](const std::string& bytes, const char* says) {
    const auto zone = parse_tzif(bytes);
    ASSERT_FALSE(zone) << says;
    EXPECT_EQ(zone.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(zone.error().message.find(says), std::string::npos) << zone.error().message;
  };
  refused("", "TZif header");
  refused("not a zone at all, but long enough to hold one header", "TZif header");
  refused(std::string(kZoneBytesMax + 1, 'T'), "1048576 bytes");
  refused(block_text(Block{}, '5', 4), "version");
  refused(block_text(Block{}, '1', 4), "version");
  Block block;
  block.leaps = 1;
  refused(modern(block, ""), "leap seconds");
  block = {.times = {{5, 1}}, .offsets = {0}};
  refused(modern(block, ""), "does not exist");
  block = {.times = {{5, 0}, {5, 0}}, .offsets = {0}};
  refused(modern(block, ""), "in order");
  block = {.times = {}, .offsets = {93'600}};
  refused(modern(block, ""), "exceeds a day");
  block = {.times = {}, .offsets = {-90'000}};
  refused(modern(block, ""), "exceeds a day");
  block = {.times = {}, .offsets = {}};
  refused(modern(block, ""), "1 to 256");
  block = {.times = {}, .offsets = std::vector<std::int32_t>(257, 0)};
  refused(modern(block, ""), "1 to 256");
  block = {.times = {}, .offsets = {0, 0}, .marks = 1};
  refused(modern(block, ""), "indicators do not match");
  refused(modern({}, "nonsense"), "'nonsense'");
  refused(block_text(Block{}, '2', 4) + block_text(Block{}, '2', 8), "is missing");
  refused(block_text(Block{}, '2', 4) + block_text(Block{}, '2', 8) + "\nUTC0", "does not end");
  std::string huge = block_text(Block{}, 0, 4);
  for (std::size_t i = 20; i < 44; ++i) huge[i] = '\xff';
  refused(huge, "declares");
}

TEST(Tzif, SurvivesEveryTruncationAndFlippedByte) {
  const std::string whole = zone_bytes("Europe/Berlin");
  ASSERT_TRUE(parse_tzif(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(parse_tzif(whole.substr(0, size)));
  auto random = test::seeded();
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ test::pick(random, 1, 255));
    const auto zone = parse_tzif(bytes);
    if (!zone) {
      ++refused;
      continue;
    }
    for (const std::int64_t t :
         {INT64_MIN, std::int64_t{0}, INT64_MAX, test::pick(random, 0, utc_seconds(2112, 1, 1))}) {
      EXPECT_LE(std::abs(zone->offset_at(t)), 93'600);
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(Tzif, StretchesMeetWithoutGapOrEmptiness) {
  for (const char* name :
       {"Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Africa/Casablanca", "Australia/Lord_Howe"}) {
    const auto zone = parse_tzif(zone_bytes(name));
    ASSERT_TRUE(zone) << name;
    for (std::int64_t t = utc_seconds(1960, 1, 1); t < utc_seconds(2130, 1, 1);) {
      const Zone::Stretch stretch = zone->stretch_at(t);
      ASSERT_GT(stretch.end_s, t);
      ASSERT_EQ(zone->offset_at(stretch.end_s - 1), stretch.offset_s) << name;
      t = stretch.end_s;
    }
  }
}

}  // namespace
}  // namespace weir::algorithm::tzif_test
