// Tests the reader alone: defaults, canonical forms, and errors reported together. tests/policy_text_test.cc has the
// large tables of mistakes.
#include "policy/policy_reader.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "algorithm/limit.h"
#include "policy/fields.h"

namespace weir::policy {
namespace {

Result<Limit> compiled(const Quota& quota) { return algorithm::compile_limit(quota, nullptr); }

Policy read_policy_of(const std::string& text, std::string* told = nullptr) {
  std::vector<TextProblem> problems;
  Policy policy = read_policy(text, problems, compiled);
  const std::string lines = problem_lines("w", std::move(problems));
  if (told != nullptr) {
    *told = lines;
  } else {
    EXPECT_EQ(lines, "");
  }
  return policy;
}

TEST(PolicyReader, HasSafeDefaults) {
  const Policy policy = read_policy_of("rules: [{name: a, per: ip, limit: 1/s}]");
  EXPECT_TRUE(policy.trusted_proxies.empty());
  EXPECT_TRUE(policy.skip_preflights);
  EXPECT_FALSE(policy.path_case_matters);
  EXPECT_EQ(policy.max_change, 10);
  ASSERT_EQ(policy.identity.size(), 3U);
  const Rule& rule = policy.rules[0];
  EXPECT_EQ(rule.mode, Mode::enforce);
  EXPECT_EQ(rule.on_backend_error, OnBackendError::local);
  EXPECT_EQ(rule.limits[0].quota.algorithm, Algorithm::sliding_window);
  EXPECT_EQ(rule.limits[0].text, "1/s");
  EXPECT_EQ(rule.at.line, 1);
}

// A policy made by hand, and the text that it would print.
void expect_alike(const Policy& policy) {
  std::vector<TextProblem> of_text, by_hand;
  const Policy read = read_policy(to_yaml(policy), of_text, compiled), validated = validate(policy, by_hand, compiled);
  EXPECT_EQ(problem_lines("w", by_hand), problem_lines("w", of_text)) << to_yaml(policy);
  if (of_text.empty()) {
    EXPECT_EQ(validated, read) << to_yaml(policy);
  }
}

TEST(PolicyReader, ValidatesAPolicyLikeItsText) {
  const Rule sound = read_policy_of("rules: [{name: a, per: ip, limit: 1/s}]").rules[0];
  std::vector<Rule> rules(20, sound);
  rules[0].per = {{weir::AttributeKind::capture, "id"}};
  rules[1].match.all = {{weir::AttributeKind::api_key, "", {"sha256:ab"}},
                        {weir::AttributeKind::user, "", {"\x01\"\\", "\xe9"}}};
  rules[2].match.all = {{weir::AttributeKind::ip, "", {"10.0.0.1/8"}}};
  rules[3].match.all = {{weir::AttributeKind::path, "", {"/a", "b"}}, {weir::AttributeKind::header, "x-org", {}}};
  rules[4].name = "a b\r\n";
  rules[5].limits[0].text = "1/hour\r\nX-Evil: 1";
  rules[6].match.none_of = {{}};
  rules[7].match.none_of = {{{weir::AttributeKind::user, "", {"*"}}}, {{weir::AttributeKind::host, "", {"a:1"}}}};
  rules[8].match.otherwise = rules[8].unlimited = true;
  rules[9].by_plan = true;
  rules[10].cost = {.permits = -1};
  rules[11].cost = {.header = "x-cost", .max = 0};
  rules[12].retry_jitter.percent = 101;
  rules[13].percent = -1;
  rules[14].limits.push_back(sound.limits[0]);
  rules[15].owner = std::string(kValueBytesMax + 1, 'o');
  rules[16].expires_at = Micros{1'000'000};
  rules[17].limits.clear();
  rules[18].percent = 101;
  rules[19].retry_jitter.percent = -1;
  for (const Rule& rule : rules) expect_alike({.skip = {"/health"}, .rules = {sound, rule}});
  expect_alike({.identity = {{weir::AttributeKind::identity}}, .trusted_proxies = {"10.0.0.1/8"}, .trusted_hops = 65});
  expect_alike({.skip_preflights = false, .max_change = -1, .answers = {.deny_status = 200}, .rules = {sound}});
  expect_alike({.plans = {.query = "SELECT 1", .tiers = {{"a b", {}}}}, .store = "redis://a?b", .rules = {sound}});
  expect_alike({.envoy = {.path = "ratelimit", .algorithm = Algorithm::concurrency}});
  std::vector<TextProblem> problems;
  Rule percent = sound;
  percent.percent = 101;
  validate({.rules = {percent}}, problems, compiled);
  EXPECT_NE(problem_lines("w", std::exchange(problems, {})).find("found '101%'"), std::string::npos);
  validate({}, problems, compiled);
  EXPECT_EQ(problem_lines("w", problems),
            "w:1:1: the config has no `rules`, so it limits nothing; write at least one rule");
}

TEST(PolicyReader, ValidatesAPolicyThatPrintsLongerThanATextMayBe) {
  Rule rule = read_policy_of("rules: [{name: a, per: ip, match: {user: [b, c]}, limit: 1/s}]").rules[0];
  rule.match.all[0].any_of.assign(1'000, "value");
  Policy policy;
  for (std::size_t i = 0; i <= kNodesMax / 1'000; ++i) {
    rule.name = 'r' + std::to_string(i);
    policy.rules.push_back(rule);
  }
  EXPECT_GT(to_yaml(policy).size(), kPolicyBytesMax);
  std::vector<TextProblem> problems;
  EXPECT_EQ(validate(policy, problems, compiled), policy);
  EXPECT_TRUE(problems.empty());
}

TEST(PolicyReader, ReadsTheStore) {
  const std::string rules = "\nrules: [{name: a, per: ip, limit: 1/s}]";
  EXPECT_EQ(read_policy_of("store: redis+cluster://a,b:7000" + rules).store, "redis+cluster://a,b:7000");
  EXPECT_EQ(read_policy_of("store: memory" + rules).store, "memory");
  for (const char* wrong : {"disk", "redis", "http://a", "[redis://a]", "redis://weir:secret@a", "redis://a:63o79",
                            "redys://a", "redis://a?pasword_file=/b"}) {
    std::string told;
    EXPECT_EQ(read_policy_of("store: " + std::string(wrong) + rules, &told).store, "") << wrong;
    EXPECT_NE(told.find("`store`"), told.npos) << told;
  }
  std::string told;
  read_policy_of("store: redis://127.0.0.1:22o99" + rules, &told);
  EXPECT_NE(told.find(":1:8: `store`: Redis URL: '22o99' is not a port"), told.npos) << told;
}

TEST(PolicyReader, ConvertsValuesToTheirCanonicalForm) {
  const Policy policy = read_policy_of(
      "rules:\n- {name: a, per: [ip/24, 'header:X-Org'], limits: [10/hour, 1/s], match: {path: //API/x/, method: "
      "post,\n"
      "   host: API.example.COM., ip: '::ffff:10.0.0.0/104', header: {X-B: 1, X-A: 2}}}");
  const Rule& rule = policy.rules[0];
  EXPECT_EQ(rule.limits[0].text, "1/s") << "from the shortest period to the longest";
  EXPECT_EQ(rule.per[1].name, "x-org");
  std::set<std::string> seen;
  for (const Condition& condition : rule.match.all) seen.insert(condition.name + condition.any_of[0]);
  EXPECT_EQ(seen, (std::set<std::string>{"/api/x", "POST", "api.example.com", "10.0.0.0/8", "x-b1", "x-a2"}));
}

TEST(PolicyReader, ReadsTheNamesOfEntries) {
  EXPECT_EQ(read_policy_of("rules: [{name: a, match: {entries: [domain, b, b]}, limit: 0/s}]").rules[0].match.entries,
            (std::vector<std::string>{"domain", "b", "b"}));
  std::string told;
  read_policy_of("rules: [{name: a, match: {not: {entries: a}}, limit: 0/s}]", &told);
  EXPECT_EQ(told, "w:1:32: `not` cannot contain `otherwise`, `entries` or another `not`; move them out of it");
  read_policy_of("rules: [{name: a, match: {entries: [a, 'b c']}, limit: 0/s}]", &told);
  EXPECT_EQ(told, "w:1:40: 'entry:b c' names no entry: a name is 1 to 128 letters, digits, '-', '_' and '.'");
}

TEST(PolicyReader, ReportsAllErrorsInTheOrderOfTheText) {
  std::string told;
  read_policy_of(
      "rules:\n- {name: b, limit: 5/s}\n- {name: a, per: usr, limit: x, foo: 1}\ntrusted_proxies: 10.0.0.1/8\n", &told);
  std::vector<int> lines;
  for (std::size_t at = 0; at < told.size(); at = told.find('\n', at) + 1) {
    lines.push_back(std::stoi(told.substr(at + 2)));
    if (told.find('\n', at) == std::string::npos) break;
  }
  EXPECT_EQ(lines, (std::vector<int>{2, 3, 3, 3, 4})) << told;
}

TEST(PolicyReader, StopsListingErrorsWhenThereAreTooMany) {
  std::string text = "rules:\n", told;
  for (int i = 0; i < 80; ++i) text += "- {nme: a" + std::to_string(i) + "}\n";
  read_policy_of(text, &told);
  EXPECT_NE(told.find("\nw: and "), std::string::npos);
  EXPECT_LT(told.size(), 10'000U);
}

template <class T>
void add_names(PolicyKey::Place place, std::string_view parent, std::span<const Field<T>> rows,
               std::vector<std::pair<PolicyKey::Place, std::string>>& out) {
  for (const Field<T>& row : rows) {
    out.emplace_back(place, std::string(parent) + std::string(row.name));
    if (row.name == "cost") add_names(place, "cost.", cost_fields(), out);
    if (row.name == "skip") add_names(place, "skip.", skip_fields(), out);
    if (row.name == "import") add_names(place, "import.", import_fields(), out);
  }
}

TEST(PolicyReader, HasARowInTheSchemaForEveryKey) {
  std::vector<std::pair<PolicyKey::Place, std::string>> rows, keys;
  add_names(PolicyKey::Place::config, "", policy_fields(), rows);
  add_names(PolicyKey::Place::rule, "", rule_fields(), rows);
  add_names(PolicyKey::Place::match, "", match_fields(), rows);
  add_names(PolicyKey::Place::answers, "", answer_fields(), rows);
  add_names(PolicyKey::Place::plans, "", plan_fields(), rows);
  for (const PolicyKey& key : policy_keys()) keys.emplace_back(key.place, key.name);
  EXPECT_EQ(rows, keys) << "keys.yaml has other keys than the tables, or another order";
  const std::string schema = policy_schema();
  for (const PolicyKey& key : policy_keys()) {
    const std::string name = key.name.substr(key.name.find('.') + 1);
    EXPECT_NE(schema.find('"' + name + "\":{\"description\":"), std::string::npos) << key.name;
  }
}

}  // namespace
}  // namespace weir::policy
