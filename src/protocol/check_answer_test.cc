// Tests the HTTP responses to checks.
#include "protocol/check_answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace weir::protocol {
namespace {

Limit bucket() {
  Limit limit;
  limit.algorithm = Algorithm::token_bucket;
  limit.permits = 10;
  limit.period_us = 1'000'000;
  limit.capacity = 50;
  limit.weight = 100'000;
  return limit;
}

bool has_retry_after(const HttpAnswer& answer) { return answer.fields.find("Retry-After: ") != std::string::npos; }

HttpAnswer check_answer(const Answer& by_rules, Micros now) {
  HttpAnswer answer;
  write_check(answer, {.by_rules = &by_rules}, {}, now);
  return answer;
}

HttpAnswer check_answer(const Limit& limit, std::int64_t cost, const Decision& decision, Micros now) {
  HttpAnswer answer;
  const LimitAnswer limit_answer = nameless(limit, cost, decision);
  write_check(answer, {.by_limit = &limit_answer}, {}, now);
  return answer;
}

TEST(CheckAnswer, Is200WithTheNumbers) {
  const HttpAnswer answer = check_answer(bucket(), 1, {true, 50, 49, Micros{0}, Micros{100'000}, Micros{0}}, Micros{0});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, "application/json");
  EXPECT_EQ(answer.body,
            "{\"allowed\":true,\"limit\":50,\"remaining\":49,\"reset_after\":0.1,\"retry_after\":0,\"delay\":0}\n");
  EXPECT_EQ(std::ranges::count(answer.fields, '\n'), 5);
}

TEST(CheckAnswer, Is429WithAProblemAndAMessage) {
  const HttpAnswer answer =
      check_answer(bucket(), 2, {false, 50, 1, Micros{11'100'000}, Micros{15'000'000}, Micros{0}}, Micros{0});
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.content_type, "application/problem+json");
  EXPECT_EQ(answer.body,
            "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\"title\":\"Quota exceeded\","
            "\"status\":429,\"detail\":\"The request costs 2 and 1 of 50 remain.\","
            "\"error\":\"Rate limit exceeded\",\"message\":\"Try again in 12 s\","
            "\"violated-policies\":[\"default\"],\"allowed\":false,\"limit\":50,\"remaining\":1,"
            "\"reset_after\":15,\"retry_after\":11.1,\"delay\":0}\n");
  EXPECT_TRUE(has_retry_after(answer));
}

TEST(CheckAnswer, DoesNotCallALimitUsedUpThatCannotBeChecked) {
  const Decision closed{
      .limit = 50, .retry_after = Micros{1'000'000}, .reset_after = Micros{1}, .decided_by = DecidedBy::closed};
  const HttpAnswer answer = check_answer(bucket(), 2, closed, Micros{0});
  EXPECT_EQ(answer.status, 429);
  EXPECT_TRUE(
      answer.body.starts_with("{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\","
                              "\"title\":\"Limit cannot be checked\",\"status\":429,"
                              "\"detail\":\"The limit cannot be checked now; requests are denied until it can be.\","
                              "\"error\":\"Rate limit exceeded\",\"message\":\"Try again in 1 s\","))
      << answer.body;
}

TEST(CheckAnswer, WritesOneSecondInTheSingular) {
  const HttpAnswer answer = check_answer(bucket(), 1, {false, 50, 0, Micros{1}, Micros{1}, Micros{0}}, Micros{0});
  EXPECT_NE(answer.body.find("\"Try again in 1 s\""), std::string::npos) << answer.body;
}

TEST(CheckAnswer, SaysWhyARequestCanNeverPass) {
  const HttpAnswer answer = check_answer(bucket(), 60, {false, 50, 50, kNever, Micros{0}, Micros{0}}, Micros{0});
  EXPECT_NE(answer.body.find("\"retry_after\":null"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find("\"message\":\"This request can never be allowed: it costs 60, and the limit is 50\""),
            std::string::npos)
      << answer.body;
  EXPECT_FALSE(has_retry_after(answer));
  const HttpAnswer zero = check_answer(bucket(), 1, {false, 0, 0, kNever, Micros{0}, Micros{0}}, Micros{0});
  EXPECT_NE(zero.body.find("the limit is 0, which denies everything"), std::string::npos) << zero.body;
}

TEST(CheckAnswer, NamesTheBoundOfALogThatMayBeFullOfEvents) {
  const Decision crowded{false, 100'000'000, 0, Micros{5'000'000}, Micros{60'000'000}, Micros{0}};
  Limit log;
  log.algorithm = Algorithm::sliding_log;
  log.permits = log.capacity = 100'000'000;
  log.period_us = 86'400'000'000;
  const std::string bound = "A sliding_log stores at most 65536 events, and is also full when it has that many.";
  EXPECT_NE(check_answer(log, 1, crowded, Micros{0}).body.find(bound), std::string::npos);
  const Decision some_left{false, 100'000'000, 1, Micros{5'000'000}, Micros{60'000'000}, Micros{0}};
  EXPECT_EQ(check_answer(log, 2, some_left, Micros{0}).body.find("events"), std::string::npos);
  log.permits = log.capacity = 65'536;
  EXPECT_EQ(check_answer(log, 1, {false, 65'536, 0, Micros{1}, Micros{1}, Micros{0}}, Micros{0}).body.find("events"),
            std::string::npos);
  EXPECT_EQ(check_answer(bucket(), 1, crowded, Micros{0}).body.find("events"), std::string::npos);
}

TEST(CheckAnswer, ReportsTheDelayOfAQueue) {
  const HttpAnswer answer =
      check_answer(bucket(), 1, {true, 50, 40, Micros{0}, Micros{1'000'000}, Micros{900'000}}, Micros{0});
  EXPECT_NE(answer.body.find("\"delay\":0.9}"), std::string::npos) << answer.body;
}

// Two limits of one rule, of which the second denies, and the answer of the rules.
struct ByRules {
  Limit second = compile_window(10, 1'000'000), minute = compile_window(100, 60'000'000);
  Answer answer;

  static Limit compile_window(std::int64_t permits, std::int64_t period_us) {
    Limit limit;
    limit.algorithm = Algorithm::fixed_window;
    limit.permits = limit.capacity = permits;
    limit.period_us = period_us;
    return limit;
  }
  ByRules() {
    answer.why = Why::limited;
    answer.rule = "steps";
    answer.limits.push_back(
        {"steps: 10/second", "steps", "10/second", &second, 1, {true, 10, 9, Micros{0}, Micros{5}, {}}});
    answer.limits.push_back({"steps: 100/minute",
                             "steps",
                             "100/minute",
                             &minute,
                             1,
                             {false, 100, 0, Micros{7'000'000}, Micros{7'000'000}, {}}});
    answer.binding = 1;
    answer.retry_after = Micros{8'000'000};  // with some jitter
  }
};

TEST(CheckAnswer, NamesTheRuleAndTheLimitOfADenial) {
  const ByRules by;
  const HttpAnswer answer = check_answer(by.answer, Micros{0});
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.body,
            "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\"title\":\"Quota exceeded\","
            "\"status\":429,\"detail\":\"steps: 100/minute: The request costs 1 and 0 of 100 remain.\","
            "\"error\":\"Rate limit exceeded\",\"message\":\"Try again in 8 s\","
            "\"violated-policies\":[\"steps: 100/minute\"],\"allowed\":false,\"limit\":100,\"remaining\":0,"
            "\"reset_after\":7,\"retry_after\":8,\"delay\":0,\"rule\":\"steps\",\"limit_text\":\"100/minute\","
            "\"reason\":\"limited\",\"limits\":[{\"rule\":\"steps\",\"limit_text\":\"100/"
            "minute\",\"allowed\":false,\"limit\":100,"
            "\"remaining\":0,\"reset_after\":7,\"retry_after\":7,\"delay\":0}]}\n");
  EXPECT_EQ(answer.fields,
            "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 7\r\n"
            "RateLimit-Policy: \"steps: 100/minute\";q=100;w=60\r\n"
            "RateLimit: \"steps: 100/minute\";r=0;t=8\r\nRetry-After: 8\r\n");
}

TEST(CheckAnswer, NamesAllLimitsWhereTheConfigSaysSo) {
  ByRules by;
  by.answer.limits[0].decision.allowed = false;
  HttpAnswer answer;
  write_check(answer, {.by_rules = &by.answer}, {.limits = ShownLimits::all}, Micros{0});
  EXPECT_NE(answer.body.find("\"violated-policies\":[\"steps: 10/second\",\"steps: 100/minute\"]"), std::string::npos);
  EXPECT_NE(answer.body.find(
                "\"limits\":[{\"rule\":\"steps\",\"limit_text\":\"10/second\",\"allowed\":false,\"limit\":10,"
                "\"remaining\":9,\"reset_after\":0.000005,\"retry_after\":0,\"delay\":0},{\"rule\":\"steps\","
                "\"limit_text\":\"100/minute\",\"allowed\":false,\"limit\":100,\"remaining\":0,\"reset_after\":7,"
                "\"retry_after\":7,\"delay\":0}]}\n"),
            std::string::npos)
      << answer.body;
  EXPECT_NE(answer.fields.find("RateLimit-Policy: \"steps: 10/second\";q=10;w=1, \"steps: 100/minute\";q=100;w=60\r\n"),
            std::string::npos);
}

// A denial names no other limit, whether that denies too or is nearly used up.
TEST(CheckAnswer, NamesNoOtherRuleInADenial) {
  ByRules by;
  by.answer.limits[0].name = "secret-global: 10/second";
  by.answer.limits[0].rule = "secret-global";
  for (const bool also_denies : {false, true}) {
    by.answer.limits[0].decision.allowed = !also_denies;
    const HttpAnswer answer = check_answer(by.answer, Micros{0});
    EXPECT_EQ(answer.body.find("secret"), std::string::npos) << answer.body;
    EXPECT_EQ(answer.fields.find("secret"), std::string::npos) << answer.fields;
  }
}

// Only the caller reads the body, but proxies pass the header fields on.
TEST(CheckAnswer, ListsAllLimitsOfAnAllowedRequestInTheBodyOnly) {
  ByRules by;
  by.answer.allowed = by.answer.limits[1].decision.allowed = true;
  const HttpAnswer answer = check_answer(by.answer, Micros{0});
  EXPECT_NE(answer.body.find("10/second"), std::string::npos) << answer.body;
  EXPECT_EQ(answer.fields.find("10/second"), std::string::npos) << answer.fields;
}

TEST(CheckAnswer, SaysWhyNoLimitApplies) {
  Answer answer;
  answer.allowed = true;
  answer.why = Why::skipped;
  EXPECT_EQ(check_answer(answer, Micros{0}).body, "{\"allowed\":true,\"reason\":\"skipped\",\"limits\":[]}\n");
  EXPECT_TRUE(check_answer(answer, Micros{0}).fields.empty());
  answer.why = Why::exempt;
  answer.rule = "office";
  EXPECT_EQ(check_answer(answer, Micros{0}).body,
            "{\"allowed\":true,\"rule\":\"office\",\"reason\":\"exempt\",\"limits\":[]}\n");
}

TEST(CheckAnswer, DeniesWithTheStatusThatAProxyUnderstands) {
  const ByRules by;
  HttpAnswer answer;
  write_check(answer, {.by_rules = &by.answer}, {}, Micros{0}, 403);
  EXPECT_EQ(answer.status, 403);
  EXPECT_NE(answer.body.find("\"status\":403,"), std::string::npos) << answer.body;
}

TEST(CheckAnswer, CarriesAnId) {
  HttpAnswer answer;
  const Limit limit = bucket();
  const LimitAnswer limit_answer = nameless(limit, 1, {true, 50, 49, Micros{0}, Micros{0}, Micros{0}});
  write_check(answer, {.by_limit = &limit_answer, .id_name = "reservation", .id = "a\"b"}, {}, Micros{0});
  EXPECT_TRUE(answer.body.ends_with(",\"delay\":0,\"reservation\":\"a\\\"b\"}\n")) << answer.body;
}

TEST(CheckAnswer, NamesTheAttributeThatIsMissing) {
  Answer answer;
  answer.why = Why::missing;
  answer.rule = "tenants";
  answer.missing = "tenant";
  answer.retry_after = kNever;
  const HttpAnswer denied = check_answer(answer, Micros{0});
  EXPECT_EQ(denied.status, 429);
  EXPECT_NE(denied.body.find("Rule tenants requires \\\"tenant\\\", which this request lacks."), std::string::npos)
      << denied.body;
  EXPECT_NE(denied.body.find("\"reason\":\"missing\""), std::string::npos);
}

}  // namespace
}  // namespace weir::protocol
