// Tests header fields in every dialect, for every kind of limit.
#include "protocol/headers.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "protocol/seconds.h"

namespace weir::protocol {
namespace {

Limit bucket(std::int64_t capacity, std::int64_t rate, std::int64_t weight) {
  Limit limit;
  limit.algorithm = Algorithm::token_bucket;
  limit.capacity = capacity;
  limit.rate = rate;
  limit.weight = weight;
  return limit;
}

Limit window(std::int64_t permits, std::int64_t period_us) {
  Limit limit;
  limit.algorithm = Algorithm::sliding_window;
  limit.permits = limit.capacity = permits;
  limit.period_us = period_us;
  return limit;
}

const Micros kNow{1'794'747'404'000'001};

// Writes a limit without a name in the default style, as header lines.
std::string lines(const Limit& limit, const Decision& decision) {
  const LimitAnswer alone{kPolicyName, {}, {}, &limit, 1, decision};
  std::string out;
  append_rate_limit_fields(out, {{&alone, 1}, 0, decision.retry_after}, {}, kNow);
  return out;
}

// Returns the value of a field among header lines.
std::string field(std::string_view rest, std::string_view name) {
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    if (line.starts_with(std::string(name) + ": ")) return std::string(line.substr(name.size() + 2));
    rest.remove_prefix(line.size() + 2);
  }
  return "absent";
}

std::string policy_of(const Limit& limit) { return field(lines(limit, {}), "RateLimit-Policy"); }

TEST(Headers, SayInEveryDialectHowManyPermitsRemain) {
  const Decision decision{true, 50, 49, Micros{0}, Micros{100'000}, Micros{0}};
  const auto headers = lines(bucket(50, 1, 100'000), decision);
  EXPECT_EQ(field(headers, "X-RateLimit-Limit"), "50");
  EXPECT_EQ(field(headers, "X-RateLimit-Remaining"), "49");
  EXPECT_EQ(field(headers, "X-RateLimit-Reset"), "1794747405");
  EXPECT_EQ(field(headers, "RateLimit-Policy"), "\"default\";q=50;w=5");
  EXPECT_EQ(field(headers, "RateLimit"), "\"default\";r=49;t=1");
  EXPECT_EQ(field(headers, "Retry-After"), "absent");
}

TEST(Headers, SayOnADenialWhenToRetry) {
  const Decision decision{false, 100, 0, Micros{11'000'001}, Micros{60'000'000}, Micros{0}};
  const auto headers = lines(window(100, 60'000'000), decision);
  EXPECT_EQ(field(headers, "Retry-After"), "12");
  EXPECT_EQ(field(headers, "RateLimit"), "\"default\";r=0;t=12");  // Retry-After may not be earlier than t
  EXPECT_EQ(field(headers, "RateLimit-Policy"), "\"default\";q=100;w=60");
  EXPECT_EQ(field(headers, "X-RateLimit-Reset"), "1794747465");
}

TEST(Headers, NeverSayZeroSecondsOnADenial) {
  const Decision decision{false, 1, 0, Micros{1}, Micros{1}, Micros{0}};
  EXPECT_EQ(field(lines(window(1, 1'000), decision), "Retry-After"), "1");
}

TEST(Headers, HaveNoRetryAfterForWhatCanNeverPass) {
  const Decision decision{false, 50, 49, kNever, Micros{100'000}, Micros{0}};
  const auto headers = lines(bucket(50, 1, 100'000), decision);
  EXPECT_EQ(field(headers, "Retry-After"), "absent");
  EXPECT_EQ(field(headers, "RateLimit"), "\"default\";r=49") << "waiting does not help";
  EXPECT_EQ(field(headers, "X-RateLimit-Reset"), "1794747405") << "but the key has something to reset";
}

TEST(Headers, PromiseNothingWhereThereIsNothingToReset) {
  const auto untouched = lines(window(50, 60'000'000), {false, 50, 50, kNever, Micros{0}, Micros{0}});
  EXPECT_EQ(field(untouched, "RateLimit"), "\"default\";r=50");
  EXPECT_EQ(field(untouched, "X-RateLimit-Reset"), "absent");
  const Decision denied{false, 0, 0, kNever, Micros{0}, Micros{0}}, peeked{true, 0, 0, Micros{0}, Micros{0}, Micros{0}};
  for (const Decision& zero : {denied, peeked}) {
    const auto headers = lines(window(0, 60'000'000), zero);
    EXPECT_EQ(field(headers, "RateLimit"), "\"default\";r=0");
    EXPECT_EQ(field(headers, "X-RateLimit-Reset"), "absent");
    EXPECT_EQ(field(headers, "X-RateLimit-Limit"), "0");
  }
  const auto full = lines(window(50, 60'000'000), {true, 50, 50, Micros{0}, Micros{0}, Micros{0}});
  EXPECT_EQ(field(full, "RateLimit"), "\"default\";r=50");
  EXPECT_EQ(field(full, "X-RateLimit-Reset"), "1794747405") << "clients of this dialect expect it always";
}

// Writes two limits in one style, as header lines.
std::string lines(RateLimitFields fields, bool x_ratelimit, bool retry_after, const Decision& second,
                  ShownLimits shown = ShownLimits::all) {
  const Limit minute = window(100, 60'000'000), hour = window(1000, 3'600'000'000);
  const LimitAnswer limits[] = {{"a: 100/minute", "a", "100/minute", &minute, 1, {true, 100, 90, {}, Micros{9}, {}}},
                                {"a: 1000/hour", "a", "1000/hour", &hour, 1, second}};
  std::string out;
  append_rate_limit_fields(
      out, {limits, 1, second.retry_after},
      {.x_ratelimit = x_ratelimit, .rate_limit = fields, .retry_after = retry_after, .limits = shown}, kNow);
  return out;
}

TEST(Headers, HaveEachFormOfTheDraft) {
  const Decision left{true, 1000, 50, Micros{0}, Micros{4'000'001}, Micros{0}};
  EXPECT_EQ(lines(RateLimitFields::draft_03, false, true, left),
            "RateLimit-Limit: 1000, 100;w=60, 1000;w=3600\r\nRateLimit-Remaining: 50\r\nRateLimit-Reset: 5\r\n");
  EXPECT_EQ(lines(RateLimitFields::draft_06, false, true, left),
            "RateLimit-Limit: 1000\r\nRateLimit-Remaining: 50\r\nRateLimit-Reset: 5\r\n"
            "RateLimit-Policy: 100;w=60, 1000;w=3600\r\n");
  EXPECT_EQ(lines(RateLimitFields::draft_07, false, true, left),
            "RateLimit-Policy: 100;w=60, 1000;w=3600\r\nRateLimit: limit=1000, remaining=50, reset=5\r\n");
  EXPECT_EQ(lines(RateLimitFields::draft_11, false, true, left),
            "RateLimit-Policy: \"a: 100/minute\";q=100;w=60, \"a: 1000/hour\";q=1000;w=3600\r\n"
            "RateLimit: \"a: 1000/hour\";r=50;t=5\r\n");
  EXPECT_EQ(lines(RateLimitFields::none, true, true, left),
            "X-RateLimit-Limit: 1000\r\nX-RateLimit-Remaining: 50\r\nX-RateLimit-Reset: 1794747409\r\n");
  EXPECT_EQ(lines(RateLimitFields::none, false, true, left), "");
}

TEST(Headers, NameTheLimitThatBindsAndNoOtherByDefault) {
  const Decision left{true, 1000, 50, Micros{0}, Micros{4'000'001}, Micros{0}};
  const auto shown = [&](RateLimitFields fields) { return lines(fields, false, true, left, AnswerStyle{}.limits); };
  EXPECT_EQ(shown(RateLimitFields::draft_03),
            "RateLimit-Limit: 1000, 1000;w=3600\r\nRateLimit-Remaining: 50\r\nRateLimit-Reset: 5\r\n");
  EXPECT_EQ(shown(RateLimitFields::draft_06),
            "RateLimit-Limit: 1000\r\nRateLimit-Remaining: 50\r\nRateLimit-Reset: 5\r\n"
            "RateLimit-Policy: 1000;w=3600\r\n");
  EXPECT_EQ(shown(RateLimitFields::draft_07),
            "RateLimit-Policy: 1000;w=3600\r\nRateLimit: limit=1000, remaining=50, reset=5\r\n");
  EXPECT_EQ(shown(RateLimitFields::draft_11),
            "RateLimit-Policy: \"a: 1000/hour\";q=1000;w=3600\r\nRateLimit: \"a: 1000/hour\";r=50;t=5\r\n");
}

TEST(Headers, SendRetryAfterUnlessTheStyleHasNone) {
  const Decision denied{false, 1000, 0, Micros{1'500'000}, Micros{9'000'000}, Micros{0}};
  EXPECT_EQ(lines(RateLimitFields::none, false, true, denied), "Retry-After: 2\r\n");
  EXPECT_EQ(lines(RateLimitFields::none, false, false, denied), "");
  EXPECT_EQ(lines(RateLimitFields::draft_07, false, false, denied).substr(41),
            "RateLimit: limit=1000, remaining=0, reset=2\r\n");
}

TEST(Headers, DescribeThePolicyOfEachKindOfLimit) {
  EXPECT_EQ(policy_of(window(5, 1'000)), "\"default\";q=5;w=1");
  EXPECT_EQ(policy_of(window(5, 1'000'001)), "\"default\";q=5;w=2");
  EXPECT_EQ(policy_of(bucket(10, 3, 1'000'000)), "\"default\";q=10;w=4");
  EXPECT_EQ(policy_of(bucket(0, 1, 1'000'000)), "\"default\";q=0;w=1");
  Limit concurrent = window(20, 60'000'000);
  concurrent.algorithm = Algorithm::concurrency;
  EXPECT_EQ(policy_of(concurrent), "\"default\";q=20;qu=\"concurrent-requests\"");
}

TEST(Seconds, AreRoundedUp) {
  EXPECT_EQ(seconds_ceil(Micros{0}), 0);
  EXPECT_EQ(seconds_ceil(Micros{1}), 1);
  EXPECT_EQ(seconds_ceil(Micros{1'000'000}), 1);
  EXPECT_EQ(seconds_ceil(Micros{1'000'001}), 2);
}

TEST(Seconds, AreWrittenForPeople) {
  const std::pair<double, const char*> texts[] = {{0, "0 s"},           {-1, "0 s"},
                                                  {0.000001, "1 ms"},   {0.25, "250 ms"},
                                                  {0.9991, "1 s"},      {7.5, "7.5 s"},
                                                  {9.900001, "10 s"},   {34, "34 s"},
                                                  {34.296544, "35 s"},  {59.000001, "1 min"},
                                                  {90, "1 min 30 s"},   {3'599, "59 min 59 s"},
                                                  {3'600, "1 h"},       {22'320, "6 h 12 min"},
                                                  {86'399, "1 d"},      {273'600, "3 d 4 h"},
                                                  {31'536'000, "365 d"}};
  for (const auto& [seconds, text] : texts) EXPECT_EQ(wait_text(seconds), text) << seconds;
  EXPECT_EQ(wait_text(Micros{34'000'001}), "35 s");
  EXPECT_EQ(wait_text(Micros{INT64_MAX}).substr(0, 9), "106751991");
  EXPECT_EQ(wait_text(1e300), "11574074 d 2 h");
}

}  // namespace
}  // namespace weir::protocol
