// Tests which limit of Envoy's files applies to a descriptor, the key it counts under, and its metric name; by cases,
// and against a slow matcher on random trees.
#include "envoy/envoy_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "seed.h"

namespace weir::envoy {
namespace {

using Entries = std::vector<Attribute>;

std::shared_ptr<const EnvoyRules> rules_of(const std::string& descriptors,
                                           Algorithm algorithm = Algorithm::fixed_window) {
  const auto config = parse_envoy(std::vector<EnvoyFile>{{"f", "domain: d\ndescriptors:\n" + descriptors}});
  EXPECT_TRUE(config.has_value()) << config.error().message;
  const auto rules = EnvoyRules::compile(*config, algorithm);
  EXPECT_TRUE(rules.has_value()) << rules.error().message;
  return *rules;
}

// Returns the requests per unit of the limit that is found; -1 if there is none.
std::int64_t found(const EnvoyRules& rules, const Entries& entries, EnvoyFound* out = nullptr) {
  EnvoyFound one;
  rules.find("d", entries, one);
  if (out != nullptr) *out = one;
  return one.rule == nullptr ? -1 : std::int64_t{one.rule->said.requests_per_unit};
}

std::string limit(int n) { return "rate_limit: {unit: minute, requests_per_unit: " + std::to_string(n) + "}"; }

TEST(EnvoyRules, TakesTheValueThenWildcardsInOrderThenTheKey) {
  const auto rules = rules_of("- {key: a, " + limit(1) + "}\n- {key: a, value: 'x*', " + limit(2) +
                              "}\n- {key: a, value: '*y', " + limit(3) + "}\n- {key: a, value: xy, " + limit(4) + "}");
  EXPECT_EQ(found(*rules, {{"a", "z"}}), 1);
  EXPECT_EQ(found(*rules, {{"a", ""}}), 1);
  EXPECT_EQ(found(*rules, {{"a", "xzy"}}), 2);
  EXPECT_EQ(found(*rules, {{"a", "zy"}}), 3);
  EXPECT_EQ(found(*rules, {{"a", "xy"}}), 4);
  EXPECT_EQ(found(*rules, {{"b", "xy"}}), -1);
  EXPECT_EQ(found(*rules, {}), -1);
  EnvoyFound other;
  rules->find("e", Entries{{"a", "z"}}, other);
  EXPECT_EQ(other.rule, nullptr);
  EXPECT_TRUE(rules->knows("d"));
  EXPECT_FALSE(rules->knows("e"));
}

TEST(EnvoyRules, AppliesOnlyAtItsOwnDepth) {
  const auto rules =
      rules_of("- key: a\n  " + limit(1) + "\n  descriptors: [{key: b, descriptors: [{key: c, " + limit(3) + "}]}]");
  EXPECT_EQ(found(*rules, {{"a", "1"}}), 1);
  EXPECT_EQ(found(*rules, {{"a", "1"}, {"b", "1"}}), -1);
  EXPECT_EQ(found(*rules, {{"a", "1"}, {"b", "1"}, {"c", "1"}}), 3);
  EXPECT_EQ(found(*rules, {{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}}), -1);
  EXPECT_EQ(found(*rules, {{"b", "1"}}), -1);
}

TEST(EnvoyRules, DoesNotTryAnotherBranchAfterTheFirstMatch) {
  const auto rules = rules_of("- {key: a, value: x}\n- {key: a, descriptors: [{key: b, " + limit(2) + "}]}");
  EXPECT_EQ(found(*rules, {{"a", "y"}, {"b", "1"}}), 2);
  EXPECT_EQ(found(*rules, {{"a", "x"}, {"b", "1"}}), -1);
}

TEST(EnvoyRules, ComparesCompositeKeys) {
  const auto rules = rules_of("- {key: a_b, value: c, " + limit(1) + "}\n- {key: '*x', " + limit(2) + "}");
  EXPECT_EQ(found(*rules, {{"a", "b_c"}}), 1);
  EXPECT_EQ(found(*rules, {{"a_b_c", "z"}}), 1);
  EXPECT_EQ(found(*rules, {{"q", "x"}}), 2);
}

TEST(EnvoyRules, CountsEachValueSeparatelyUnlessThePatternIsShared) {
  EnvoyFound one, two;
  auto rules = rules_of("- {key: a, value: 'x*', " + limit(1) + "}");
  found(*rules, {{"a", "x1"}}, &one);
  found(*rules, {{"a", "x2"}}, &two);
  EXPECT_NE(one.key, two.key);
  rules = rules_of("- {key: a, value: 'x*', share_threshold: true, descriptors: [{key: b, " + limit(1) + "}]}");
  found(*rules, {{"a", "x1"}, {"b", "1"}}, &one);
  found(*rules, {{"a", "x2"}, {"b", "1"}}, &two);
  EXPECT_EQ(one.key, two.key);
  found(*rules, {{"a", "x2"}, {"b", "2"}}, &two);
  EXPECT_NE(one.key, two.key);
}

TEST(EnvoyRules, DifferentDescriptorsHaveDifferentKeys) {
  const auto rules = rules_of("- {key: a, " + limit(1) + ", descriptors: [{key: b, " + limit(1) + "}]}");
  EnvoyFound one, two;
  found(*rules, {{"a", "1"}, {"b", "2"}}, &one);
  found(*rules, {{"a", "11:b1:2"}}, &two);
  EXPECT_NE(one.key, two.key);
  const std::string large(5'000, 'x');
  found(*rules, {{"a", large}}, &one);
  EXPECT_LT(one.key.size(), 100U);
}

TEST(EnvoyRules, NamesItsMetrics) {
  EnvoyFound out;
  auto rules = rules_of("- {key: a, value: 'x*', descriptors: [{key: b, " + limit(1) + "}]}");
  found(*rules, {{"a", "x1"}, {"b", "2"}}, &out);
  EXPECT_EQ(out.rule->stat, "a_x*.b");
  EXPECT_EQ(out.stat, "") << "empty, so the rule's stat applies";
  rules = rules_of("- {key: a, value: 'x*', descriptors: [{key: b, detailed_metric: true, " + limit(1) + "}]}");
  found(*rules, {{"a", "x1"}, {"b", "2"}}, &out);
  EXPECT_EQ(out.stat, "a_x1.b_2");
  rules = rules_of("- {key: a, value: 'x*', descriptors: [{key: b, value_to_metric: true, " + limit(1) + "}]}");
  found(*rules, {{"a", "x1"}, {"b", "2"}}, &out);
  EXPECT_EQ(out.stat, "a_x*.b_2");
  rules = rules_of("- {key: a, value: 'x*', share_threshold: true, value_to_metric: true, " + limit(1) + "}");
  found(*rules, {{"a", "x1"}}, &out);
  EXPECT_EQ(out.stat, "");
  rules = rules_of("- {key: a, value: 'x*', share_threshold: true, detailed_metric: true, " + limit(1) + "}");
  found(*rules, {{"a", "x1"}}, &out);
  EXPECT_EQ(out.stat, "a_x*");
}

TEST(EnvoyRules, CompilesEveryUnitAndAlgorithm) {
  for (const char* unit : {"second", "minute", "hour", "day", "week", "month", "year"}) {
    for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::token_bucket}) {
      const auto rules =
          rules_of(std::string("- {key: a, rate_limit: {requests_per_unit: 7, unit: ") + unit + "}}", algorithm);
      const EnvoyRule& rule = rules->rules().front();
      EXPECT_EQ(rule.limit.algorithm, algorithm);
      EXPECT_EQ(rule.limit.permits, 7);
      EXPECT_EQ(rule.limit.period_us, seconds_of(rule.said.unit) * 1'000'000) << unit;
    }
  }
}

// The definition, applied to the files themselves. A star matches nothing, or one character and then a star.
bool slow_wildcard(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*') {
    return !text.empty() && pattern[0] == text[0] && slow_wildcard(pattern.substr(1), text.substr(1));
  }
  return slow_wildcard(pattern.substr(1), text) || (!text.empty() && slow_wildcard(pattern, text.substr(1)));
}

