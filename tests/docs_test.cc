// The pages are true where a program can tell: every quota that docs/algorithms.md shows is read as the page says, and
// every whole config in a page is one.
// (The README's examples are run by tests/readme.sh.)

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "weir/limit.h"
#include "weir/policy.h"

namespace weir::test {
namespace {

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
