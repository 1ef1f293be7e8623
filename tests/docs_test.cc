// Checks in the docs what a program can check: every quota in docs/algorithms.md is read as the page says, every whole
// config in a page is valid, docs/configuration-reference.md is what the program prints, every test that
// docs/guarantees.md and docs/security.md name exists, and every link has a target. (tests/readme.sh runs the README's
// examples.)

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "read_file.h"
#include "weir/limit.h"
#include "weir/policy.h"

namespace weir::test {
namespace {

std::string source_path(const std::string& path) { return std::string(WEIR_SOURCE_DIR) + '/' + path; }

// The tests of one binary, as Suite.Behaviour: those in tests/LABEL_test.cc and tests/LABEL_*, or in all *_test.cc of
// the folder src/LABEL.
const std::set<std::string>& tests_of(const std::string& label) {
  static std::map<std::string, std::set<std::string>> known;
  const auto place = known.try_emplace(label);
  std::set<std::string>& names = place.first->second;
  if (!place.second) return names;
  const auto add = [&](const std::filesystem::path& path) {
    const std::string text = read_file(path);
    for (std::size_t at = text.find("\nTEST"); at != text.npos; at = text.find("\nTEST", at + 1)) {
      const std::size_t begin = text.find('(', at), end = text.find(')', at);
      if (begin == text.npos || end == text.npos || begin > end) continue;
      std::string name = text.substr(begin + 1, end - begin - 1);
      std::erase_if(name, [](unsigned char c) { return std::isspace(c) != 0; });
      names.insert(std::regex_replace(name, std::regex(","), "."));
    }
  };
  const bool is_own = std::filesystem::exists(source_path("tests/" + label + "_test.cc"));
  const auto folder = source_path(is_own ? "tests" : "src/" + label);
  if (!std::filesystem::is_directory(folder)) return names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const bool is_beside = is_own ? entry.path().filename().string().starts_with(label + "_")
                                  : entry.path().string().ends_with("_test.cc");
    if (is_beside && entry.is_regular_file()) add(entry.path());
  }
  return names;
}

std::vector<std::string> lines_without_code(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  bool is_code = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) is_code = !is_code;
    if (!is_code) lines.push_back(line);
  }
  return lines;
}

// The anchors of a page's headings, as GitHub makes them: `## A *b* (c)` is #a-b-c.
const std::set<std::string>& headings_of(const std::filesystem::path& page) {
  static std::map<std::filesystem::path, std::set<std::string>> known;
  const auto [found, is_new] = known.try_emplace(page.lexically_normal());
  std::set<std::string>& anchors = found->second;
  if (!is_new) return anchors;
  for (const std::string& line : lines_without_code(read_file(page))) {
    const std::size_t marks = line.find_first_not_of('#');
    if (marks == 0 || marks == line.npos || line[marks] != ' ') continue;
    std::string anchor = "#";
    for (const char c : line.substr(marks + 1)) {
      if (c == ' ') anchor += '-';
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_') {
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
    }
    anchors.insert(anchor);
  }
  return anchors;
}

// Whether `LABEL/Suite.Behaviour` names a test; a star stands for any name.
bool is_unit_test(const std::string& label, const std::string& name) {
  const std::set<std::string>& tests = tests_of(label);
  if (name == "*") return !tests.empty();
  if (name.find('*') == name.npos) return tests.count(name) > 0;
  const std::regex pattern(
      std::regex_replace(std::regex_replace(name, std::regex("\\."), "\\."), std::regex("\\*"), "\\w*"));
  return std::ranges::any_of(tests, [&](const std::string& test) { return std::regex_match(test, pattern); });
}

bool is_test(const std::string& name) {
  if (const auto slash = name.find('/'); slash != std::string::npos) {
    return is_unit_test(name.substr(0, slash), name.substr(slash + 1));
  }
  for (const std::string& path : {"tests/server/" + name + ".sh", "tests/" + name + ".sh", "tests/" + name + ".cc"}) {
    if (std::filesystem::exists(source_path(path))) return true;
  }
  return false;
}