const EnvoyDescriptor* slow_find(const std::vector<EnvoyDescriptor>& level, std::span<const Attribute> entries) {
  const std::string name(entries[0].name), both = name + "_" + std::string(entries[0].value);
  const EnvoyDescriptor* next = nullptr;
  for (const EnvoyDescriptor& one : level) {
    if (one.composite() == both) next = &one;
  }
  for (const EnvoyDescriptor& one : level) {
    if (next == nullptr && one.is_wildcard() && slow_wildcard(one.composite(), both)) next = &one;
  }
  for (const EnvoyDescriptor& one : level) {
    if (next == nullptr && one.composite() == name) next = &one;
  }
  if (next == nullptr) return nullptr;
  if (entries.size() == 1) return next->limit ? next : nullptr;
  return slow_find(next->descriptors, entries.subspan(1));
}

class RandomTree {
 public:
  explicit RandomTree(std::mt19937_64& random) : random_(random) {}

  std::vector<EnvoyDescriptor> level(int depth) {
    std::vector<EnvoyDescriptor> out;
    for (std::int64_t n = test::pick(random_, 0, 5); n > 0; --n) {
      EnvoyDescriptor one{.key = word(true, 1), .value = word(true, 0)};
      const auto is_same = [&](const EnvoyDescriptor& other) { return other.composite() == one.composite(); };
      if (std::ranges::any_of(out, is_same)) continue;
      if (test::pick(random_, 0, 2) > 0) one.limit = EnvoyLimit{.requests_per_unit = ++limits_};
      if (depth > 1) one.descriptors = level(depth - 1);
      out.push_back(std::move(one));
    }
    return out;
  }
  std::string word(bool has_stars, std::int64_t min) {
    std::string out;
    for (std::int64_t n = test::pick(random_, min, 3); n > 0; --n)
      out += "a_b*"[test::pick(random_, 0, has_stars ? 3 : 2)];
    return out;
  }

