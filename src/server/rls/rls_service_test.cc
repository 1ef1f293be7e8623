// Tests how the rate limit service treats descriptors: attributes, costs, own limits, queries, statuses, texts.
#include <memory>
#include <string>
#include <utility>

#include "rls_fixture.h"

namespace weir::test {
namespace {

class RlsServiceTest : public RlsTest {
 protected:
  server::rls::RlsError refusal() {
    request.end();
    const auto decided = service.decide(request, rules);
    return decided ? server::rls::RlsError{protocol::GrpcStatus::ok, ""} : decided.error();
  }
  protocol::RlsCode ask(const Pairs& entries) { return decide({entries}).overall_code; }
  static std::string header(const protocol::RlsResponse& response, std::string_view name) {
    for (const protocol::RlsHeader& each : response.response_headers) {
      if (each.key == name) return std::string(each.value);
    }
    return "none";
  }
};

TEST_F(RlsServiceTest, FillsTheAttributesThatEntriesAreNamedAfter) {
  for (const char* name : {"user", "api_key", "tenant", "plan", "method", "host"}) {
    use_rules(std::string("  - {name: r, per: ") + name + ", limit: 1/minute}");
    EXPECT_EQ(ask({{name, "GET"}}), kOk) << name;
    EXPECT_EQ(ask({{name, "GET"}}), kOver) << name;
    EXPECT_EQ(ask({{name, "PUT"}}), kOk) << name;
    EXPECT_EQ(ask({{"other", "GET"}}), kOk) << name;
  }
  use_rules("  - {name: i, per: ip, limit: 1/minute}");
  EXPECT_EQ(ask({{"remote_address", "192.0.2.1"}}), kOk);
  EXPECT_EQ(ask({{"remote_address", "192.0.2.1"}}), kOver);
}

TEST_F(RlsServiceTest, TakesAnInvalidRemoteAddressAsAnEntry) {
  use_rules(
      "  - {name: i, per: ip, limit: 1/minute}\n"
      "  - {name: e, per: 'entry:remote_address', limit: 2/minute}");
  EXPECT_EQ(ask({{"remote_address", "somewhere"}}), kOk);
  EXPECT_EQ(ask({{"remote_address", "somewhere"}}), kOk);
  EXPECT_EQ(ask({{"remote_address", "somewhere"}}), kOver);
  EXPECT_EQ(ask({{"remote_address", ""}}), kOk);
}

TEST_F(RlsServiceTest, MatchesEntriesAndTheDomain) {
  use_rules("  - {name: r, match: {entry: {domain: edge, generic_key: slow}}, per: global, limit: 1/minute}");
  EXPECT_EQ(ask({{"generic_key", "slow"}}), kOk);
  EXPECT_EQ(ask({{"generic_key", "slow"}}), kOver);
  EXPECT_EQ(ask({{"generic_key", "fast"}}), kOk);
  begin("inside");
  add({{"generic_key", "slow"}});
  EXPECT_EQ(decide().overall_code, kOk);
}

TEST_F(RlsServiceTest, ReportsEachDescriptorInOrder) {
  use_rules(
      "  - {name: users, per: user, limit: 10/minute, algorithm: fixed_window}\n"
      "  - {name: keys, per: api_key, limit: 5/hour, algorithm: fixed_window}");
  begin();
  add({{"api_key", "k"}});
  add({{"nothing", "x"}});
  add({{"user", "u"}});
  request.hits_addend = 2;
  const protocol::RlsResponse& response = decide();
  EXPECT_EQ(response.overall_code, kOk);
  ASSERT_EQ(response.statuses.size(), 3u);
  EXPECT_EQ(response.statuses[0].current_limit->name, "keys: 5/hour");
  EXPECT_EQ(response.statuses[0].current_limit->requests_per_unit, 5u);
  EXPECT_EQ(response.statuses[0].current_limit->unit, protocol::RlsUnit::hour);
  EXPECT_EQ(response.statuses[0].limit_remaining, 3u);
  EXPECT_EQ(response.statuses[0].seconds_until_reset, 3600);
  EXPECT_FALSE(response.statuses[1].current_limit);
  EXPECT_EQ(response.statuses[1].code, kOk);
  EXPECT_EQ(response.statuses[2].limit_remaining, 8u);
  EXPECT_EQ(response.statuses[2].seconds_until_reset, 60);
}

TEST_F(RlsServiceTest, ChargesAllDescriptorsOrNone) {
  use_rules(
      "  - {name: users, per: user, limit: 10/minute}\n"
      "  - {name: keys, per: api_key, limit: 1/minute}");
  for (const protocol::RlsCode code : {kOk, kOver, kOver}) {
    const protocol::RlsResponse& response = decide({Pairs{{"user", "u"}}, Pairs{{"api_key", "k"}}});
    EXPECT_EQ(response.overall_code, code);
    EXPECT_EQ(response.statuses[0].code, kOk);
    EXPECT_EQ(response.statuses[1].code, code);
    EXPECT_EQ(response.statuses[0].limit_remaining, 9u);
  }
}

TEST_F(RlsServiceTest, ChargesALimitOnceForTwoDescriptors) {
  use_rules("  - {name: all, per: global, limit: 10/minute}");
  const protocol::RlsResponse& response = decide({Pairs{{"a", "1"}}, Pairs{{"b", "2"}}});
  EXPECT_EQ(response.statuses[0].limit_remaining, 9u);
  EXPECT_EQ(response.statuses[1].limit_remaining, 9u);
  EXPECT_EQ(header(response, "ratelimit-policy"), "\"all: 10/minute\";q=10;w=60");
}

TEST_F(RlsServiceTest, TakesTheHitsOfTheDescriptorBeforeThoseOfTheRequest) {
  use_rules("  - {name: users, per: user, limit: 100/minute}");
  begin();
  add({{"user", "a"}}).hits_addend = 7;
  add({{"user", "b"}});
  request.hits_addend = 3;
  EXPECT_EQ(decide().statuses[0].limit_remaining, 93u);
  EXPECT_EQ(service.decide(request, rules).value()->statuses[1].limit_remaining, 94u);
  begin();
  protocol::RlsDescriptor& back = add({{"user", "a"}});
  back.hits_addend = 10;
  back.is_negative_hits = true;
  EXPECT_EQ(decide().statuses[0].limit_remaining, 96u) << "14 used, 10 refunded";
}

TEST_F(RlsServiceTest, OnlyQueriesIfThereAreNoHits) {
  use_rules("  - {name: users, per: user, limit: 1/minute, algorithm: fixed_window}");
  for (int i = 0; i < 3; ++i) {
    begin();
    add({{"user", "u"}}).hits_addend = 0;
    const protocol::RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, kOk);
    EXPECT_EQ(response.statuses[0].limit_remaining, 1u);
  }
  EXPECT_EQ(ask({{"user", "u"}}), kOk);
  begin();
  add({{"user", "u"}}).hits_addend = 0;
  EXPECT_EQ(decide().overall_code, kOver);
  EXPECT_EQ(header(*service.decide(request, rules).value(), "retry-after"), "60");
}

TEST_F(RlsServiceTest, ChargesNothingIfAQueryIsDenied) {
  use_rules("  - {name: users, per: user, limit: 2/minute}");
  EXPECT_EQ(ask({{"user", "spent"}}), kOk);
  EXPECT_EQ(ask({{"user", "spent"}}), kOk);
  for (int i = 0; i < 3; ++i) {
    begin();
    add({{"user", "fresh"}});
    add({{"user", "spent"}}).hits_addend = 0;
    const protocol::RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, kOver);
    EXPECT_EQ(response.statuses[0].code, kOk);
    EXPECT_EQ(response.statuses[0].limit_remaining, 2u);
    EXPECT_EQ(response.statuses[1].code, kOver);
  }
}