void expect_tests_in(const std::string& page_name) {
  std::ifstream page(source_path(page_name));
  const std::regex name("`([^`]+)`");
  int rows = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| ") || line.ends_with("| test |")) continue;
    const auto column = line.rfind(" | ");
    ASSERT_NE(column, std::string::npos) << line;
    const std::string tests = line.substr(column);
    int named = 0;
    for (std::sregex_iterator at(tests.begin(), tests.end(), name), end; at != end; ++at, ++named) {
      EXPECT_TRUE(is_test((*at)[1])) << "no test is called " << (*at)[1] << ", which stands for: " << line;
    }
    EXPECT_GT(named, 0) << "a guarantee without a test: " << line;
    ++rows;
  }
  EXPECT_GT(rows, 0);
}

TEST(Docs, NameATestThatExistsForEveryPromise) {
  expect_tests_in("docs/guarantees.md");
  expect_tests_in("docs/security.md");
  const std::string fleet = read_file(source_path("docs/fleet.md"));
  const std::regex name("`([a-z_0-9]+/[A-Z]\\w*\\.[\\w*]+)`");
  int count = 0;
  for (std::sregex_iterator at(fleet.begin(), fleet.end(), name), end; at != end; ++at, ++count) {
    EXPECT_TRUE(is_test((*at)[1])) << (*at)[1];
  }
  EXPECT_GT(count, 5);
}

TEST(Docs, LinkToPagesAndHeadingsThatExist) {
  static const std::regex link(R"(\]\(([^)#\s]*)(#[^)\s]*)?\))");
  std::vector<std::filesystem::path> pages;
  for (const char* page : {"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "src/README.md"}) {
    pages.emplace_back(source_path(page));
  }
  for (const char* folder : {"docs", "examples"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path(folder))) {
      if (entry.path().extension() == ".md") pages.push_back(entry.path());
    }
  }
  int links = 0;
  for (const auto& page : pages) {
    for (const std::string& line : lines_without_code(read_file(page))) {
      for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at) {
        const std::string to = (*at)[1], heading = (*at)[2];
        if (to.find(':') != to.npos) continue;  // on the web
        const auto target = to.empty() ? page : page.parent_path() / to;
        ++links;
        EXPECT_TRUE(std::filesystem::exists(target)) << page << " links to " << to;
        if (heading.empty()) continue;
        EXPECT_EQ(headings_of(target).count(heading), 1U) << page << " links to " << to << heading;
      }
    }
  }
  EXPECT_GT(links, 100);
}

TEST(Docs, WalkThroughFilesThatExist) {
  static const std::regex file(R"(`([a-z0-9_/]+\.(h|cc|lua))`)");
  std::set<std::string> known;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path("src"))) {
    const std::string path = entry.path().lexically_relative(source_path("src")).generic_string();
    known.insert(path);
    known.insert(entry.path().filename().string());
  }
  const std::string text = read_file(source_path("src/README.md"));
  int files = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), file), end; at != end; ++at, ++files) {
    EXPECT_EQ(known.count((*at)[1]), 1U) << "src/README.md names " << (*at)[1];
  }
  EXPECT_GT(files, 10);
}