 private:
  std::mt19937_64& random_;
  std::uint32_t limits_ = 0;
};

TEST(EnvoyRules, AgreesWithASlowMatcher) {
  auto random = test::seeded();
  int limited = 0;
  for (int round = 0; round < 500; ++round) {
    RandomTree tree(random);
    EnvoyConfig config;
    config.domains.push_back({.name = "d", .descriptors = tree.level(3)});
    const auto rules = EnvoyRules::compile(config, Algorithm::fixed_window).value();
    for (int i = 0; i < 60; ++i) {
      std::vector<std::string> words;
      const auto count = static_cast<std::size_t>(test::pick(random, 1, 4));
      for (std::size_t k = 0; k < 2 * count; ++k) words.push_back(tree.word(test::pick(random, 0, 9) == 0, 0));
      Entries entries;
      for (std::size_t k = 0; k < count; ++k) entries.push_back({words[2 * k], words[2 * k + 1]});
      const EnvoyDescriptor* expected = slow_find(config.domains[0].descriptors, entries);
      ASSERT_EQ(found(*rules, entries), expected == nullptr ? -1 : std::int64_t{expected->limit->requests_per_unit});
      limited += expected == nullptr ? 0 : 1;
    }
  }
  EXPECT_GT(limited, 1'000);
}

TEST(Wildcard, AStarMatchesAnyTextAndNone) {
  EXPECT_TRUE(Wildcard("path_/api/*").matches("path_/api/"));
  EXPECT_TRUE(Wildcard("path_/api/*").matches("path_/api/v1/users"));
  EXPECT_FALSE(Wildcard("path_/api/*").matches("path_/ap"));
  EXPECT_TRUE(Wildcard("a*b*c").matches("abbbc"));
  EXPECT_FALSE(Wildcard("aba*aba").matches("ababa"));
  EXPECT_TRUE(Wildcard("*").matches(""));
  EXPECT_TRUE(Wildcard("a").matches("a"));
  EXPECT_FALSE(Wildcard("a").matches("ab"));
}

TEST(Wildcard, AgreesWithASlowMatcher) {
  auto random = test::seeded();
  int matched = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string pattern, text;
    for (std::int64_t k = test::pick(random, 0, 6); k > 0; --k) pattern += "ab**"[test::pick(random, 0, 3)];
    for (std::int64_t k = test::pick(random, 0, 7); k > 0; --k) text += "ab"[test::pick(random, 0, 1)];
    const bool expected = slow_wildcard(pattern, text);
    matched += expected ? 1 : 0;
    ASSERT_EQ(Wildcard(pattern).matches(text), expected) << pattern << " " << text;
  }
  EXPECT_GT(matched, 5'000);
}

}  // namespace
}  // namespace weir::envoy