TEST_F(RlsServiceTest, AppliesTheLimitOfADescriptor) {
  use_rules("  - {name: users, per: user, limit: 1/minute}");
  for (const protocol::RlsCode code : {kOk, kOk, kOver}) {
    begin();
    add({{"user", "u"}}).limit = protocol::RlsOverride{2, protocol::RlsUnit::hour};
    const protocol::RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, code);
    EXPECT_EQ(response.statuses[0].current_limit->requests_per_unit, 2u);
    EXPECT_EQ(response.statuses[0].current_limit->unit, protocol::RlsUnit::hour);
    EXPECT_EQ(response.statuses[0].current_limit->name, "");
  }
  begin("elsewhere");
  add({{"user", "u"}}).limit = protocol::RlsOverride{2, protocol::RlsUnit::hour};
  EXPECT_EQ(decide().overall_code, kOk) << "another domain";
  EXPECT_EQ(ask({{"user", "u"}}), kOk) << "the rule was not charged";
}

TEST_F(RlsServiceTest, NeverMixesUpTheKeysOfDescriptors) {
  for (const Pairs& entries : {Pairs{{"a", "1"}, {"b", "2"}}, Pairs{{"a", "11:b1:2"}}, Pairs{{"a1", ""}, {"b", "2"}}}) {
    begin();
    add(entries).limit = protocol::RlsOverride{1, protocol::RlsUnit::hour};
    EXPECT_EQ(decide().overall_code, kOk);
  }
}

