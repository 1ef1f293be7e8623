// Tests files of the reference service: what they mean, and which are refused, with the position.
#include "envoy/envoy_config.h"

#include <gtest/gtest.h>

#include "policy/node.h"

namespace weir::envoy {
namespace {

EnvoyConfig read(const std::string& text) {
  const auto config = parse_envoy(std::vector<EnvoyFile>{{"f.yaml", text}});
  EXPECT_TRUE(config.has_value()) << config.error().message;
  return config.value_or(EnvoyConfig{});
}

std::string error_of(const std::vector<EnvoyFile>& files) {
  const auto config = parse_envoy(files);
  return config ? "" : config.error().message;
}
std::string error_of(const std::string& text) { return error_of(std::vector<EnvoyFile>{{"f.yaml", text}}); }

TEST(EnvoyConfig, ReadsEveryKey) {
  const EnvoyConfig config = read(R"(
domain: edge
descriptors:
  - key: user
    value: "a*"
    share_threshold: true
    metadata: {any: [thing, 1.5]}
    descriptors:
      - key: path
        shadow_mode: yes
        quota_mode: true
        detailed_metric: on
        value_to_metric: true
        rate_limit:
          name: paths
          unit: Week
          requests_per_unit: 1_000
          replaces: [{name: a}, {name: b}]
  - key: open
    rate_limit: {unlimited: true}
  - key: none
)");
  ASSERT_EQ(config.domains.size(), 1U);
  const EnvoyDomain& domain = config.domains[0];
  EXPECT_EQ(domain.name, "edge");
  EXPECT_EQ(domain.file, "f.yaml");
  ASSERT_EQ(domain.descriptors.size(), 3U);
  const EnvoyDescriptor& user = domain.descriptors[0];
  EXPECT_EQ(user.composite(), "user_a*");
  EXPECT_TRUE(user.share_threshold && user.has_metadata && user.is_wildcard());
  EXPECT_FALSE(user.limit || user.shadow_mode || user.quota_mode || user.detailed_metric || user.value_to_metric);
  EXPECT_EQ(user.at.line, 4);
  ASSERT_EQ(user.descriptors.size(), 1U);
  const EnvoyDescriptor& path = user.descriptors[0];
  EXPECT_TRUE(path.shadow_mode && path.quota_mode && path.detailed_metric && path.value_to_metric);
  EXPECT_EQ(path.limit,
            (EnvoyLimit{.requests_per_unit = 1'000, .unit = EnvoyUnit::week, .name = "paths", .replaces = {"a", "b"}}));
  EXPECT_TRUE(domain.descriptors[1].limit->unlimited);
  EXPECT_FALSE(domain.descriptors[2].limit);
  EXPECT_TRUE(config.warnings.empty());
}

TEST(EnvoyConfig, ReadsNumbersAndBooleansAsTexts) {
  const EnvoyConfig config = read("domain: 7\ndescriptors: [{key: true, value: 0x10}, {key: a, value: ~}]\n");
  EXPECT_EQ(config.domains[0].name, "7");
  EXPECT_EQ(config.domains[0].descriptors[0].composite(), "true_0x10");
  EXPECT_EQ(config.domains[0].descriptors[1].composite(), "a");
}

TEST(EnvoyConfig, MergesMapsByAlias) {
  const EnvoyConfig config = read(R"(
domain: d
descriptors:
  - key: a
    rate_limit: &slow {unit: hour, requests_per_unit: 5}
  - key: b
    rate_limit: {<<: *slow, requests_per_unit: 6}
)");
  EXPECT_EQ(config.domains[0].descriptors[1].limit, (EnvoyLimit{.requests_per_unit = 6, .unit = EnvoyUnit::hour}));
}

TEST(EnvoyConfig, WarnsAboutKeysWithoutEffect) {
  const EnvoyConfig config = read(
      "domain: d\ndescriptors:\n  - key: a\n    unit: hour\n"
      "    rate_limit: {unit: hour, shadow_mode: true}\n");
  EXPECT_EQ(config.warnings,
            (std::vector<std::string>{"f.yaml:4:5: `unit` has no effect in a descriptor; move it",
                                      "f.yaml:5:30: `shadow_mode` has no effect in a rate_limit; move it"}));
}

TEST(EnvoyConfig, RefusesWhatTheReferenceServiceRefuses) {
  const std::string limit = "domain: d\ndescriptors: [{key: a, rate_limit: ";
  const std::pair<std::string, std::string> wrong[] = {
      {"", "f.yaml:1:1: the file must be a map"},
      {"descriptors: []", "`domain` is empty"},
      {"domain: ''", "`domain` is empty"},
      {"domain: d\ndescriptor: []", "f.yaml:2:1: unknown key 'descriptor', did you mean `descriptors`?"},
      {"domain: d\ndescriptors: [{value: a}]", "f.yaml:2:15: a descriptor without a `key`"},
      {"domain: d\ndescriptors: [a]", "is not a map"},
      {"domain: d\ndescriptors: {key: a}", "`descriptors` must be a list"},
      {"domain: d\ndescriptors:\n- {key: a, value: b_c}\n- {key: a_b, value: c}",
       "f.yaml:4:3: the composite key 'd.a_b_c'"},
      {"domain: d\ndescriptors: [{key: a, value: 1.5}]", "f.yaml:2:31: '1.5' is a number with a fraction"},
      {"domain: d\ndescriptors: [{key: a, value: [1]}]", "is not a map"},
      {"domain: d\ndescriptors: [{key: a, value: {key: b}}]", "`value` must be a text"},
      {"domain: d\ndescriptors: [{key: a, shadow_mode: 'true'}]", "`shadow_mode` must be true or false"},
      {"domain: d\ndescriptors: [{key: a, share_threshold: true}]", "`share_threshold` is for wildcards"},
      {limit + "{}}]", "unknown unit ''; known are second, minute,"},
      {limit + "{unit: fortnight, requests_per_unit: 1}}]", "f.yaml:2:43: unknown unit 'fortnight'"},
      {limit + "{unit: day, unlimited: true}}]", "a limit is `unlimited` or has a `unit`"},
      {limit + "{unit: day, requests_per_unit: -1}}]", "from 0 to 4294967295"},
      {limit + "{unit: day, requests_per_unit: 4294967296}}]", "from 0 to 4294967295"},
      {limit + "{unit: day, requests_per_unit: '1'}}]", "without quotes"},
      {limit + "{unit: day, replaces: [{name: ''}]}}]", "`replaces` names no limit"},
      {limit + "{unit: day, name: a, replaces: [{name: a}]}}]", "a limit cannot replace itself"},
      {limit + "[]}]", "`rate_limit` must be a map"},
      {"domain: d\ndescriptors: [{key: a, metadata: b}]", "`metadata` must be a map"},
      {"domain: d\ndomain: e", "given twice"},
      {"domain: d\n---\ndomain: e", "a second document"},
  };
  for (const auto& [text, message] : wrong) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(message), error.npos) << text << "\n" << error;
  }
}

TEST(EnvoyConfig, ReportsAllErrorsInOrder) {
  const std::string error = error_of({{"a.yaml", "domain: d\ndescriptors: [{key: a, nam: 1}, {value: b}]"},
                                      {"b.yaml", "domain: d"},
                                      {"c.yaml", "domain: [}"}});
  EXPECT_TRUE(error.starts_with("a.yaml:2:24: unknown key 'nam', did you mean `name`?\na.yaml:2:33: a descriptor"))
      << error;
  EXPECT_NE(error.find("\nb.yaml:1:9: the domain 'd' is in a.yaml, too"), error.npos) << error;
  EXPECT_NE(error.find("\nc.yaml:1:"), error.npos) << error;
}

TEST(EnvoyConfig, LimitsFilesAndTexts) {
  EXPECT_NE(error_of(std::vector<EnvoyFile>{}), "");
  EXPECT_NE(error_of(std::vector<EnvoyFile>(kEnvoyFilesMax + 1, {"f", "domain: d"})).find("at most 1000"),
            std::string::npos);
  EXPECT_NE(error_of("domain: " + std::string(kEnvoyTextBytesMax + 1, 'd')).find("bytes"), std::string::npos);
}

TEST(EnvoyConfig, HasTheLengthOfEveryUnit) {
  EXPECT_EQ(to_string(EnvoyUnit::month), "month");
  EXPECT_EQ(seconds_of(EnvoyUnit::second), 1);
  EXPECT_EQ(seconds_of(EnvoyUnit::week), 604'800);
  EXPECT_EQ(seconds_of(EnvoyUnit::month), 2'592'000);
  EXPECT_EQ(seconds_of(EnvoyUnit::year), 31'536'000);
}

policy::Node plain(std::string text) { return {.text = std::move(text)}; }
policy::Node quoted(std::string text) { return {.is_plain = false, .text = std::move(text)}; }

TEST(EnvoyScalar, ParsesWholeNumbersOfEveryBase) {
  EXPECT_EQ(envoy_whole(plain("10")), 10);
  EXPECT_EQ(envoy_whole(plain("-10")), -10);
  EXPECT_EQ(envoy_whole(plain("+10")), 10);
  EXPECT_EQ(envoy_whole(plain("1_000")), 1000);
  EXPECT_EQ(envoy_whole(plain("0x1F")), 31);
  EXPECT_EQ(envoy_whole(plain("0o17")), 15);
  EXPECT_EQ(envoy_whole(plain("017")), 15);
  EXPECT_EQ(envoy_whole(plain("0b11")), 3);
  EXPECT_EQ(envoy_whole(plain("0")), 0);
  EXPECT_EQ(envoy_whole(plain("9223372036854775807")), 9223372036854775807);
  for (const char* text : {"", "-", "--1", "0x", "1.0", "1e3", "a1", "08", "9223372036854775808", "0x-1", "10.0.0.1"}) {
    EXPECT_FALSE(envoy_whole(plain(text))) << text;
  }
  EXPECT_FALSE(envoy_whole(quoted("10")));
}

TEST(EnvoyScalar, RecognizesFractions) {
  for (const char* text : {"1.5", ".5", "1.", "1e3", "1E-3", "-1.5", "08", "9223372036854775808", ".inf", "-.INF",
                           ".nan", "1_0.5", "99999999999999999999"}) {
    EXPECT_TRUE(is_envoy_fraction(plain(text))) << text;
  }
  for (const char* text : {"1", "10.0.0.1", "1.5.0", "v1.5", "e3", "1e", ".", "", "inf", "nan", "0x10", "2001-01-01"}) {
    EXPECT_FALSE(is_envoy_fraction(plain(text))) << text;
  }
  EXPECT_FALSE(is_envoy_fraction(quoted("1.5")));
  EXPECT_FALSE(is_envoy_fraction({.is_null = true}));
}

TEST(EnvoyScalar, ParsesTheWordsForTrueAndFalse) {
  for (const char* text : {"true", "True", "TRUE", "yes", "on", "y", "Y"}) {
    EXPECT_EQ(envoy_boolean(plain(text)), true) << text;
  }
  for (const char* text : {"false", "no", "Off", "n"}) EXPECT_EQ(envoy_boolean(plain(text)), false) << text;
  EXPECT_FALSE(envoy_boolean(plain("tRUE")));
  EXPECT_FALSE(envoy_boolean(plain("1")));
  EXPECT_FALSE(envoy_boolean(quoted("true")));
}

}  // namespace
}  // namespace weir::envoy
