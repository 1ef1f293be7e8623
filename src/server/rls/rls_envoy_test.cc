// Tests the rate limit service with Envoy's files: statuses and charges equal those of the reference service, except
// that a denied request charges nothing.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "gate_fixture.h"
#include "server/rls/rls_service.h"

namespace weir::test {
namespace {

using Pairs = std::vector<Attribute>;
constexpr auto kPasses = RlsCode::ok, kIsOver = RlsCode::over_limit;
constexpr std::uint32_t kEndless = 0xffffffffU;

class RlsEnvoyTest : public GateTest {
 protected:
  void SetUp() override { service.envoy = &envoy; }

  void use_files(const std::string& descriptors, Algorithm algorithm = Algorithm::fixed_window,
                 bool counts_denied = false) {
    const auto config = parse_envoy(std::vector<EnvoyFile>{{"f", "domain: edge\ndescriptors:\n" + descriptors}});
    ASSERT_TRUE(config.has_value()) << config.error().message;
    envoy.put(EnvoyRules::compile(*config, algorithm).value(), counts_denied);
  }
  void begin(std::string_view domain = "edge") {
    request.begin();
    request.domain = domain;
  }
  RlsDescriptor& add(const Pairs& entries) {
    request.add_descriptor();
    for (const Attribute& entry : entries) request.add_entry(entry);
    return request.descriptors.back();
  }
  const RlsResponse& decide() {
    request.end();
    const auto decided = service.decide(request, rules);
    EXPECT_TRUE(decided) << decided.error().message;
    return decided ? **decided : nothing;
  }
  RlsStatus ask(const Pairs& entries) {
    begin();
    add(entries);
    const RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, response.statuses[0].code);
    return response.statuses[0];
  }
  std::uint64_t hits(std::string_view descriptor, EnvoyResult result) {
    return envoy.tally().counts("edge", descriptor, EnvoyTally::Name::of_file).hits[static_cast<std::size_t>(result)];
  }

  EnvoyInForce envoy;
  RlsService service{limiter};
  Gate* rules = &gate;
  RlsRequest request;
  RlsResponse nothing;
};

std::string per_minute(int n, const std::string& more = "") {
  return "rate_limit: {unit: minute, requests_per_unit: " + std::to_string(n) + more + "}";
}

TEST_F(RlsEnvoyTest, AnswersAsTheReferenceServiceDoes) {
  use_files("- {key: user, " + per_minute(2, ", name: users") + "}");
  go_on(Micros{12'345'678});
  for (const std::uint32_t left : {1U, 0U}) {
    const RlsStatus status = ask({{"user", "u"}});
    EXPECT_EQ(status.code, kPasses);
    EXPECT_EQ(status.limit_remaining, left);
    EXPECT_EQ(status.current_limit->requests_per_unit, 2U);
    EXPECT_EQ(status.current_limit->unit, RlsUnit::minute);
    EXPECT_EQ(status.current_limit->name, "users");
    EXPECT_EQ(status.seconds_until_reset, 48);
  }
  const RlsStatus over = ask({{"user", "u"}});
  EXPECT_EQ(over.code, kIsOver);
  EXPECT_EQ(over.limit_remaining, 0U);
  EXPECT_EQ(over.current_limit->name, "users");
  EXPECT_EQ(over.seconds_until_reset, 48);
  EXPECT_EQ(ask({{"user", "v"}}).code, kPasses) << "another value";
  go_on(Micros{48'000'000});
  EXPECT_EQ(ask({{"user", "u"}}).limit_remaining, 1U) << "the next window";
}

TEST_F(RlsEnvoyTest, PassesWhatNoLimitIsAbout) {
  use_files("- {key: user, " + per_minute(0) + "}");
  for (const Pairs& entries : {Pairs{{"other", "u"}}, Pairs{{"user", "u"}, {"more", "x"}}}) {
    const RlsStatus status = ask(entries);
    EXPECT_EQ(status.code, kPasses);
    EXPECT_FALSE(status.current_limit);
    EXPECT_FALSE(status.seconds_until_reset);
    EXPECT_EQ(status.limit_remaining, 0U);
  }
  begin("elsewhere");
  add({{"user", "u"}});
  EXPECT_EQ(decide().overall_code, kPasses);
  EXPECT_EQ(envoy.unknown_domains, 1U);
  EXPECT_EQ(ask({{"user", "u"}}).code, kIsOver) << "nothing per minute is always over";
}

TEST_F(RlsEnvoyTest, ChargesNothingIfItIsDenied) {
  use_files("- {key: a, " + per_minute(10) + "}\n- {key: b, " + per_minute(1) + "}");
  for (const RlsCode code : {kPasses, kIsOver, kIsOver}) {
    begin();
    add({{"a", "1"}});
    add({{"b", "1"}});
    const RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, code);
    EXPECT_EQ(response.statuses[0].code, kPasses);
    EXPECT_EQ(response.statuses[1].code, code);
  }
  EXPECT_EQ(ask({{"a", "1"}}).limit_remaining, 8U);
}