TEST_F(RlsServiceTest, AlwaysDeniesUnderALimitOfZero) {
  begin();
  add({{"user", "u"}}).limit = protocol::RlsOverride{0, protocol::RlsUnit::week};
  const protocol::RlsResponse& response = decide();
  EXPECT_EQ(response.overall_code, kOver);
  EXPECT_EQ(response.statuses[0].current_limit->unit, protocol::RlsUnit::week);
  EXPECT_GE(response.statuses[0].seconds_until_reset, 1);
}

TEST_F(RlsServiceTest, ChargesOverridesAndRulesTogether) {
  use_rules("  - {name: users, per: user, limit: 10/minute}");
  for (const protocol::RlsCode code : {kOk, kOver}) {
    begin();
    add({{"user", "u"}});
    add({{"x", "y"}}).limit = protocol::RlsOverride{1, protocol::RlsUnit::day};
    const protocol::RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, code);
    EXPECT_EQ(response.statuses[0].limit_remaining, 9u);
    EXPECT_EQ(response.statuses[1].code, code);
  }
}

TEST_F(RlsServiceTest, PassesEverythingWithoutRules) {
  EXPECT_EQ(ask({{"user", "u"}}), kOk);
  rules = nullptr;
  begin();
  add({{"user", "u"}});
  add({{"user", "u"}}).limit = protocol::RlsOverride{1, protocol::RlsUnit::minute};
  const protocol::RlsResponse& response = decide();
  EXPECT_EQ(response.overall_code, kOk);
  EXPECT_FALSE(response.statuses[0].current_limit);
  EXPECT_TRUE(response.statuses[1].current_limit);
  EXPECT_EQ(decide().overall_code, kOver);
}

