// Tests the rate limit service with Envoy's files: statuses and charges equal those of the reference service, except
// that a denied request charges nothing.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "rls_fixture.h"

namespace weir::test {
namespace {

constexpr std::uint32_t kEndless = 0xffffffffU;

class RlsEnvoyTest : public RlsTest {
 protected:
  void SetUp() override { service.envoy = &envoy; }

  void use_files(const std::string& descriptors, Algorithm algorithm = Algorithm::fixed_window,
                 bool counts_denied = false) {
    const auto config =
        envoy::parse_envoy(std::vector<envoy::EnvoyFile>{{"f", "domain: edge\ndescriptors:\n" + descriptors}});
    ASSERT_TRUE(config.has_value()) << config.error().message;
    envoy.put(envoy::EnvoyRules::compile(*config, algorithm).value(), counts_denied);
  }
  protocol::RlsStatus ask(const Pairs& entries) {
    const protocol::RlsResponse& response = decide({entries});
    EXPECT_EQ(response.overall_code, response.statuses[0].code);
    return response.statuses[0];
  }
  std::uint64_t hits(std::string_view descriptor, envoy::EnvoyResult result) {
    return envoy.tally()
        .counts("edge", descriptor, envoy::EnvoyTally::Name::of_file)
        .hits[static_cast<std::size_t>(result)];
  }

