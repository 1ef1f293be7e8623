// Tests how the rate limit service treats descriptors: attributes, costs, own limits, queries, statuses, texts.
#include "server/rls/rls_service.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "gate_fixture.h"

namespace weir::test {
namespace {

using Pairs = std::vector<Attribute>;

class RlsServiceTest : public GateTest {
 protected:
  RlsDescriptor& add(const Pairs& entries) {
    request.add_descriptor();
    for (const Attribute& entry : entries) request.add_entry(entry);
    return request.descriptors.back();
  }
  // Begins another request for this domain.
  void begin(std::string_view domain = "edge") {
    request.begin();
    request.domain = domain;
  }
  const RlsResponse& decide() {
    request.end();
    const auto decided = service.decide(request, rules);
    EXPECT_TRUE(decided) << decided.error().message;
    return decided ? **decided : nothing;
  }
  RlsError refusal() {
    request.end();
    const auto decided = service.decide(request, rules);
    return decided ? RlsError{GrpcStatus::ok, ""} : decided.error();
  }
  RlsCode ask(const Pairs& entries) {
    begin();
    add(entries);
    return decide().overall_code;
  }
  static std::string header(const RlsResponse& response, std::string_view name) {
    for (const RlsHeader& each : response.response_headers) {
      if (each.key == name) return std::string(each.value);
    }
    return "none";
  }

  RlsService service{limiter};
  Gate* rules = &gate;
  RlsRequest request;
  RlsResponse nothing;
};

constexpr auto kOk = RlsCode::ok, kOver = RlsCode::over_limit;

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

TEST_F(RlsServiceTest, TakesARemoteAddressThatIsNoneAsAnEntry) {
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

TEST_F(RlsServiceTest, TellsOfEachDescriptorInItsPlace) {
  use_rules(
      "  - {name: users, per: user, limit: 10/minute, algorithm: fixed_window}\n"
      "  - {name: keys, per: api_key, limit: 5/hour, algorithm: fixed_window}");
  begin();
  add({{"api_key", "k"}});
  add({{"nothing", "x"}});
  add({{"user", "u"}});
  request.hits_addend = 2;
  const RlsResponse& response = decide();
  EXPECT_EQ(response.overall_code, kOk);
  ASSERT_EQ(response.statuses.size(), 3u);
  EXPECT_EQ(response.statuses[0].current_limit->name, "keys: 5/hour");
  EXPECT_EQ(response.statuses[0].current_limit->requests_per_unit, 5u);
  EXPECT_EQ(response.statuses[0].current_limit->unit, RlsUnit::hour);
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
  for (const RlsCode code : {kOk, kOver, kOver}) {
    begin();
    add({{"user", "u"}});
    add({{"api_key", "k"}});
    const RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, code);
    EXPECT_EQ(response.statuses[0].code, kOk);
    EXPECT_EQ(response.statuses[1].code, code);
    EXPECT_EQ(response.statuses[0].limit_remaining, 9u);
  }
}

TEST_F(RlsServiceTest, ChargesALimitOnceThatTwoDescriptorsMeet) {
  use_rules("  - {name: all, per: global, limit: 10/minute}");
  begin();
  add({{"a", "1"}});
  add({{"b", "2"}});
  const RlsResponse& response = decide();
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
  RlsDescriptor& back = add({{"user", "a"}});
  back.hits_addend = 10;
  back.is_negative_hits = true;
  EXPECT_EQ(decide().statuses[0].limit_remaining, 96u) << "14 spent, 10 given back";
}

TEST_F(RlsServiceTest, AsksOnlyWhenThereAreNoHits) {
  use_rules("  - {name: users, per: user, limit: 1/minute, algorithm: fixed_window}");
  for (int i = 0; i < 3; ++i) {
    begin();
    add({{"user", "u"}}).hits_addend = 0;
    const RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, kOk);
    EXPECT_EQ(response.statuses[0].limit_remaining, 1u);
  }
  EXPECT_EQ(ask({{"user", "u"}}), kOk);
  begin();
  add({{"user", "u"}}).hits_addend = 0;
  EXPECT_EQ(decide().overall_code, kOver);
  EXPECT_EQ(header(*service.decide(request, rules).value(), "retry-after"), "60");
}

TEST_F(RlsServiceTest, ChargesNobodyIfAQuestionIsDenied) {
  use_rules("  - {name: users, per: user, limit: 2/minute}");
  EXPECT_EQ(ask({{"user", "spent"}}), kOk);
  EXPECT_EQ(ask({{"user", "spent"}}), kOk);
  for (int i = 0; i < 3; ++i) {
    begin();
    add({{"user", "fresh"}});
    add({{"user", "spent"}}).hits_addend = 0;
    const RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, kOver);
    EXPECT_EQ(response.statuses[0].code, kOk);
    EXPECT_EQ(response.statuses[0].limit_remaining, 2u);
    EXPECT_EQ(response.statuses[1].code, kOver);
  }
}