TEST_F(RlsEnvoyTest, LeavesUnlimitedDescriptorsAlone) {
  use_files("- {key: a, rate_limit: {unlimited: true}}");
  const RlsStatus status = ask({{"a", "1"}});
  EXPECT_EQ(status.code, kPasses);
  EXPECT_EQ(status.limit_remaining, kEndless);
  EXPECT_FALSE(status.current_limit);
}

TEST_F(RlsEnvoyTest, DropsWhatAnotherReplaces) {
  use_files("- {key: all, " + per_minute(1, ", name: all") + "}\n- {key: vip, " +
            per_minute(3, ", name: vip, replaces: [{name: all}]") +
            "}\n- {key: free, rate_limit: {unlimited: true, replaces: [{name: all}]}}");
  for (const RlsCode code : {kPasses, kPasses, kPasses, kIsOver}) {
    begin();
    add({{"all", "1"}});
    add({{"vip", "1"}});
    const RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, code);
    EXPECT_FALSE(response.statuses[0].current_limit);
    EXPECT_EQ(response.statuses[0].code, kPasses);
  }
  for (int i = 0; i < 3; ++i) {
    begin();
    add({{"free", "1"}});
    add({{"all", "1"}});
    EXPECT_EQ(decide().overall_code, kPasses);
  }
  EXPECT_EQ(ask({{"all", "1"}}).code, kPasses) << "it was not charged";
  EXPECT_EQ(ask({{"all", "1"}}).code, kIsOver);
}

TEST_F(RlsEnvoyTest, CountsInShadowAndSaysOk) {
  use_files("- {key: a, shadow_mode: true, " + per_minute(1) + "}");
  EXPECT_EQ(ask({{"a", "1"}}).limit_remaining, 0U);
  for (int i = 0; i < 2; ++i) {
    const RlsStatus status = ask({{"a", "1"}});
    EXPECT_EQ(status.code, kPasses);
    EXPECT_EQ(status.limit_remaining, 0U);
    EXPECT_EQ(status.current_limit->requests_per_unit, 1U);
    EXPECT_TRUE(status.seconds_until_reset);
  }
  EXPECT_EQ(hits("a", EnvoyResult::shadow_mode), 2U);
  EXPECT_EQ(hits("a", EnvoyResult::over_limit), 0U);
  begin();
  add({{"a", "1"}});
  EXPECT_TRUE(decide().response_headers.empty()) << "a client hears nothing of a shadow";
}

TEST_F(RlsEnvoyTest, PassesAsLongAsOneQuotaHasRoom) {
  use_files("- {key: a, quota_mode: true, " + per_minute(1) + "}\n- {key: b, quota_mode: true, " + per_minute(3) +
            "}\n- {key: c, " + per_minute(5) + "}");
  for (int i = 0; i < 4; ++i) {
    begin();
    add({{"a", "1"}});
    add({{"b", "1"}});
    add({{"c", "1"}});
    const RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, i < 3 ? kPasses : kIsOver) << i;
    EXPECT_EQ(response.statuses[0].code, i < 1 ? kPasses : kIsOver) << i;
    EXPECT_EQ(response.statuses[1].code, i < 3 ? kPasses : kIsOver) << i;
    EXPECT_EQ(response.statuses[2].code, kPasses) << i;
    EXPECT_EQ(response.statuses[2].limit_remaining, i < 3 ? 4U - static_cast<unsigned>(i) : 2U) << i;
  }
  EXPECT_EQ(ask({{"a", "1"}}).code, kIsOver) << "alone, a quota is a limit";
}