TEST_F(RlsServiceTest, TellsAClientWhyAndWhenToRetry) {
  use_rules("  - {name: users, per: user, limit: 1/minute, algorithm: fixed_window}");
  ask({{"user", "u"}});
  go_on(Micros{500'000});
  const protocol::RlsResponse& response = decide({Pairs{{"user", "u"}}});
  EXPECT_EQ(header(response, "retry-after"), "60");
  EXPECT_EQ(header(response, "ratelimit"), "\"users: 1/minute\";r=0;t=60");
  EXPECT_EQ(header(response, "ratelimit-policy"), "\"users: 1/minute\";q=1;w=60");
  EXPECT_EQ(header(response, "content-type"), "application/problem+json");
  EXPECT_EQ(header(response, "x-ratelimit-limit"), "none") << "Envoy makes these itself";
  EXPECT_NE(response.raw_body.find("\"error\":\"Rate limit exceeded\""), std::string_view::npos);
  EXPECT_EQ(response.statuses[0].seconds_until_reset, 60);
  ASSERT_TRUE(response.dynamic_metadata);
  EXPECT_EQ(response.dynamic_metadata->rule, "users");
  EXPECT_FALSE(response.dynamic_metadata->allowed);
  EXPECT_EQ(response.dynamic_metadata->retry_after, 60);
}

// Envoy passes header fields and body on to the client; the statuses are for Envoy.
TEST_F(RlsServiceTest, NamesOnlyTheDenyingRuleToAClient) {
  const std::string kRules =
      "  - {name: secret, per: global, limit: 100/minute}\n"
      "  - {name: users, per: user, limit: 1/minute, algorithm: fixed_window}\n";
  for (const bool shows_all : {false, true}) {
    use_rules(kRules + (shows_all ? "answers: {limits: all}" : ""));
    ask({{"user", shows_all ? "v" : "u"}});
    const protocol::RlsResponse& response = decide({Pairs{{"user", shows_all ? "v" : "u"}}, Pairs{{"other", "x"}}});
    EXPECT_EQ(response.overall_code, kOver);
    std::string shown(response.raw_body);
    for (const protocol::RlsHeader& each : response.response_headers) shown.append("\n").append(each.value);
    EXPECT_EQ(shown.find("secret") != shown.npos, shows_all) << shown;
    EXPECT_NE(shown.find("users: 1/minute"), shown.npos) << shown;
    EXPECT_EQ(response.statuses.size(), 2U);
  }
}

TEST_F(RlsServiceTest, NamesTheUnitsThatThereAre) {
  const std::vector<std::pair<std::string, protocol::RlsUnit>> units = {
      {"7/second", protocol::RlsUnit::second},        {"7/week", protocol::RlsUnit::week},
      {"7/month", protocol::RlsUnit::month},          {"7/year", protocol::RlsUnit::year},
      {"7/5min", protocol::RlsUnit::unknown},         {"7/calendar_month", protocol::RlsUnit::month},
      {"7/calendar_week", protocol::RlsUnit::week},   {"7/calendar_year", protocol::RlsUnit::year},
      {"7/calendar_day UTC", protocol::RlsUnit::day}, {"7/minute burst 3", protocol::RlsUnit::minute}};
  for (const auto& [quota, unit] : units) {
    use_rules("  - {name: r, per: global, limit: " + quota + "}");
    const protocol::RlsResponse& response = decide({Pairs{{"a", "b"}}});
    EXPECT_EQ(response.statuses[0].current_limit->unit, unit) << quota;
    EXPECT_EQ(response.statuses[0].current_limit->requests_per_unit, 7u) << quota;
  }
}

TEST_F(RlsServiceTest, DeniesWhereAnAttributeIsMissing) {
  use_rules("  - {name: r, per: user, limit: 1/minute, required: true}");
  const protocol::RlsResponse& response = decide({Pairs{{"a", "b"}}});
  EXPECT_EQ(response.overall_code, kOver);
  EXPECT_FALSE(response.statuses[0].current_limit);
  EXPECT_NE(response.raw_body.find("requires"), std::string_view::npos);
}

TEST_F(RlsServiceTest, ReportsTheLargestNumberForAnUnlimitedRule) {
  use_rules("  - {name: r, match: {entry: {a: b}}, limit: unlimited}");
  EXPECT_EQ(decide({Pairs{{"a", "b"}}}).statuses[0].limit_remaining, 0xffffffffU);
}

TEST_F(RlsServiceTest, RefusesWhatTheReferenceRefuses) {
  begin("");
  add({{"a", "b"}});
  EXPECT_EQ(refusal().status, protocol::GrpcStatus::unknown);
  EXPECT_EQ(refusal().message, "rate limit domain must not be empty");
  begin();
  EXPECT_EQ(refusal().message, "rate limit descriptor list must not be empty");
}

TEST_F(RlsServiceTest, RefusesWhatItCannotCharge) {
  begin();
  add({{"a", "b"}}).limit = protocol::RlsOverride{5, protocol::RlsUnit::unknown};
  EXPECT_EQ(refusal().status, protocol::GrpcStatus::invalid_argument);
  begin();
  add({{"a", "b"}}).hits_addend = std::uint64_t{1} << 60;
  EXPECT_EQ(refusal().status, protocol::GrpcStatus::invalid_argument);
}

TEST_F(RlsServiceTest, CountsALongDescriptorUnderItsOwnLimit) {
  for (const char last : {'y', 'z'}) {
    const std::string large = std::string(5'000, 'x') + last;
    for (const protocol::RlsCode code : {kOk, kOver}) {
      begin();
      add({{"a", large}}).limit = protocol::RlsOverride{1, protocol::RlsUnit::hour};
      EXPECT_EQ(decide().overall_code, code) << "an error would let it pass; " << last;
    }
  }
}

TEST_F(RlsServiceTest, CountsTheSameEntriesSeparatelyForEachLimit) {
  for (const protocol::RlsCode code : {kOk, kOk, kOver}) {
    begin();
    add({{"user", "u"}}).limit = protocol::RlsOverride{2, protocol::RlsUnit::hour};
    add({{"user", "u"}}).limit = protocol::RlsOverride{9, protocol::RlsUnit::hour};
    add({{"user", "u"}}).limit = protocol::RlsOverride{9, protocol::RlsUnit::day};
    const protocol::RlsResponse& response = decide();
    ASSERT_EQ(response.statuses.size(), 3u);
    EXPECT_EQ(response.overall_code, code);
    EXPECT_EQ(response.statuses[0].code, code);
    EXPECT_EQ(response.statuses[1].code, kOk);
    EXPECT_EQ(response.statuses[2].code, kOk);
  }
}

TEST_F(RlsServiceTest, TakesTheFirstEntryThatHasAValue) {
  use_rules("  - {name: users, per: user, limit: 1/minute}");
  EXPECT_EQ(ask({{"user", "u1"}, {"user", ""}}), kOk);
  EXPECT_EQ(ask({{"user", "u1"}}), kOver) << "it was charged to u1";
  EXPECT_EQ(ask({{"user", ""}, {"user", "u1"}}), kOver);
  EXPECT_EQ(ask({{"user", "u1"}, {"user", "u2"}}), kOver) << "a second user is not another one";
}

TEST_F(RlsServiceTest, MatchesALongPathByItsBeginning) {
  use_rules("  - {name: r, match: {path: '/api/*'}, per: global, limit: 1/minute}");
  const std::string path = "/api/" + std::string(20'000, 'x');
  EXPECT_EQ(ask({{"path", path}}), kOk);
  EXPECT_EQ(ask({{"path", path}}), kOver) << "an error would let it pass";
}

}  // namespace
}  // namespace weir::test