TEST_F(RlsServiceTest, ObeysALimitThatADescriptorBrings) {
  use_rules("  - {name: users, per: user, limit: 1/minute}");
  for (const RlsCode code : {kOk, kOk, kOver}) {
    begin();
    add({{"user", "u"}}).limit = RlsOverride{2, RlsUnit::hour};
    const RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, code);
    EXPECT_EQ(response.statuses[0].current_limit->requests_per_unit, 2u);
    EXPECT_EQ(response.statuses[0].current_limit->unit, RlsUnit::hour);
    EXPECT_EQ(response.statuses[0].current_limit->name, "");
  }
  begin("elsewhere");
  add({{"user", "u"}}).limit = RlsOverride{2, RlsUnit::hour};
  EXPECT_EQ(decide().overall_code, kOk) << "another domain";
  EXPECT_EQ(ask({{"user", "u"}}), kOk) << "the rule was not charged";
}

TEST_F(RlsServiceTest, NeverMixesUpTheKeysOfDescriptors) {
  for (const Pairs& entries : {Pairs{{"a", "1"}, {"b", "2"}}, Pairs{{"a", "11:b1:2"}}, Pairs{{"a1", ""}, {"b", "2"}}}) {
    begin();
    add(entries).limit = RlsOverride{1, RlsUnit::hour};
    EXPECT_EQ(decide().overall_code, kOk);
  }
}

TEST_F(RlsServiceTest, DeniesAlwaysUnderALimitOfNothing) {
  begin();
  add({{"user", "u"}}).limit = RlsOverride{0, RlsUnit::week};
  const RlsResponse& response = decide();
  EXPECT_EQ(response.overall_code, kOver);
  EXPECT_EQ(response.statuses[0].current_limit->unit, RlsUnit::week);
  EXPECT_GE(response.statuses[0].seconds_until_reset, 1);
}

