// The pages are true where a program can tell: every quota that docs/algorithms.md shows is read as the page says,
// every whole config in a page is one, and every test that docs/guarantees.md and docs/security.md name exists.
// (The README's examples are run by tests/readme.sh.)

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "weir/limit.h"
#include "weir/policy.h"

namespace weir::test {
namespace {

std::string source_path(const std::string& path) { return std::string(WEIR_SOURCE_DIR) + '/' + path; }

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The sources of one test binary: tests/LABEL_test.cc and what stands beside it under that name, or all *_test.cc
// beside the folder's code.
std::string sources_of(const std::string& label) {
  std::string text;
  if (std::filesystem::exists(source_path("tests/" + label + "_test.cc"))) {
    for (const auto& entry : std::filesystem::directory_iterator(source_path("tests"))) {
      if (entry.path().filename().string().starts_with(label + "_")) text += text_of(entry.path());
    }
    return text;
  }
  const auto folder = source_path(label == "limiter" ? "src" : "src/" + label);
  if (!std::filesystem::is_directory(folder)) return text;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().ends_with("_test.cc")) text += text_of(entry.path());
  }
  return text;
}

// Whether `LABEL/Suite.Behaviour` names a test; a star stands for any name.
bool is_unit_test(const std::string& label, const std::string& name) {
  const std::string sources = sources_of(label);
  if (name == "*") return !sources.empty();
  const auto dot = name.rfind('.');
  if (dot == std::string::npos) return false;
  const auto pattern = [](const std::string& part) { return std::regex_replace(part, std::regex("\\*"), "\\w*"); };
  const std::string suite = pattern(name.substr(0, dot)), behaviour = pattern(name.substr(dot + 1));
  return std::regex_search(sources, std::regex("TEST(_F|_P)?\\(" + suite + ",\\s*" + behaviour + "\\)"));
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
    EXPECT_EQ(to_string(quota->algorithm), match[2].str()) << match[1];
    EXPECT_TRUE(compile(*quota)) << match[1];
    ++rows;
  }
  EXPECT_EQ(rows, 8);
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