  envoy::EnvoyInForce envoy;
};

std::string per_minute(int n, const std::string& more = "") {
  return "rate_limit: {unit: minute, requests_per_unit: " + std::to_string(n) + more + "}";
}

TEST_F(RlsEnvoyTest, AnswersAsTheReferenceServiceDoes) {
  use_files("- {key: user, " + per_minute(2, ", name: users") + "}");
  go_on(Micros{12'345'678});
  for (const std::uint32_t left : {1U, 0U}) {
    const protocol::RlsStatus status = ask({{"user", "u"}});
    EXPECT_EQ(status.code, kOk);
    EXPECT_EQ(status.limit_remaining, left);
    EXPECT_EQ(status.current_limit->requests_per_unit, 2U);
    EXPECT_EQ(status.current_limit->unit, protocol::RlsUnit::minute);
    EXPECT_EQ(status.current_limit->name, "users");
    EXPECT_EQ(status.seconds_until_reset, 48);
  }
  const protocol::RlsStatus over = ask({{"user", "u"}});
  EXPECT_EQ(over.code, kOver);
  EXPECT_EQ(over.limit_remaining, 0U);
  EXPECT_EQ(over.current_limit->name, "users");
  EXPECT_EQ(over.seconds_until_reset, 48);
  EXPECT_EQ(ask({{"user", "v"}}).code, kOk) << "another value";
  go_on(Micros{48'000'000});
  EXPECT_EQ(ask({{"user", "u"}}).limit_remaining, 1U) << "the next window";
}

TEST_F(RlsEnvoyTest, AllowsDescriptorsWithoutALimit) {
  use_files("- {key: user, " + per_minute(0) + "}");
  for (const Pairs& entries : {Pairs{{"other", "u"}}, Pairs{{"user", "u"}, {"more", "x"}}}) {
    const protocol::RlsStatus status = ask(entries);
    EXPECT_EQ(status.code, kOk);
    EXPECT_FALSE(status.current_limit);
    EXPECT_FALSE(status.seconds_until_reset);
    EXPECT_EQ(status.limit_remaining, 0U);
  }
  begin("elsewhere");
  add({{"user", "u"}});
  EXPECT_EQ(decide().overall_code, kOk);
  EXPECT_EQ(envoy.unknown_domains, 1U);
  EXPECT_EQ(ask({{"user", "u"}}).code, kOver) << "nothing per minute is always over";
}

TEST_F(RlsEnvoyTest, ChargesNothingIfItIsDenied) {
  use_files("- {key: a, " + per_minute(10) + "}\n- {key: b, " + per_minute(1) + "}");
  for (const protocol::RlsCode code : {kOk, kOver, kOver}) {
    const protocol::RlsResponse& response = decide({Pairs{{"a", "1"}}, Pairs{{"b", "1"}}});
    EXPECT_EQ(response.overall_code, code);
    EXPECT_EQ(response.statuses[0].code, kOk);
    EXPECT_EQ(response.statuses[1].code, code);
  }
  EXPECT_EQ(ask({{"a", "1"}}).limit_remaining, 8U);
}

TEST_F(RlsEnvoyTest, LeavesUnlimitedDescriptorsAlone) {
  use_files("- {key: a, rate_limit: {unlimited: true}}");
  const protocol::RlsStatus status = ask({{"a", "1"}});
  EXPECT_EQ(status.code, kOk);
  EXPECT_EQ(status.limit_remaining, kEndless);
  EXPECT_FALSE(status.current_limit);
}

TEST_F(RlsEnvoyTest, DropsALimitThatAnotherReplaces) {
  use_files("- {key: all, " + per_minute(1, ", name: all") + "}\n- {key: vip, " +
            per_minute(3, ", name: vip, replaces: [{name: all}]") +
            "}\n- {key: free, rate_limit: {unlimited: true, replaces: [{name: all}]}}");
  for (const protocol::RlsCode code : {kOk, kOk, kOk, kOver}) {
    const protocol::RlsResponse& response = decide({Pairs{{"all", "1"}}, Pairs{{"vip", "1"}}});
    EXPECT_EQ(response.overall_code, code);
    EXPECT_FALSE(response.statuses[0].current_limit);
    EXPECT_EQ(response.statuses[0].code, kOk);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(decide({Pairs{{"free", "1"}}, Pairs{{"all", "1"}}}).overall_code, kOk);
  }
  EXPECT_EQ(ask({{"all", "1"}}).code, kOk) << "it was not charged";
  EXPECT_EQ(ask({{"all", "1"}}).code, kOver);
}

TEST_F(RlsEnvoyTest, CountsInShadowAndSaysOk) {
  use_files("- {key: a, shadow_mode: true, " + per_minute(1) + "}");
  EXPECT_EQ(ask({{"a", "1"}}).limit_remaining, 0U);
  for (int i = 0; i < 2; ++i) {
    const protocol::RlsStatus status = ask({{"a", "1"}});
    EXPECT_EQ(status.code, kOk);
    EXPECT_EQ(status.limit_remaining, 0U);
    EXPECT_EQ(status.current_limit->requests_per_unit, 1U);
    EXPECT_TRUE(status.seconds_until_reset);
  }
  EXPECT_EQ(hits("a", envoy::EnvoyResult::shadow_mode), 2U);
  EXPECT_EQ(hits("a", envoy::EnvoyResult::over_limit), 0U);
  begin();
  add({{"a", "1"}});
  EXPECT_TRUE(decide().response_headers.empty()) << "a shadow limit is not shown to the client";
}

TEST_F(RlsEnvoyTest, AllowsARequestWhileOneQuotaHasPermits) {
  use_files("- {key: a, quota_mode: true, " + per_minute(1) + "}\n- {key: b, quota_mode: true, " + per_minute(3) +
            "}\n- {key: c, " + per_minute(5) + "}");
  for (int i = 0; i < 4; ++i) {
    const protocol::RlsResponse& response = decide({Pairs{{"a", "1"}}, Pairs{{"b", "1"}}, Pairs{{"c", "1"}}});
    EXPECT_EQ(response.overall_code, i < 3 ? kOk : kOver) << i;
    EXPECT_EQ(response.statuses[0].code, i < 1 ? kOk : kOver) << i;
    EXPECT_EQ(response.statuses[1].code, i < 3 ? kOk : kOver) << i;
    EXPECT_EQ(response.statuses[2].code, kOk) << i;
    EXPECT_EQ(response.statuses[2].limit_remaining, i < 3 ? 4U - static_cast<unsigned>(i) : 2U) << i;
  }
  EXPECT_EQ(ask({{"a", "1"}}).code, kOver) << "alone, a quota is a limit";
}

TEST_F(RlsEnvoyTest, DeniesByALimitWhateverPermitsQuotasHave) {
  use_files("- {key: a, quota_mode: true, " + per_minute(9) + "}\n- {key: c, " + per_minute(1) + "}");
  for (const protocol::RlsCode code : {kOk, kOver}) {
    EXPECT_EQ(decide({Pairs{{"a", "1"}}, Pairs{{"c", "1"}}}).overall_code, code);
  }
  EXPECT_EQ(ask({{"a", "1"}}).limit_remaining, 7U);
}

TEST_F(RlsEnvoyTest, NeverCountsAShadowQuotaAsUsedUp) {
  use_files("- {key: a, quota_mode: true, " + per_minute(1) + "}\n- {key: b, quota_mode: true, shadow_mode: true, " +
            per_minute(0) + "}");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(decide({Pairs{{"a", "1"}}, Pairs{{"b", "1"}}}).overall_code, kOk);
  }
}

TEST_F(RlsEnvoyTest, ChargesOneKeyForEveryDescriptorThatSharesIt) {
  use_files("- {key: a, value: 'x*', share_threshold: true, " + per_minute(3) + "}");
  const protocol::RlsResponse* response = &decide({Pairs{{"a", "x1"}}, Pairs{{"a", "x2"}}});
  EXPECT_EQ(response->statuses[0].limit_remaining, 2U);
  EXPECT_EQ(response->statuses[1].limit_remaining, 1U);
  response = &decide();
  EXPECT_EQ(response->overall_code, kOver);
  EXPECT_EQ(response->statuses[0].code, kOk);
  EXPECT_EQ(response->statuses[1].code, kOver);
  EXPECT_EQ(ask({{"a", "x3"}}).limit_remaining, 0U) << "only what passed was charged";
}

TEST_F(RlsEnvoyTest, OnlyQueriesIfThereAreNoHits) {
  use_files("- {key: a, " + per_minute(2) + "}");
  for (int i = 0; i < 3; ++i) {
    begin();
    add({{"a", "1"}}).hits_addend = 0;
    EXPECT_EQ(decide().statuses[0].limit_remaining, 2U);
  }
  begin();
  add({{"a", "1"}});
  request.hits_addend = 2;
  EXPECT_EQ(decide().overall_code, kOk);
  begin();
  add({{"a", "1"}}).hits_addend = 0;
  EXPECT_EQ(decide().overall_code, kOver);
}

TEST_F(RlsEnvoyTest, AppliesTheLimitOfADescriptorOnlyInKnownDomains) {
  use_files("- {key: a, shadow_mode: true, " + per_minute(0) + "}");
  for (const protocol::RlsCode code : {kOk, kOver}) {
    begin();
    add({{"a", "1"}}).limit = protocol::RlsOverride{1, protocol::RlsUnit::hour};
    const protocol::RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, code);
    EXPECT_EQ(response.statuses[0].current_limit->unit, protocol::RlsUnit::hour);
    EXPECT_EQ(response.statuses[0].seconds_until_reset, 3'600);
  }
  begin("elsewhere");
  add({{"a", "1"}}).limit = protocol::RlsOverride{0, protocol::RlsUnit::hour};
  EXPECT_EQ(decide().overall_code, kOk);
}

TEST_F(RlsEnvoyTest, AppliesRulesAndFilesTogether) {
  use_rules("  - {name: users, per: user, limit: 2/minute}\n  - {name: ban, match: {user: bad}, limit: 0/second}");
  use_files("- {key: user, " + per_minute(5) + "}");
  EXPECT_EQ(ask({{"user", "u"}}).current_limit->name, "users: 2/minute") << "the tighter one";
  EXPECT_EQ(ask({{"user", "u"}}).code, kOk);
  EXPECT_EQ(ask({{"user", "u"}}).code, kOver);
  EXPECT_EQ(ask({{"user", "bad"}}).code, kOver);
  rules = nullptr;
  EXPECT_EQ(ask({{"user", "u"}}).limit_remaining, 2U) << "a request that the rules denied was not charged";
  EXPECT_EQ(ask({{"user", "bad"}}).limit_remaining, 4U);
}

TEST_F(RlsEnvoyTest, CanBeSwitchedOff) {
  use_files("- {key: a, " + per_minute(0) + "}");
  EXPECT_EQ(ask({{"a", "1"}}).code, kOver);
  envoy.lift(true);
  EXPECT_EQ(ask({{"a", "1"}}).code, kOk);
  use_files("- {key: a, " + per_minute(0) + "}");
  EXPECT_EQ(ask({{"a", "1"}}).code, kOk) << "a reload leaves it switched off";
  envoy.lift(false);
  EXPECT_EQ(ask({{"a", "1"}}).code, kOver);
}

TEST_F(RlsEnvoyTest, KeepsItsCountsWhenALimitChanges) {
  use_files("- {key: a, " + per_minute(3) + "}");
  ask({{"a", "1"}});
  ask({{"a", "1"}});
  use_files("- {key: a, " + per_minute(5) + "}");
  EXPECT_EQ(ask({{"a", "1"}}).limit_remaining, 2U);
}

TEST_F(RlsEnvoyTest, CountsDeniedRequestsIfConfigured) {
  use_files("- {key: a, " + per_minute(10) + "}\n- {key: b, quota_mode: true, " + per_minute(10) +
                "}\n- {key: c, quota_mode: true, " + per_minute(100) + "}",
            Algorithm::fixed_window, true);
  begin();
  add({{"a", "1"}}).hits_addend = 11;
  EXPECT_EQ(decide().overall_code, kOver);
  EXPECT_EQ(ask({{"a", "1"}}).code, kOver) << "hits beyond the limit use it up";
  begin();
  add({{"b", "1"}});
  add({{"c", "1"}});
  request.hits_addend = 11;
  EXPECT_EQ(decide().overall_code, kOk);
  EXPECT_EQ(ask({{"b", "1"}}).code, kOver);
  EXPECT_EQ(ask({{"c", "1"}}).limit_remaining, 88U);
  begin();
  add({{"c", "1"}});
  add({{"a", "1"}}).hits_addend = 0;
  EXPECT_EQ(decide().overall_code, kOver);
  EXPECT_EQ(ask({{"c", "1"}}).limit_remaining, 86U) << "charged, although a query was denied";
}

TEST_F(RlsEnvoyTest, UsesOtherAlgorithms) {
  use_files("- {key: a, " + per_minute(60) + "}", Algorithm::token_bucket);
  begin();
  add({{"a", "1"}});
  request.hits_addend = 60;
  EXPECT_EQ(decide().overall_code, kOk);
  EXPECT_EQ(ask({{"a", "1"}}).code, kOver);
  go_on(Micros{1'000'000});
  EXPECT_EQ(ask({{"a", "1"}}).code, kOk) << "one permit is refilled each second";
}

TEST_F(RlsEnvoyTest, CountsHits) {
  use_files("- {key: a, " + per_minute(10) + "}\n- {key: b, detailed_metric: true, " + per_minute(10) + "}");
  begin();
  add({{"a", "1"}});
  request.hits_addend = 9;
  decide();
  ask({{"a", "1"}});
  ask({{"a", "1"}});
  EXPECT_EQ(hits("a", envoy::EnvoyResult::within_limit), 8U);
  EXPECT_EQ(hits("a", envoy::EnvoyResult::near_limit), 2U);
  EXPECT_EQ(hits("a", envoy::EnvoyResult::over_limit), 1U);
  ask({{"b", "x"}});
  EXPECT_EQ(hits("b_x", envoy::EnvoyResult::within_limit), 1U);
}

TEST_F(RlsEnvoyTest, NamesALimitByALabelThatIsValidInAHeader) {
  use_files("- {key: a, " + per_minute(1, ", name: \"x\\\"\\r\\ny\"") + "}");
  ask({{"a", "1"}});
  const protocol::RlsResponse& response = decide({Pairs{{"a", "1"}}});
  EXPECT_EQ(response.dynamic_metadata->rule, "x___y");
  EXPECT_EQ(response.statuses[0].current_limit->name, "x\"\r\ny");
  for (const protocol::RlsHeader& header : response.response_headers) {
    EXPECT_EQ(header.value.find_first_of("\r\n"), header.value.npos);
  }
  EXPECT_NE(response.raw_body.find("Rate limit exceeded"), std::string_view::npos);
}

}  // namespace
}  // namespace weir::test
