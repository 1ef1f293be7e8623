// The pages are true where a program can tell: every quota that docs/algorithms.md shows is read as the page says.
// (The README's examples are run by tests/readme.sh.)

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>

#include "weir/limit.h"

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

}  // namespace
}  // namespace weir::test
