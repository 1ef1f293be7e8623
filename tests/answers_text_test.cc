// The key `answers` of a config, which sets the headers and the status of answers. Every value is read, printed and
// described. Every bound is exact. A value that proxies would misread is refused, with the reason.
#include <gtest/gtest.h>

#include <string>

#include "weir/policy.h"

namespace weir {
namespace {

const std::string kBan = "rules: [{name: a, limit: 0/s}]\n";

AnswerStyle read(const std::string& answers) {
  const auto policy = parse_policy("answers: " + answers + '\n' + kBan, "w");
  EXPECT_TRUE(policy) << answers << '\n' << policy.error().message;
  return policy ? policy->answers : AnswerStyle{};
}

std::string said_of(const std::string& answers) {
  const auto policy = parse_policy("answers: " + answers + '\n' + kBan, "w");
  return policy ? "" : policy.error().message;
}

TEST(AnswersText, IsNotNeeded) {
  const auto policy = parse_policy(kBan, "w");
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->answers, AnswerStyle{});
  EXPECT_EQ(read("{}"), AnswerStyle{});
  EXPECT_EQ(read("{headers: [x-ratelimit, draft-11, retry-after], deny_status: 429, hold_max: 5s}"), AnswerStyle{});
  EXPECT_EQ(to_yaml(*policy).find("answers"), std::string::npos);
}

TEST(AnswersText, NamesTheHeadersThatAreSent) {
  const AnswerStyle none = read("{headers: []}");
  EXPECT_FALSE(none.x_ratelimit);
  EXPECT_FALSE(none.retry_after);
  EXPECT_EQ(none.rate_limit, RateLimitFields::none);
  EXPECT_EQ(read("{headers: [draft-03]}").rate_limit, RateLimitFields::draft_03);
  EXPECT_EQ(read("{headers: [draft-06]}").rate_limit, RateLimitFields::draft_06);
  EXPECT_EQ(read("{headers: [draft-07]}").rate_limit, RateLimitFields::draft_07);
  EXPECT_EQ(read("{headers: [draft-11]}").rate_limit, RateLimitFields::draft_11);
  const AnswerStyle one = read("{headers: retry-after}");
  EXPECT_TRUE(one.retry_after);
  EXPECT_FALSE(one.x_ratelimit);
  EXPECT_TRUE(read("{headers: [x-ratelimit]}").x_ratelimit);
}

TEST(AnswersText, HoldsStatusAndTimeWithinTheirBounds) {
  EXPECT_EQ(read("{deny_status: 400}").deny_status, 400);
  EXPECT_EQ(read("{deny_status: 499}").deny_status, 499);
  EXPECT_EQ(read("{hold_max: 0s}").hold_max, Micros{0});
  EXPECT_EQ(read("{hold_max: 0}").hold_max, Micros{0});
  EXPECT_EQ(read("{hold_max: 1min}").hold_max, Micros{60'000'000});
  EXPECT_EQ(read("{hold_max: 250ms}").hold_max, Micros{250'000});
}

TEST(AnswersText, SaysWhichLimitsAreNamed) {
  EXPECT_EQ(read("{}").limits, ShownLimits::binding);
  EXPECT_EQ(read("{limits: binding}").limits, ShownLimits::binding);
  EXPECT_EQ(read("{limits: all}").limits, ShownLimits::all);
  const auto policy = parse_policy("answers: {limits: all}\n" + kBan, "w");
  EXPECT_NE(to_yaml(*policy).find("limits: all"), std::string::npos) << to_yaml(*policy);
  for (const char* wrong : {"none", "[all]", "~"}) {
    const std::string said = said_of("{limits: " + std::string(wrong) + "}");
    EXPECT_TRUE(said.starts_with("w:1:19: `limits` must be binding, which names the limit that denies, or all, found "))
        << said;
  }
}

TEST(AnswersText, SaysWhatIsWrong) {
  const std::string status =
      "`deny_status` must be a status from 400 to 499 (proxies take 5xx for a failure, and 2xx for a pass), found ";
  const std::string hold = "`hold_max` must be a duration from 0s (never delay) to 60s, found ";
  const std::pair<std::string, std::string> cases[] = {
      {"[]",
       "w:1:10: `answers` must be a map such as {headers: [x-ratelimit, retry-after], deny_status: 403}, found an "
       "empty list"},
      {"{header: []}", "w:1:11: unknown key `header`, did you mean `headers`?"},
      {"{headers: [draft-3]}", "w:1:21: `headers`: unknown form 'draft-3', did you mean draft-03?"},
      {"{headers: [no]}",
       "w:1:21: `headers`: unknown form 'no'; known are x-ratelimit, draft-03, draft-06, draft-07, draft-11 and "
       "retry-after; [] sends none"},
      {"{headers: [draft-03, draft-11]}", "w:1:31: `headers`: send only one draft of RateLimit, draft-03 or draft-11"},
      {"{headers: [retry-after, retry-after]}", "w:1:34: `headers` names 'retry-after' twice"},
      {"{headers: ~}",
       "w:1:20: `headers` must be a list of header forms such as [x-ratelimit, draft-11, retry-after], or [], found "
       "nothing"},
      {"{deny_status: 503}", "w:1:24: " + status + "'503'"},
      {"{deny_status: 200}", "w:1:24: " + status + "'200'"},
      {"{deny_status: 399}", "w:1:24: " + status + "'399'"},
      {"{deny_status: 500}", "w:1:24: " + status + "'500'"},
      {"{deny_status: 4x}", "w:1:24: " + status + "'4x'"},
      {"{hold_max: 61s}", "w:1:21: " + hold + "'61s'"},
      {"{hold_max: -1s}", "w:1:21: " + hold + "'-1s'"},
      {"{hold_max: 5}", "w:1:21: " + hold + "'5'"},
      {"{hold_max: []}", "w:1:21: " + hold + "an empty list"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(said_of(text), message) << text;
}

TEST(AnswersText, PrintsWhatParsesToTheSame) {
  for (const bool x_ratelimit : {false, true}) {
    for (const bool retry_after : {false, true}) {
      for (int form = 0; form < 5; ++form) {
        for (const std::int64_t hold : {0, 1, 1'000'000, 5'000'000, 60'000'000}) {
          auto policy = parse_policy(kBan, "w").value();
          policy.answers = {.x_ratelimit = x_ratelimit,
                            .rate_limit = static_cast<RateLimitFields>(form),
                            .retry_after = retry_after,
                            .deny_status = 429 - form,
                            .hold_max = Micros{hold}};
          const auto again = parse_policy(to_yaml(policy), "w");
          ASSERT_TRUE(again) << again.error().message;
          EXPECT_EQ(*again, policy) << to_yaml(policy);
        }
      }
    }
  }
}

TEST(AnswersText, IsInTheSchema) {
  const std::string schema = policy_schema();
  for (const char* part : {"\"answers\"", "\"deny_status\"", "\"hold_max\"", "\"draft-07\"", "#/$defs/answers"}) {
    EXPECT_NE(schema.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace weir