TEST(Docs, ShowQuotasThatAreReadAsTheySay) {
  std::ifstream page(WEIR_SOURCE_DIR "/docs/algorithms.md");
  const std::regex row(R"(^\| `([^`]*[0-9][^`]*)` \|.*\| `([a-z_]+)` \|$)");
  int rows = 0;
  for (std::string line; std::getline(page, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    const auto quota = parse_quota(match[1].str());
    ASSERT_TRUE(quota) << match[1] << ": " << quota.error().message;
    EXPECT_EQ(weir::to_string(quota->algorithm), match[2].str()) << match[1];
    EXPECT_TRUE(compile(*quota)) << match[1];
    ++rows;
  }
  EXPECT_EQ(rows, 8);
}

TEST(Docs, ListEveryKeyOfAConfig) {
  EXPECT_TRUE(read_file(source_path("docs/configuration-reference.md")) == policy_reference())
      << "the page is out of date; run: build/weir schema --markdown > docs/configuration-reference.md";
}

// Returns a config with `line` where this key belongs, and nothing there if `line` is empty.
std::string config_with(const PolicyKey& key, const std::string& line) {
  using enum PolicyKey::Place;
  const std::string rules = "\nrules: [{name: a, per: ip, limit: 1/s}]";
  const std::map<PolicyKey::Place, std::string> usual = {
      {config, "@" + rules},
      {rule, "rules: [{name: a, per: ip, limit: 1/s, @}]"},
      {match, "rules: [{name: a, limit: 0/s, match: {@}}]"},
      {answers, "answers: {@}" + rules},
      {plans, "plans: {default: free, tiers: {free: 1/s}, @}" + rules},
  };
  const std::map<std::pair<PolicyKey::Place, std::string>, std::string> special = {
      {{config, "rules"}, "@"},
      {{config, "skip.paths"}, "skip: {@}" + rules},
      {{config, "skip.preflights"}, "skip: {@}" + rules},
      {{config, "import.envoy"}, "import: {@}"},
      {{config, "import.algorithm"}, "import: {envoy: a, @}"},
      {{config, "import.count_denied"}, "import: {envoy: a, @}"},
      {{rule, "name"}, "rules: [{per: ip, limit: 1/s, @}]"},
      {{rule, "per"}, "rules: [{name: a, limit: 1/s, @}]"},
      {{rule, "limit"}, "plans: {default: free, tiers: {free: 1/s}}\nrules: [{name: a, per: user, @}]"},
      {{rule, "limits"}, "rules: [{name: a, per: ip, @}]"},
      {{rule, "phase"}, "rules: [{name: a, per: ip, limit: 1/s, algorithm: fixed_window, @}]"},
      {{rule, "cost.header"}, "rules: [{name: a, per: ip, limit: 1/s, cost: {@}}]"},
      {{rule, "cost.default"}, "rules: [{name: a, per: ip, limit: 1/s, cost: {header: x-cost, @}}]"},
      {{rule, "cost.max"}, "rules: [{name: a, per: ip, limit: 1/s, cost: {header: x-cost, @}}]"},
      {{plans, "default"}, "plans: {tiers: {free: 1/s}, @}" + rules},
      {{plans, "tiers"}, "plans: {default: free, @}" + rules},
      {{plans, "query"}, "plans: {source: 'sqlite:plans.db', default: free, tiers: {free: 1/s}, @}" + rules},
  };
  const auto found = special.find({key.place, key.name});
  std::string text = found == special.end() ? usual.at(key.place) : found->second;
  return text.replace(text.find('@'), 1, line);
}

std::string line_with(const PolicyKey& key, std::string_view value) {
  return key.name.substr(key.name.find('.') + 1) + ": " + std::string(value);
}

TEST(Docs, ShowExamplesOfEveryKeyThatAreAccepted) {
  for (const PolicyKey& key : policy_keys()) {
    EXPECT_FALSE(key.type.empty() || key.examples.empty()) << key.name;
    EXPECT_TRUE(key.about.ends_with('.')) << key.name;
    std::string_view left = key.examples;
    while (!left.empty()) {
      const std::string text = config_with(key, line_with(key, left.substr(0, left.find('\n'))));
      const auto policy = parse_policy(text, "example");
      EXPECT_TRUE(policy) << policy.error().message << "\n" << text;
      left.remove_prefix(std::min(left.size(), left.find('\n') == left.npos ? left.size() : left.find('\n') + 1));
    }
  }
}

TEST(Docs, StateTheDefaultOfEachKey) {
  int defaults = 0;
  for (const PolicyKey& key : policy_keys()) {
    EXPECT_NE(key.default_value.empty(), key.if_absent.empty()) << key.name << " needs a default or what is without it";
    if (key.default_value.empty()) continue;
    ++defaults;
    const std::string text = config_with(key, line_with(key, key.default_value));
    const auto with = parse_policy(text, "with"), without = parse_policy(config_with(key, ""), "without");
    ASSERT_TRUE(with && without) << text;
    EXPECT_EQ(*with, *without) << text;
  }
  EXPECT_GE(defaults, 25);
}

TEST(Docs, ShowConfigsThatAreRightAndMeanWhatTheySay) {
  int configs = 0;
  for (const char* name : {"/docs/configuration.md", "/README.md"}) {
    std::ifstream page(std::string(WEIR_SOURCE_DIR) + name);
    std::string text;
    bool inside = false;
    for (std::string line; std::getline(page, line);) {
      if (inside && line == "```") {
        const auto policy = parse_policy(text, name);
        ASSERT_TRUE(policy) << policy.error().message << "\n" << text;
        EXPECT_EQ(review(*policy, name, Micros{1'800'000'000'000'000}), std::vector<std::string>{}) << text;
        ++configs;
      }
      if (inside) text += line + '\n';
      if (line == "```yaml") text.clear();
      inside = line == "```yaml" || (inside && line != "```");
    }
  }
  EXPECT_EQ(configs, 6);
}

}  // namespace
}  // namespace weir::test
