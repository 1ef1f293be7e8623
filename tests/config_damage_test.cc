// F17: a config that is damaged, in whatever way, is refused with its place or is another sound one; what is refused
// changes nothing, and the rules in force go on deciding.
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>

#include "gate_fixture.h"
#include "seed.h"

namespace weir {
namespace {

class ConfigDamage : public test::GateTest {
 protected:
  void SetUp() override {
    text_ = test::read_file(WEIR_SOURCE_DIR "/examples/weir.yaml");
    while (text_.size() < 3'800) {  // 4 KiB, as people write them
      const std::string n = std::to_string(text_.size());
      text_ += "  - {name: more-" + n + ", match: {path: '/v1/{id}/" + n +
               "', tenant: [a, b]}, per: [tenant, '{id}'], limit: 9/s}\n";
    }
    use(text_);
    before_ = gate.policy();
  }

  // Whether it was taken; if not, the error names a place and nothing has changed.
  bool damaged(const std::string& text) {
    const auto policy = parse_policy(text, "w.yaml");
    if (policy) {
      EXPECT_FALSE(policy->rules.empty()) << "a config without rules was taken";
      const auto again = parse_policy(to_yaml(*policy), "again");
      EXPECT_TRUE(again && *again == *policy);
      return true;
    }
    static const std::regex place(R"(^w\.yaml:[0-9]+:[0-9]+: .+)");
    const std::string first = policy.error().message.substr(0, policy.error().message.find('\n'));
    EXPECT_TRUE(std::regex_match(first, place)) << first;
    for (const char c : policy.error().message) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << first;
    return false;
  }

  void expect_in_force() {
    EXPECT_EQ(gate.policy(), before_);
    EXPECT_FALSE(ask({.ip = "192.0.2.1", .method = "OPTIONS", .path = "/health"}).limits.size() > 0);
    EXPECT_EQ(binding(ask({.user = "42", .path = "/api/upload"})).substr(0, 6), "upload");
  }

  std::string text_;
  Policy before_;
};

TEST_F(ConfigDamage, ByAnyCut) {
  int refused = 0;
  for (std::size_t size = 0; size < text_.size(); ++size) refused += damaged(text_.substr(0, size)) ? 0 : 1;
  EXPECT_GT(refused, 3'000);
  expect_in_force();
}

TEST_F(ConfigDamage, ByAnyBit) {
  auto random = test::seeded();
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text = text_;
    const auto at = static_cast<std::size_t>(test::pick(random, 0, static_cast<std::int64_t>(text.size()) - 1));
    text[at] = static_cast<char>(text[at] ^ 1 << test::pick(random, 0, 7));
    refused += damaged(text) ? 0 : 1;
  }
  EXPECT_GT(refused, 1'000);
  expect_in_force();
}

TEST_F(ConfigDamage, ByWhatIsNoConfigAtAll) {
  std::string bomb = "rules: &a [x]\n";
  for (int i = 0; i < 70; ++i) bomb += "k" + std::to_string(i) + ": *a\n";
  for (const std::string& text : std::vector<std::string>{"",
                                                          "\n\n",
                                                          "# nothing\n",
                                                          "~",
                                                          "rules:",
                                                          "rules: []",
                                                          "[]",
                                                          "{}",
                                                          "rules: {}",
                                                          std::string(1, '\0'),
                                                          std::string("rules: \0 []", 11),
                                                          "\xFF\xFE r",
                                                          bomb,
                                                          text_ + text_,
                                                          text_ + "rules: []\n",
                                                          std::string(std::size_t{100} << 20, 'a'),
                                                          std::string(1 << 20, '['),
                                                          "rules: [[[[",
                                                          "<html>",
                                                          "PK\x03\x04"}) {
    EXPECT_FALSE(damaged(text)) << text.substr(0, 100);
  }
  EXPECT_TRUE(damaged("\xEF\xBB\xBF" + text_)) << "a byte order mark is no damage";
  expect_in_force();
}

}  // namespace
}  // namespace weir