TEST_F(RlsServiceTest, ChargesOverridesAndRulesTogether) {
  use_rules("  - {name: users, per: user, limit: 10/minute}");
  for (const RlsCode code : {kOk, kOver}) {
    begin();
    add({{"user", "u"}});
    add({{"x", "y"}}).limit = RlsOverride{1, RlsUnit::day};
    const RlsResponse& response = decide();
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
  add({{"user", "u"}}).limit = RlsOverride{1, RlsUnit::minute};
  const RlsResponse& response = decide();
  EXPECT_EQ(response.overall_code, kOk);
  EXPECT_FALSE(response.statuses[0].current_limit);
  EXPECT_TRUE(response.statuses[1].current_limit);
  EXPECT_EQ(decide().overall_code, kOver);
}

TEST_F(RlsServiceTest, TellsAClientWhyAndWhenToComeBack) {
  use_rules("  - {name: users, per: user, limit: 1/minute, algorithm: fixed_window}");
  ask({{"user", "u"}});
  go_on(Micros{500'000});
  begin();
  add({{"user", "u"}});
  const RlsResponse& response = decide();
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
TEST_F(RlsServiceTest, TellsAClientOfNoOtherRuleThanTheOneThatDenies) {
  const std::string kRules =
      "  - {name: secret, per: global, limit: 100/minute}\n"
      "  - {name: users, per: user, limit: 1/minute, algorithm: fixed_window}\n";
  for (const bool tells_all : {false, true}) {
    use_rules(kRules + (tells_all ? "answers: {limits: all}" : ""));
    ask({{"user", tells_all ? "v" : "u"}});
    begin();
    add({{"user", tells_all ? "v" : "u"}});
    add({{"other", "x"}});
    const RlsResponse& response = decide();
    EXPECT_EQ(response.overall_code, kOver);
    std::string told(response.raw_body);
    for (const RlsHeader& each : response.response_headers) told.append("\n").append(each.value);
    EXPECT_EQ(told.find("secret") != told.npos, tells_all) << told;
    EXPECT_NE(told.find("users: 1/minute"), told.npos) << told;
    EXPECT_EQ(response.statuses.size(), 2U);
  }
}

TEST_F(RlsServiceTest, NamesTheUnitsThatThereAre) {
  const std::vector<std::pair<std::string, RlsUnit>> units = {
      {"7/second", RlsUnit::second},        {"7/week", RlsUnit::week},
      {"7/month", RlsUnit::month},          {"7/year", RlsUnit::year},
      {"7/5min", RlsUnit::unknown},         {"7/calendar_month", RlsUnit::month},
      {"7/calendar_week", RlsUnit::week},   {"7/calendar_year", RlsUnit::year},
      {"7/calendar_day UTC", RlsUnit::day}, {"7/minute burst 3", RlsUnit::minute}};
  for (const auto& [quota, unit] : units) {
    use_rules("  - {name: r, per: global, limit: " + quota + "}");
    begin();
    add({{"a", "b"}});
    const RlsResponse& response = decide();
    EXPECT_EQ(response.statuses[0].current_limit->unit, unit) << quota;
    EXPECT_EQ(response.statuses[0].current_limit->requests_per_unit, 7u) << quota;
  }
}

TEST_F(RlsServiceTest, DeniesWhereAnAttributeIsMissing) {
  use_rules("  - {name: r, per: user, limit: 1/minute, required: true}");
  begin();
  add({{"a", "b"}});
  const RlsResponse& response = decide();
  EXPECT_EQ(response.overall_code, kOver);
  EXPECT_FALSE(response.statuses[0].current_limit);
  EXPECT_NE(response.raw_body.find("requires"), std::string_view::npos);
}

TEST_F(RlsServiceTest, SaysThatAnUnlimitedRuleHasNoEnd) {
  use_rules("  - {name: r, match: {entry: {a: b}}, limit: unlimited}");
  begin();
  add({{"a", "b"}});
  EXPECT_EQ(decide().statuses[0].limit_remaining, 0xffffffffU);
}

TEST_F(RlsServiceTest, RefusesWhatTheReferenceRefuses) {
  begin("");
  add({{"a", "b"}});
  EXPECT_EQ(refusal().status, GrpcStatus::unknown);
  EXPECT_EQ(refusal().message, "rate limit domain must not be empty");
  begin();
  EXPECT_EQ(refusal().message, "rate limit descriptor list must not be empty");
}

TEST_F(RlsServiceTest, RefusesWhatItCannotCharge) {
  begin();
  add({{"a", "b"}}).limit = RlsOverride{5, RlsUnit::unknown};
  EXPECT_EQ(refusal().status, GrpcStatus::invalid_argument);
  begin();
  add({{"a", "b"}}).hits_addend = std::uint64_t{1} << 60;
  EXPECT_EQ(refusal().status, GrpcStatus::invalid_argument);
}

TEST_F(RlsServiceTest, CountsALongDescriptorUnderItsOwnLimit) {
  for (const char last : {'y', 'z'}) {
    const std::string large = std::string(5'000, 'x') + last;
    for (const RlsCode code : {kOk, kOver}) {
      begin();
      add({{"a", large}}).limit = RlsOverride{1, RlsUnit::hour};
      EXPECT_EQ(decide().overall_code, code) << "an error would let it pass; " << last;
    }
  }
}

TEST_F(RlsServiceTest, CountsTheSameEntriesOnceForEachLimitTheyBring) {
  for (const RlsCode code : {kOk, kOk, kOver}) {
    begin();
    add({{"user", "u"}}).limit = RlsOverride{2, RlsUnit::hour};
    add({{"user", "u"}}).limit = RlsOverride{9, RlsUnit::hour};
    add({{"user", "u"}}).limit = RlsOverride{9, RlsUnit::day};
    const RlsResponse& response = decide();
    ASSERT_EQ(response.statuses.size(), 3u);
    EXPECT_EQ(response.overall_code, code);
    EXPECT_EQ(response.statuses[0].code, code);
    EXPECT_EQ(response.statuses[1].code, kOk);
    EXPECT_EQ(response.statuses[2].code, kOk);
  }
}

TEST_F(RlsServiceTest, TakesTheFirstOfSeveralEntriesThatSaysSomething) {
  use_rules("  - {name: users, per: user, limit: 1/minute}");
  EXPECT_EQ(ask({{"user", "u1"}, {"user", ""}}), kOk);
  EXPECT_EQ(ask({{"user", "u1"}}), kOver) << "it was charged to u1";
  EXPECT_EQ(ask({{"user", ""}, {"user", "u1"}}), kOver);
  EXPECT_EQ(ask({{"user", "u1"}, {"user", "u2"}}), kOver) << "a second user is not another one";
}

TEST_F(RlsServiceTest, HoldsALongPathByItsBeginning) {
  use_rules("  - {name: r, match: {path: '/api/*'}, per: global, limit: 1/minute}");
  const std::string path = "/api/" + std::string(20'000, 'x');
  EXPECT_EQ(ask({{"path", path}}), kOk);
  EXPECT_EQ(ask({{"path", path}}), kOver) << "an error would let it pass";
}

}  // namespace
}  // namespace weir::test
