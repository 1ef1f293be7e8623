// Quotas: what is accepted, the error for each mistake, and that text and value convert into each other.
//
// Whatever an error suggests must itself be a quota: every test here that sees an error checks that. Random tests
// print their seed; WEIR_SEED replays one.
#include "weir/quota.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "algorithm/limit.h"
#include "base/nearest.h"
#include "seed.h"
#include "weir/duration.h"

namespace weir::algorithm::quota_test {
namespace {

// The quota that a message suggests; every message must suggest one.
std::string suggestion(const std::string& message) {
  for (const std::string_view lead : {"did you mean ", "write it like "}) {
    const std::size_t at = message.rfind(lead);
    if (at == std::string::npos) continue;
    std::string text = message.substr(at + lead.size());
    if (text.ends_with('?')) text.pop_back();
    return text;
  }
  return {};
}

// A helpful error: a column, also in the message; printable, short, and with a suggestion that parses.
void expect_kind(const Error& error, std::optional<Algorithm> algorithm) {
  EXPECT_GE(error.column, 1) << error.message;
  EXPECT_TRUE(error.message.starts_with("column " + std::to_string(error.column) + ": ")) << error.message;
  EXPECT_LT(error.message.size(), 420u) << error.message;
  for (const char c : error.message) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << error.message;
  const std::string offered = suggestion(error.message);
  EXPECT_TRUE(parse_quota(offered, algorithm)) << error.message;
}

struct Mistake {
  std::string text;
  std::int32_t column;
  std::string offered;
  std::string says = "";
  std::optional<Algorithm> algorithm = {};
};

void expect_mistake(const Mistake& mistake) {
  const auto quota = parse_quota(mistake.text, mistake.algorithm);
  ASSERT_FALSE(quota) << mistake.text;
  const Error& error = quota.error();
  expect_kind(error, mistake.algorithm);
  EXPECT_EQ(error.column, mistake.column) << error.message;
  EXPECT_EQ(suggestion(error.message), mistake.offered) << mistake.text << " -> " << error.message;
  EXPECT_NE(error.message.find(mistake.says), std::string::npos) << error.message;
}

Quota rate(Algorithm algorithm, std::int64_t permits, std::int64_t period_us) {
  return {algorithm, permits, Micros{period_us}, {}, {}};
}

constexpr std::int64_t kSecond = 1'000'000, kMinute = 60 * kSecond, kDay = 86'400 * kSecond;

TEST(Quota, ReadsEveryFormOfTheGrammar) {
  const auto sliding = Algorithm::sliding_window;
  EXPECT_EQ(parse_quota("100/minute"), rate(sliding, 100, kMinute));
  EXPECT_EQ(parse_quota("5/5min"), rate(sliding, 5, 5 * kMinute));
  EXPECT_EQ(parse_quota("300/15min"), rate(sliding, 300, 15 * kMinute));
  EXPECT_EQ(parse_quota("1000/day"), rate(sliding, 1000, kDay));
  EXPECT_EQ(parse_quota("0/minute"), rate(sliding, 0, kMinute));
  EXPECT_EQ(parse_quota("1/1ms"), rate(sliding, 1, 1000));
  EXPECT_EQ(parse_quota("1099511627776/10year"), rate(sliding, kPermitsMax, 3650 * kDay));
  Quota burst = rate(Algorithm::token_bucket, 10, kSecond);
  burst.burst = 50;
  EXPECT_EQ(parse_quota("10/s burst 50"), burst);
  burst.permits = 10'000;
  burst.burst = 5'000;
  EXPECT_EQ(parse_quota("10000/s burst 5000"), burst);
  Quota month = rate(Algorithm::fixed_window, 100, 0);
  month.calendar = {CalendarUnit::month, "Europe/Berlin"};
  EXPECT_EQ(parse_quota("100/calendar_month Europe/Berlin"), month);
  month.calendar->zone = "UTC";
  EXPECT_EQ(parse_quota("100/calendar_month"), month);
  EXPECT_EQ(parse_quota("20 concurrent"), rate(Algorithm::concurrency, 20, kHoldDefault.count()));
  EXPECT_EQ(parse_quota("20 concurrent for 5min"), rate(Algorithm::concurrency, 20, 5 * kMinute));
  EXPECT_EQ(parse_quota("0 concurrent"), rate(Algorithm::concurrency, 0, kHoldDefault.count()));
}

TEST(Quota, ToleratesBlanksAndCaseButWritesNeither) {
  for (const char* text : {" 100/minute", "100/minute\t", "100 / MINUTE", "\t100\t/  Minute  ", "00100/01minutes"}) {
    const auto quota = parse_quota(text);
    ASSERT_TRUE(quota) << quota.error().message;
    EXPECT_EQ(weir::to_string(*quota), "100/min");
  }
  EXPECT_EQ(weir::to_string(*parse_quota(" 10 / S  Burst  50 ")), "10/s burst 50");
  EXPECT_EQ(weir::to_string(*parse_quota("20 Concurrent For 60S")), "20 concurrent");
  EXPECT_EQ(weir::to_string(*parse_quota("7/Calendar_Week  Asia/Tokyo ")), "7/calendar_week Asia/Tokyo");
}

TEST(Quota, KnowsTheUnitsByAllTheirNames) {
  const std::pair<std::int64_t, std::vector<std::string>> units[] = {
      {1'000, {"ms", "millisecond", "milliseconds"}},
      {kSecond, {"s", "sec", "secs", "second", "seconds"}},
      {kMinute, {"m", "min", "mins", "minute", "minutes"}},
      {60 * kMinute, {"h", "hr", "hrs", "hour", "hours"}},
      {kDay, {"d", "day", "days"}},
      {7 * kDay, {"w", "week", "weeks"}},
      {30 * kDay, {"month", "months"}},
      {365 * kDay, {"y", "year", "years"}},
  };
  for (const auto& [us, names] : units) {
    for (const std::string& name : names) {
      EXPECT_EQ(parse_quota("7/" + name), rate(Algorithm::sliding_window, 7, us)) << name;
      EXPECT_EQ(parse_quota("7/3" + name), rate(Algorithm::sliding_window, 7, 3 * us)) << name;
    }
  }
  EXPECT_EQ(parse_quota("7/1500us"), rate(Algorithm::sliding_window, 7, 1500));
}

TEST(Quota, ReportsTheColumnOfATypoAndASuggestion) {
  const auto quota = parse_quota("100/minite");
  ASSERT_FALSE(quota);
  EXPECT_EQ(quota.error().message, "column 5: unknown unit 'minite'; did you mean 100/minute?");
  const Mistake mistakes[] = {
      {"100/mintue", 5, "100/minute"},
      {"100/mon", 5, "100/month"},
      {"100/5secnods", 6, "100/5s"},
      {"  7 / wek", 7, "7/week"},
      {"100/minute bursts 5", 12, "100/minute burst 5", "'bursts'"},
      {"100/minute brust 5", 12, "100/minute burst 5"},
      {"100/minute burst=5", 12, "100/minute burst 5"},
      {"100/minute burst", 17, "100/minute burst 100", "missing"},
      {"100 per minute", 5, "100/minute", "'per'"},
      {"100 / 1 minute", 7, "100/minute", "directly follow"},
      {"100/5 min", 5, "100/5min"},
      {"100rpm", 1, "100/minute"},
      {"25qps", 1, "25/s"},
      {"5 times a day", 3, "5/day"},
      {"100 requests per hour", 5, "100/hour"},
      {"20 concurent", 4, "20 concurrent"},
      {"20concurrent", 1, "20 concurrent"},
      {"20 concurrent for", 18, "20 concurrent", "missing"},
      {"20 concurrent for 5 min", 19, "20 concurrent for 5min"},
      {"20 concurrent during 5min", 15, "20 concurrent", "'for'"},
      {"100/calendar_mnth Europe/Berlin", 5, "100/calendar_month Europe/Berlin"},
      {"100/calendar month", 5, "100/calendar_month"},
      {"100/2calendar_day", 5, "100/calendar_day", "no number"},
      {"100/calendar_day America/New York", 30, "100/calendar_day America/New_York"},
      {"100/min/5", 8, "100/min", "'/5'"},
      {"100//min", 5, "100/min"},
      {"100/minute please", 12, "100/minute"},
      {"100\n/minute", 1, "100/minute", "'100\\x0a'"},
  };
  for (const Mistake& mistake : mistakes) expect_mistake(mistake);
}

// A suggestion copied without thought must not allow a thousand times as much.
TEST(Quota, GuessesTheRightOrderOfMagnitudeOrNothing) {
  const Mistake mistakes[] = {
      {"100/mo", 5, "100/month", "'mo'"},
      {"100/mth", 5, "100/month"},
      {"100/yr", 5, "100/year"},
      {"100/2wk", 6, "100/2week"},
      {"100/msec", 5, "100/ms"},
      {"100/mseconds", 5, "100/ms"},
      {"100/5000usecs", 9, "100/5ms"},
      {"100/usec", 5, "100/minute"},
      {"100/ns", 5, "100/minute", "the units are"},
      {"100/nsec", 5, "100/minute", "the units are"},
      {"100/nanoseconds", 5, "100/minute", "the units are"},
      {"100/mss", 5, "100/minute"},
      {"100/microsec", 5, "100/minute"},
      {"1/0.5s", 3, "1/500ms"},
      {"1/0.0005s", 3, "100/minute"},
      {"5/1h30m", 3, "5/90min"},
      {"5/1h 30m", 6, "5/90min"},
      {"1.5/1h30m", 1, "3/3h"},
      {"5/1h,30m", 3, "5/90min"},
      {"5/1h and 30m", 6, "5/90min"},
      {"100 m/s", 5, "100/minute", "'m'"},
      {"5/1h30", 3, "100/minute"},
      {"5/1h30x", 3, "100/minute"},
      {"5/9y13months", 3, "100/minute"},
      {"10/1m30s burst 7", 4, "10/90s burst 7"},
      {"20 concurrent for 1h30m", 19, "20 concurrent for 90min"},
      {"100/calendar_hour", 5, "100/hour"},
      {"100/calendar_minute", 5, "100/minute"},
      {"100/calendar_second", 5, "100/second"},
      {"100/calendar hours", 5, "100/hours"},
      {"100/calender_month", 5, "100/calendar_month"},
      {"100/calendar_months", 5, "100/calendar_month"},
      {"100/calendar_decade", 5, "100/minute"},
      {"100 r/s", 5, "100/s"},
      {"100r/s", 1, "100/s"},
      {"100r/m", 1, "100/min"},
      {"10r/s burst=20 nodelay", 1, "10/s burst 20"},
      {"10/s burst fifty", 12, "100/minute"},
      {"10/s burst fifty", 12, "10/s burst 50", "", Algorithm::token_bucket},
  };
  for (const Mistake& mistake : mistakes) expect_mistake(mistake);
  EXPECT_EQ(parse_quota("100/ns").error().message.find("did you mean"), std::string::npos);
}

TEST(Quota, JoinsTheWordsOfAZoneAsZonesAreNamed) {
  const std::pair<const char*, const char*> zones[] = {
      {"Europe Berlin", "Europe/Berlin"},
      {"europe berlin", "europe/berlin"},
      {"America New York", "America/New_York"},
      {"America/New York", "America/New_York"},
      {"New York", "New_York"},  // compile() finds the continent
      {"in Europe/Berlin", "Europe/Berlin"},
      {"Europe/Berlin please", "Europe/Berlin"},
      {"Asia Ho Chi Minh", "Asia/Ho_Chi_Minh"},
      {"Europe/Berlin burst 5", "Europe/Berlin"},
  };
  for (const auto& [typed, offered] : zones) {
    const auto quota = parse_quota(std::string("9/calendar_month ") + typed);
    ASSERT_FALSE(quota) << typed;
    EXPECT_EQ(suggestion(quota.error().message), std::string("9/calendar_month ") + offered) << quota.error().message;
  }
}

TEST(Quota, ReportsWhatIsMissing) {
  const Mistake mistakes[] = {
      {"", 1, "100/minute", "empty"},
      {"   ", 4, "100/minute", "empty"},
      {"minute", 1, "100/minute", "'minute'"},
      {"/minute", 1, "100/minute", "permits"},
      {"/", 1, "100/minute", "permits"},
      {"100", 4, "100/minute", "period"},
      {"100/", 5, "100/minute", "period"},
      {"100/5", 5, "100/minute", "unit"},
      {"100/fortnight", 5, "100/minute", "the units are ms, s, min, h, day"},
      {"x", 1, "10/s burst 50", "'x'", Algorithm::leaky_meter},
      {"x", 1, "20 concurrent", "'x'", Algorithm::concurrency},
  };
  for (const Mistake& mistake : mistakes) expect_mistake(mistake);
}

TEST(Quota, ReportsHowToWriteANumber) {
  const Mistake mistakes[] = {
      {"10,000/s", 1, "10000/s", "write 10000"},
      {"1_000/s", 1, "1000/s", "write 1000"},
      {"1e3/s", 1, "1000/s", "write 1000"},
      {"10k/s", 1, "10000/s", "write 10000"},
      {"1.5M/day", 1, "1500000/day", "write 1500000"},
      {"1.5/s", 1, "3/2s", "'1.5'"},
      {"0.1/s", 1, "1/10s", "'0.1'"},
      {"1,5/s", 1, "100/minute", "'1,5'"},
      {"+5/s", 1, "5/s", "'+5'"},
      {"-5/s", 1, "5/s", "negative"},
      {"0x10/s", 1, "100/minute", "'0x10'"},
      {"1099511627777/s", 1, "1099511627776/s", "at most 1099511627776"},
      {"99999999999999999999999999/s", 1, "1099511627776/s", "at most 1099511627776"},
      {"9e99/s", 1, "1099511627776/s", "'9e99'"},
      {"10/s burst 5k", 12, "10/s burst 5000", "write 5000"},
      {"10/s burst -5", 12, "10/s burst 5", "negative"},
      {"10/s burst 1099511627777", 12, "10/s burst 1099511627776", "at most 1099511627776"},
      {"100/1.5h", 5, "100/90min", "'1.5h'"},
      {"100/-5min", 5, "100/5min", "'-5min'"},
      {"10001 concurrent", 1, "10000 concurrent", "at most 10000"},
  };
  for (const Mistake& mistake : mistakes) expect_mistake(mistake);
}

TEST(Quota, BoundsThePeriod) {
  const Mistake mistakes[] = {
      {"100/0min", 5, "100/min", "at least 1ms"},
      {"100/us", 5, "100/minute", "at least 1ms"},
      {"100/11years", 5, "100/10year", "at most 10years"},
      {"100/99999999999999999999s", 5, "100/87660h", "at most 10years"},
      {"20 concurrent for 0s", 19, "20 concurrent for s", "at least 1ms"},
      {"20 concurrent for 11y", 19, "20 concurrent for 10year", "at most 10years"},
  };
  for (const Mistake& mistake : mistakes) expect_mistake(mistake);
  EXPECT_TRUE(parse_quota("1/315576000s"));
  EXPECT_FALSE(parse_quota("1/315576001s"));
  EXPECT_EQ(parse_quota("1/315576001s").error().code, ErrorCode::out_of_range);
}

TEST(Quota, RefusesABurstThatContradictsItself) {
  expect_mistake({"0/s burst 5", 5, "0/s", "never refills"});
  expect_mistake({"10/s burst 0", 12, "0/s", "lets nothing pass"});
  expect_mistake({"0/s burst 0", 11, "0/s", ""});
}

TEST(Quota, MustSuitTheNamedAlgorithm) {
  const Mistake mistakes[] = {
      {"10/s burst 5", 6, "10/s", "fixed_window has no burst", Algorithm::fixed_window},
      {"10/s burst 5", 6, "10/s", "sliding_log has no burst", Algorithm::sliding_log},
      {"10/s burst 5", 3, "10 concurrent", "no rate", Algorithm::concurrency},
      {"20/s", 3, "20 concurrent", "no rate", Algorithm::concurrency},
      {"20", 3, "20 concurrent", "", Algorithm::concurrency},
      {"20 concurrent", 4, "100/minute", "sliding_window counts", Algorithm::sliding_window},
      {"20 concurrent", 4, "10/s burst 50", "token_bucket counts", Algorithm::token_bucket},
      {"100/calendar_month Europe/Berlin", 5, "100/month", "no calendar", Algorithm::sliding_log},
      {"100/calendar_day burst 5", 18, "100/calendar_day", "no burst"},
  };
  for (const Mistake& mistake : mistakes) expect_mistake(mistake);
  for (const Algorithm algorithm : kAlgorithms) {
    const auto plain = parse_quota("100/minute", algorithm);
    ASSERT_EQ(plain.has_value(), algorithm != Algorithm::concurrency);
    if (plain) {
      EXPECT_EQ(*plain, rate(algorithm, 100, kMinute));
    }
    EXPECT_EQ(parse_quota("10/s burst 5", algorithm).has_value(), is_bucket(algorithm));
    EXPECT_EQ(parse_quota("9/calendar_day", algorithm).has_value(), algorithm == Algorithm::fixed_window);
    EXPECT_EQ(parse_quota("9 concurrent", algorithm).has_value(), algorithm == Algorithm::concurrency);
  }
}

TEST(Quota, AcceptsNoZoneThatCouldLeaveItsFolder) {
  for (const char* zone :
       {"../passwd", "/etc/passwd", "Europe/../../x", "Europe//Berlin", "Europe/", "Eur\\ope", "a.b"}) {
    const std::string text = std::string("100/calendar_day ") + zone;
    expect_mistake({text, 18, "100/calendar_day", "not a time zone"});
  }
  EXPECT_FALSE(parse_quota("1/calendar_day " + std::string(65, 'A')));
  EXPECT_TRUE(parse_quota("1/calendar_day " + std::string(64, 'A')));
  EXPECT_TRUE(parse_quota("1/calendar_day America/Port-au-Prince"));
  EXPECT_TRUE(parse_quota("1/calendar_day Etc/GMT+5"));
}

TEST(Quota, RefusesGarbageWithAShortPrintableError) {
  auto random = test::seeded();
  std::string garbage(10'240, '\0');
  for (char& c : garbage) c = static_cast<char>(test::pick(random, 0, 255));
  for (const std::size_t size : {10'240u, 257u, 256u, 100u, 3u}) {
    const auto quota = parse_quota(std::string_view(garbage).substr(0, size));
    ASSERT_FALSE(quota);
    expect_kind(quota.error(), {});
    EXPECT_EQ(quota.error().column == 257, size > 256);
  }
  EXPECT_TRUE(parse_quota("1/s" + std::string(253, ' ')));
  EXPECT_FALSE(parse_quota("1/s" + std::string(254, ' ')));
}

TEST(Quota, SuggestsOnlyWhatParsesWhateverIsTyped) {
  auto random = test::seeded();
  const std::string seeds[] = {"100/minute",       "5/5min",
                               "10/s burst 50",    "20 concurrent",
                               "1.5k per 2 hours", "100/calendar_month Europe/Berlin",
                               "10,000 req / day", "20 concurrent for 5min"};
  const std::string alphabet = "0123456789/ .,-+_kmsehdbwyurtncialoMZ\t\x01\xc3";
  int refused = 0;
  for (int i = 0; i < 60'000; ++i) {
    std::string text = seeds[test::pick(random, 0, std::ssize(seeds) - 1)];
    for (auto edits = test::pick(random, 1, 4); edits > 0; --edits) {
      const auto at = static_cast<std::size_t>(test::pick(random, 0, std::ssize(text)));
      const char c = alphabet[static_cast<std::size_t>(test::pick(random, 0, std::ssize(alphabet) - 1))];
      if (edits % 2 == 0 && at < text.size()) text.erase(at, 1);
      text.insert(std::min(at, text.size()), 1, c);
    }
    std::optional<Algorithm> algorithm;
    if (i % 2 == 0) algorithm = kAlgorithms[test::pick(random, 0, std::ssize(kAlgorithms) - 1)];
    const auto quota = parse_quota(text, algorithm);
    if (quota) {
      ASSERT_EQ(parse_quota(weir::to_string(*quota), quota->algorithm), *quota) << text;
    } else {
      ++refused;
      expect_kind(quota.error(), algorithm);
    }
    if (HasFailure()) FAIL() << "by: " << base::in_quotes(text, 256);
  }
  EXPECT_GT(refused, 30'000);
}

Quota random_quota(std::mt19937_64& random) {
  Quota quota;
  quota.algorithm = kAlgorithms[test::pick(random, 0, std::ssize(kAlgorithms) - 1)];
  const bool in_flight = quota.algorithm == Algorithm::concurrency;
  quota.permits =
      test::pick(random, 0, (in_flight ? kConcurrentMax : kPermitsMax) >> test::pick(random, 0, in_flight ? 16 : 40));
  constexpr std::int64_t kUnits[] = {1, 1'000, kSecond, kMinute, 60 * kMinute, kDay, 7 * kDay, 30 * kDay, 365 * kDay};
  const std::int64_t unit = kUnits[test::pick(random, 0, std::ssize(kUnits) - 1)];
  const std::int64_t count_max = std::max<std::int64_t>(1, (kPeriodMax.count() / unit) >> test::pick(random, 0, 48));
  quota.period = std::max(kPeriodMin, Micros{unit * test::pick(random, 1, count_max)});
  if (is_bucket(quota.algorithm) && quota.permits > 0 && test::pick(random, 0, 1) == 0) {
    quota.burst = test::pick(random, 1, kPermitsMax >> test::pick(random, 0, 40));
  }
  if (quota.algorithm == Algorithm::fixed_window && test::pick(random, 0, 1) == 0) {
    const char* zones[] = {"UTC", "Europe/Berlin", "Etc/GMT+12", "America/Argentina/ComodRivadavia"};
    quota.calendar = {static_cast<CalendarUnit>(test::pick(random, 0, 3)), zones[test::pick(random, 0, 3)]};
    quota.period = Micros{0};
  }
  return quota;
}

TEST(Quota, IsTheSameAfterItWasWrittenAndRead) {
  auto random = test::seeded();
  for (int i = 0; i < 50'000; ++i) {
    const Quota quota = random_quota(random);
    const std::string text = weir::to_string(quota);
    ASSERT_EQ(parse_quota(text, quota.algorithm), quota) << text;
    const bool implied = quota.algorithm == Algorithm::sliding_window || quota.algorithm == Algorithm::concurrency ||
                         quota.calendar || (quota.burst && quota.algorithm == Algorithm::token_bucket);
    if (implied) {
      ASSERT_EQ(parse_quota(text), quota) << text;
    }
  }
}

TEST(Quota, IsWrittenWithTheLargestUnitThatDividesItsPeriod) {
  const std::pair<const char*, const char*> texts[] = {
      {"1/60000ms", "1/min"},
      {"1/61s", "1/61s"},
      {"1/1500ms", "1/1500ms"},
      {"1/90min", "1/90min"},
      {"1/24h", "1/day"},
      {"1/48h", "1/2day"},
      {"1/7d", "1/week"},
      {"1/30days", "1/month"},
      {"1/365days", "1/year"},
      {"1/2000us", "1/2ms"},
      {"1/1001us", "1/1001us"},
      {"1/calendar_day UTC", "1/calendar_day"},
      {"1 concurrent for 1min", "1 concurrent"},
  };
  for (const auto& [text, canonical] : texts) EXPECT_EQ(weir::to_string(*parse_quota(text)), canonical);
}

TEST(Algorithm, IsKnownByItsNameAlone) {
  for (const Algorithm algorithm : kAlgorithms) EXPECT_EQ(parse_algorithm(weir::to_string(algorithm)), algorithm);
  EXPECT_FALSE(parse_algorithm(""));
  EXPECT_FALSE(parse_algorithm("Token_Bucket"));
}

TEST(Algorithm, IsSuggestedForAMisspeltName) {
  const std::pair<const char*, const char*> names[] = {
      {"token-bucket", "token_bucket"},
      {"tokenbucket", "token_bucket"},
      {"Token Bucket", "token_bucket"},
      {"gcra", "token_bucket"},
      {"leaky_buckt", "leaky_bucket"},
      {"leakymeter", "leaky_meter"},
      {"slidingwindow", "sliding_window"},
      {"sliding-log", "sliding_log"},
      {"fixd_window", "fixed_window"},
      {"concurrent", "concurrency"},
      {"sliding_window_counter", "sliding_window"},
  };
  for (const auto& [name, meant] : names) {
    const auto algorithm = parse_algorithm(name);
    ASSERT_FALSE(algorithm) << name;
    EXPECT_EQ(algorithm.error().message, "unknown algorithm '" + std::string(name) + "'; did you mean " + meant + "?");
  }
  EXPECT_EQ(parse_algorithm("magic").error().message,
            "unknown algorithm 'magic'; the algorithms are fixed_window, sliding_log, sliding_window, token_bucket, "
            "leaky_bucket, leaky_meter and concurrency");
  EXPECT_LT(parse_algorithm(std::string(100'000, '\x07')).error().message.size(), 400u);
}

TEST(Nearest, CountsEditsAndSuggestsNothingForDistantWords) {
  EXPECT_EQ(base::edit_distance("minute", "Minute"), 0u);
  EXPECT_EQ(base::edit_distance("mintue", "minute"), 1u);
  EXPECT_EQ(base::edit_distance("", "abc"), 3u);
  EXPECT_EQ(base::edit_distance("abc", ""), 3u);
  EXPECT_EQ(base::edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(base::edit_distance("ca", "abc"), 3u);  // swapped letters are not edited again
  EXPECT_EQ(base::edit_distance(std::string(65, 'a'), "a"), 65u);
  const std::string_view words[] = {"red", "green", "blue"};
  EXPECT_EQ(base::nearest("gren", words), "green");
  EXPECT_EQ(base::nearest("yellow", words), "");
  EXPECT_EQ(base::nearest("r", words), "");
  EXPECT_EQ(base::nearest("re", words), "");  // with two letters, one is no evidence
  EXPECT_EQ(base::nearest("rad", words), "red");
  EXPECT_EQ(base::edit_distance("kitten", "sitting", 3), 3u);
  EXPECT_GE(base::edit_distance("kitten", "xxxxxxxxxxxxxxxx", 3), 3u);
  EXPECT_GE(base::edit_distance("abcdef", "uvwxyz", 2), 2u);
  EXPECT_EQ(base::in_quotes("a\x01\xff\x7f"), "'a\\x01\\xff\\x7f'");
  EXPECT_EQ(base::in_quotes(std::string(50, 'a')), "'" + std::string(40, 'a') + "...'");
}

TEST(Duration, IsAtMostADay) {
  const std::pair<const char*, std::int64_t> cases[] = {{"5s", 5'000'000},     {"500ms", 500'000},
                                                        {"2min", 120'000'000}, {"1.5s", 1'500'000},
                                                        {"h", 3'600'000'000},  {"1day", 86'400'000'000}};
  for (const auto& [text, us] : cases) {
    const auto duration = parse_duration(text);
    ASSERT_TRUE(duration) << text;
    EXPECT_EQ(duration->count(), us);
  }
  for (const char* text : {"", "5", "0s", "2day", "week", "5 parsecs", "99999999999999999h", "-1s"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

}  // namespace
}  // namespace weir::algorithm::quota_test