TEST_F(RlsEnvoyTest, DeniesByALimitWhateverRoomQuotasHave) {
  use_files("- {key: a, quota_mode: true, " + per_minute(9) + "}\n- {key: c, " + per_minute(1) + "}");
  for (const RlsCode code : {kPasses, kIsOver}) {
    begin();
    add({{"a", "1"}});
    add({{"c", "1"}});
    EXPECT_EQ(decide().overall_code, code);
  }
  EXPECT_EQ(ask({{"a", "1"}}).limit_remaining, 7U);
}

TEST_F(RlsEnvoyTest, TakesAQuotaInShadowForOneWithRoom) {
  use_files("- {key: a, quota_mode: true, " + per_minute(1) + "}\n- {key: b, quota_mode: true, shadow_mode: true, " +
            per_minute(0) + "}");
  for (int i = 0; i < 3; ++i) {
    begin();
    add({{"a", "1"}});
    add({{"b", "1"}});
    EXPECT_EQ(decide().overall_code, kPasses);
  }
}

TEST_F(RlsEnvoyTest, ChargesOneKeyForEveryDescriptorThatSharesIt) {
  use_files("- {key: a, value: 'x*', share_threshold: true, " + per_minute(3) + "}");
  begin();
  add({{"a", "x1"}});
  add({{"a", "x2"}});
  const RlsResponse* response = &decide();
  EXPECT_EQ(response->statuses[0].limit_remaining, 2U);
  EXPECT_EQ(response->statuses[1].limit_remaining, 1U);
  response = &decide();
  EXPECT_EQ(response->overall_code, kIsOver);
  EXPECT_EQ(response->statuses[0].code, kPasses);
  EXPECT_EQ(response->statuses[1].code, kIsOver);
  EXPECT_EQ(ask({{"a", "x3"}}).limit_remaining, 0U) << "only what passed was charged";
}

TEST_F(RlsEnvoyTest, AsksOnlyWhenThereAreNoHits) {
  use_files("- {key: a, " + per_minute(2) + "}");
  for (int i = 0; i < 3; ++i) {
    begin();
    add({{"a", "1"}}).hits_addend = 0;
    EXPECT_EQ(decide().statuses[0].limit_remaining, 2U);
  }
  begin();
  add({{"a", "1"}});
  request.hits_addend = 2;
  EXPECT_EQ(decide().overall_code, kPasses);
  begin();
  add({{"a", "1"}}).hits_addend = 0;
  EXPECT_EQ(decide().overall_code, kIsOver);
}

TEST_F(RlsEnvoyTest, ObeysALimitThatADescriptorBringsOnlyInDomainsItKnows) {
  use_files("- {key: a, shadow_mode: true, " + per_minute(0) + "}");
  for (const RlsCode code : {kPasses, kIsOver}) {
    begin();
    add({{"a", "1"}}).limit = RlsOverride{1, RlsUnit::hour};
    const RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, code);
    EXPECT_EQ(response.statuses[0].current_limit->unit, RlsUnit::hour);
    EXPECT_EQ(response.statuses[0].seconds_until_reset, 3'600);
  }
  begin("elsewhere");
  add({{"a", "1"}}).limit = RlsOverride{0, RlsUnit::hour};
  EXPECT_EQ(decide().overall_code, kPasses);
}

TEST_F(RlsEnvoyTest, HoldsByRulesAndFilesAtOnce) {
  use_rules("  - {name: users, per: user, limit: 2/minute}\n  - {name: ban, match: {user: bad}, limit: 0/second}");
  use_files("- {key: user, " + per_minute(5) + "}");
  EXPECT_EQ(ask({{"user", "u"}}).current_limit->name, "users: 2/minute") << "the tighter one";
  EXPECT_EQ(ask({{"user", "u"}}).code, kPasses);
  EXPECT_EQ(ask({{"user", "u"}}).code, kIsOver);
  EXPECT_EQ(ask({{"user", "bad"}}).code, kIsOver);
  rules = nullptr;
  EXPECT_EQ(ask({{"user", "u"}}).limit_remaining, 2U) << "what the rules denied was not charged";
  EXPECT_EQ(ask({{"user", "bad"}}).limit_remaining, 4U);
}

