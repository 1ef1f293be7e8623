// Tests Envoy's files as rules: the rule of each descriptor, the precedence of descriptors, and the notes.
#include "envoy/envoy_import.h"

#include <gtest/gtest.h>

namespace weir::envoy {
namespace {

ImportedEnvoy imported(const std::string& descriptors) {
  const auto config = parse_envoy(std::vector<EnvoyFile>{{"edge.yaml", "domain: edge\ndescriptors:\n" + descriptors}});
  EXPECT_TRUE(config) << config.error().message;
  return config ? import_envoy(*config) : ImportedEnvoy{};
}

// Returns only the rules, one line each.
std::string rules_of(const ImportedEnvoy& imported) {
  const std::string text = to_yaml(imported.policy);
  return text.substr(text.find("\n", text.find("rules:")) + 1);
}

TEST(EnvoyImports, ADescriptorBecomesARuleOfExactlyItsEntries) {
  EXPECT_EQ(rules_of(imported("- key: user\n"
                              "  rate_limit: {unit: minute, requests_per_unit: 5}\n"
                              "  descriptors:\n"
                              "  - key: path\n"
                              "    value: /login\n"
                              "    rate_limit: {unit: month, requests_per_unit: 7, name: logins}\n")),
            "  - {name: edge/user, match: {entry: {domain: edge}, entries: [domain, user]}, per: \"entry:user\", "
            "algorithm: fixed_window, limit: 5/minute, reason: \"edge.yaml:3\"}\n"
            "  - {name: logins, match: {entry: {domain: edge, path: /login}, entries: [domain, user, path]}, "
            "per: \"entry:user\", algorithm: fixed_window, limit: 7/month, reason: \"edge.yaml:6\"}\n");
}

TEST(EnvoyImports, ExcludesValuesThatAnotherDescriptorMatchesFirst) {
  const auto policy = imported(
                          "- {key: k, rate_limit: {unit: second, requests_per_unit: 1}}\n"
                          "- {key: k, value: a*, rate_limit: {unit: second, requests_per_unit: 2}}\n"
                          "- {key: k, value: ab, rate_limit: {unit: second, requests_per_unit: 3}}\n"
                          "- {key: k, value: '*b', rate_limit: {unit: second, requests_per_unit: 4}}\n"
                          "- {key: other, value: x, rate_limit: {unit: second, requests_per_unit: 5}}\n")
                          .policy;
  ASSERT_EQ(policy.rules.size(), 5U);
  const auto taken = [&](std::size_t rule) {
    const auto& none_of = policy.rules[rule].match.none_of;
    return none_of.empty() ? std::vector<std::string>{} : none_of.front().front().any_of;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(taken(0), (Texts{"a*", "ab", "*b"}));  // the key alone comes last
  EXPECT_EQ(taken(1), Texts{"ab"});                // an exact value before a pattern
  EXPECT_EQ(taken(2), Texts{});
  EXPECT_EQ(taken(3), (Texts{"a*", "ab"}));  // an earlier pattern before a later one
  EXPECT_EQ(taken(4), Texts{});
}

TEST(EnvoyImports, ValuesOfASharedPatternAreCountedTogether) {
  const auto policy = imported(
                          "- {key: a, value: x*, share_threshold: true, rate_limit: {unit: day}}\n"
                          "- {key: b, value: x*, rate_limit: {unit: day}}\n"
                          "- {key: c, value: x, rate_limit: {unit: day}}\n")
                          .policy;
  ASSERT_EQ(policy.rules.size(), 3U);
  EXPECT_TRUE(policy.rules[0].per.empty());
  EXPECT_EQ(policy.rules[1].per, (std::vector<Dimension>{{.kind = AttributeKind::entry, .name = "b"}}));
  EXPECT_TRUE(policy.rules[2].per.empty());
  EXPECT_EQ(policy.rules[0].limits[0].quota.permits, 0);
}

TEST(EnvoyImports, ModesAreKept) {
  const auto rules = imported(
                         "- {key: a, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}\n"
                         "- {key: b, shadow_mode: true, rate_limit: {unlimited: true}}\n")
                         .policy.rules;
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].mode, Mode::shadow);
  EXPECT_TRUE(rules[1].unlimited);
  EXPECT_EQ(rules[1].mode, Mode::enforce);  // the reference also ignores everything except `unlimited`
}

TEST(EnvoyImports, RuleNamesAreValidAndUnique) {
  const auto rules = imported(
                         "- {key: a, value: 'x y/é', rate_limit: {unit: day}}\n"
                         "- {key: b, rate_limit: {unit: day, name: n}}\n"
                         "- {key: c, rate_limit: {unit: day, name: n}}\n"
                         "- {key: d, value: " +
                         std::string(100, 'v') +
                         ", rate_limit: {unit: day}}\n"
                         "- {key: d, value: " +
                         std::string(101, 'v') + ", rate_limit: {unit: day}}\n")
                         .policy.rules;
  ASSERT_EQ(rules.size(), 5U);
  EXPECT_EQ(rules[0].name, "edge/a_x-y/--");
  EXPECT_EQ(rules[1].name, "n");
  EXPECT_EQ(rules[2].name, "n-2");
  EXPECT_EQ(rules[3].name, "edge/d_" + std::string(57, 'v'));
  EXPECT_EQ(rules[4].name, "edge/d_" + std::string(55, 'v') + "-2");
}

TEST(EnvoyImports, ReportsWhatRulesCannotExpress) {
  const auto import = imported(
      "- {key: 'a*', descriptors: [{key: b, rate_limit: {unit: day}}]}\n"
      "- {key: a b, rate_limit: {unit: day}}\n"
      "- {key: c, descriptors: [{key: c, rate_limit: {unit: day}}]}\n"
      "- {key: domain, rate_limit: {unit: day}}\n"
      "- {key: q, quota_mode: true, rate_limit: {unit: day}}\n"
      "- {key: r, rate_limit: {unit: day, replaces: [{name: n}, {name: m}]}}\n"
      "- {key: m, rate_limit: {unit: day}, metadata: {a: b}}\n");
  EXPECT_EQ(import.policy.rules.size(), 3U);
  const std::vector<std::string> expected = {
      "edge.yaml:3:3: rules name entries in full, and this key has a `*`; it is not imported, nor are those below it",
      "edge.yaml:4:3: the key 'a b' cannot be the name of an entry in a rule: 1 to 128 letters, digits, '-', '_' and "
      "'.'; it is not imported",
      "edge.yaml:5:26: a rule identifies entries by their names, and 'c' appears twice; it is not imported",
      "edge.yaml:6:3: a rule identifies entries by their names, and 'domain' appears twice; it is not imported",
      "edge.yaml:7:3: rules have no quota_mode: this limit denies on its own, not only when all quota_mode limits are "
      "exceeded",
      "edge.yaml:8:24: rules have no `replaces`: where this limit applies, 'n', 'm' also apply",
      "edge.yaml:9:3: rules have no metadata: Weir sends none to Envoy"};
  EXPECT_EQ(import.notes, expected);
}

TEST(EnvoyImports, DeepAndWideFilesStayWithinTheLimitsOfRules) {
  std::string deep = "- ", end;
  for (int i = 0; i < 9; ++i) {
    deep += "{key: k" + std::to_string(i) + ", descriptors: [";
    end += "]}";
  }
  const auto import = imported(deep + "{key: last, rate_limit: {unit: day}}" + end + "\n");
  EXPECT_TRUE(import.policy.rules.empty());
  ASSERT_EQ(import.notes.size(), 1U);
  EXPECT_NE(import.notes[0].find("a rule counts by at most 8 entries"), std::string::npos) << import.notes[0];

  std::string wide;
  for (int i = 0; i < 2'500; ++i) wide += "- {key: k, value: v" + std::to_string(i) + "}\n";
  const auto policy = imported(wide + "- {key: k, rate_limit: {unit: day}}\n").policy;
  ASSERT_EQ(policy.rules.size(), 1U);
  EXPECT_EQ(policy.rules[0].match.none_of.size(), 3U);
  EXPECT_EQ(policy.rules[0].match.none_of[2].front().any_of.size(), 500U);
}

}  // namespace
}  // namespace weir::envoy