TEST_F(RlsEnvoyTest, CanBeLifted) {
  use_files("- {key: a, " + per_minute(0) + "}");
  EXPECT_EQ(ask({{"a", "1"}}).code, kIsOver);
  envoy.lift(true);
  EXPECT_EQ(ask({{"a", "1"}}).code, kPasses);
  use_files("- {key: a, " + per_minute(0) + "}");
  EXPECT_EQ(ask({{"a", "1"}}).code, kPasses) << "a reload leaves it lifted";
  envoy.lift(false);
  EXPECT_EQ(ask({{"a", "1"}}).code, kIsOver);
}

TEST_F(RlsEnvoyTest, GoesOnCountingWhenALimitChanges) {
  use_files("- {key: a, " + per_minute(3) + "}");
  ask({{"a", "1"}});
  ask({{"a", "1"}});
  use_files("- {key: a, " + per_minute(5) + "}");
  EXPECT_EQ(ask({{"a", "1"}}).limit_remaining, 2U);
}

TEST_F(RlsEnvoyTest, CountsWhatIsDeniedIfItIsToldTo) {
  use_files("- {key: a, " + per_minute(10) + "}\n- {key: b, quota_mode: true, " + per_minute(10) +
                "}\n- {key: c, quota_mode: true, " + per_minute(100) + "}",
            Algorithm::fixed_window, true);
  begin();
  add({{"a", "1"}}).hits_addend = 11;
  EXPECT_EQ(decide().overall_code, kIsOver);
  EXPECT_EQ(ask({{"a", "1"}}).code, kIsOver) << "what was used beyond the limit has spent it";
  begin();
  add({{"b", "1"}});
  add({{"c", "1"}});
  request.hits_addend = 11;
  EXPECT_EQ(decide().overall_code, kPasses);
  EXPECT_EQ(ask({{"b", "1"}}).code, kIsOver);
  EXPECT_EQ(ask({{"c", "1"}}).limit_remaining, 88U);
  begin();
  add({{"c", "1"}});
  add({{"a", "1"}}).hits_addend = 0;
  EXPECT_EQ(decide().overall_code, kIsOver);
  EXPECT_EQ(ask({{"c", "1"}}).limit_remaining, 86U) << "charged, although a question denied";
}

TEST_F(RlsEnvoyTest, UsesOtherAlgorithms) {
  use_files("- {key: a, " + per_minute(60) + "}", Algorithm::token_bucket);
  begin();
  add({{"a", "1"}});
  request.hits_addend = 60;
  EXPECT_EQ(decide().overall_code, kPasses);
  EXPECT_EQ(ask({{"a", "1"}}).code, kIsOver);
  go_on(Micros{1'000'000});
  EXPECT_EQ(ask({{"a", "1"}}).code, kPasses) << "one a second comes back";
}

TEST_F(RlsEnvoyTest, CountsHits) {
  use_files("- {key: a, " + per_minute(10) + "}\n- {key: b, detailed_metric: true, " + per_minute(10) + "}");
  begin();
  add({{"a", "1"}});
  request.hits_addend = 9;
  decide();
  ask({{"a", "1"}});
  ask({{"a", "1"}});
  EXPECT_EQ(hits("a", EnvoyResult::within_limit), 8U);
  EXPECT_EQ(hits("a", EnvoyResult::near_limit), 2U);
  EXPECT_EQ(hits("a", EnvoyResult::over_limit), 1U);
  ask({{"b", "x"}});
  EXPECT_EQ(hits("b_x", EnvoyResult::within_limit), 1U);
}

TEST_F(RlsEnvoyTest, TellsTheClientByALabelThatFitsAHeader) {
  use_files("- {key: a, " + per_minute(1, ", name: \"x\\\"\\r\\ny\"") + "}");
  ask({{"a", "1"}});
  begin();
  add({{"a", "1"}});
  const RlsResponse& response = decide();
  EXPECT_EQ(response.dynamic_metadata->rule, "x___y");
  EXPECT_EQ(response.statuses[0].current_limit->name, "x\"\r\ny");
  for (const RlsHeader& header : response.response_headers) {
    EXPECT_EQ(header.value.find_first_of("\r\n"), header.value.npos);
  }
  EXPECT_NE(response.raw_body.find("Rate limit exceeded"), std::string_view::npos);
}

}  // namespace
}  // namespace weir::test
