// F17: a damaged config is refused with its place, or is another valid one. A refused config changes nothing, and the
// rules in effect still decide.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>

#include "gate_fixture.h"
#include "sanitized.h"
#include "seed.h"

namespace weir {
namespace {

class ConfigDamage : public test::GateTest {
 protected:
  void SetUp() override {
    text_ = test::read_file(WEIR_SOURCE_DIR "/examples/weir.yaml");
    while (text_.size() < 4'096) {  // 4 KiB, a usual size
      const std::string n = std::to_string(text_.size());
      text_ += "  - {name: more-" + n + ", match: {path: '/v1/{id}/" + n +
               "', tenant: [a, b]}, per: [tenant, '{id}'], limit: 9/s}\n";
    }
    use(text_);
    before_ = gate.policy();
    ASSERT_EQ(passed(3, {.user = "42", .path = "/api/upload"}), 3);
  }

  // Reads the text as a server reloads its file. Returns whether it is a valid config. If not, the error has the place,
  // and nothing has changed. If it is, the new rules decide, and are replaced by the old ones afterwards.
  bool reload(const std::string& text) {
    const auto policy = parse_policy(text, "w.yaml");
    if (!policy) {
      expect_places(policy.error().message);
      EXPECT_EQ(gate.policy(), before_);
      return false;
    }
    EXPECT_FALSE(policy->rules.empty()) << "a config without rules was taken";
    if (++sound_ % 10 != 1) return true;  // to apply each valid text would take too long
    const auto applied = gate.apply(*policy);
    if (!applied) {
      EXPECT_EQ(applied.error().code, ErrorCode::out_of_range) << applied.error().message;
      EXPECT_EQ(gate.policy(), before_);
      return false;
    }
    EXPECT_EQ(gate.policy(), *policy);
    EXPECT_TRUE(gate.check({.user = "7", .ip = "192.0.2.1", .path = "/api/upload"}));
    EXPECT_TRUE(gate.apply(before_, Force::yes));
    return true;
  }

  static void expect_places(const std::string& message) {
    static const std::regex place(R"(w\.yaml:[1-9][0-9]*:[1-9][0-9]*: [ -~]+|w\.yaml: and [0-9]+ more)");
    std::istringstream lines(message);
    for (std::string line; std::getline(lines, line);) EXPECT_TRUE(std::regex_match(line, place)) << line;
  }

  // The rules are in effect, and what was used before the damage is still used.
  void expect_in_force() {
    EXPECT_EQ(gate.policy(), before_);
    const Answer answer = ask({.user = "42", .path = "/api/upload"});
    EXPECT_EQ(binding(answer), "upload: 10/hour");
    EXPECT_EQ(answer.binding_limit()->decision.remaining, 10 - 3 - 1);
  }

  std::string text_;
  Policy before_;
  int sound_ = 0;
};

TEST_F(ConfigDamage, ByAnyCut) {
  int refused = 0;
  constexpr std::size_t kStep = test::kIsSanitized ? 7 : 1;
  for (std::size_t size = 0; size < text_.size(); size += kStep) refused += reload(text_.substr(0, size)) ? 0 : 1;
  EXPECT_GT(refused, 3'000 / static_cast<int>(kStep));
  expect_in_force();
}

TEST_F(ConfigDamage, ByAnyBit) {
  auto random = test::seeded();
  int refused = 0;
  constexpr int kFlips = test::kIsSanitized ? 1'000 : 10'000;
  for (int i = 0; i < kFlips; ++i) {
    std::string text = text_;
    const auto at = static_cast<std::size_t>(test::pick(random, 0, static_cast<std::int64_t>(text.size()) - 1));
    text[at] = static_cast<char>(text[at] ^ 1 << test::pick(random, 0, 7));
    refused += reload(text) ? 0 : 1;
  }
  EXPECT_GT(refused, kFlips / 10);
  expect_in_force();
}

TEST_F(ConfigDamage, ByWhatIsNoConfigAtAll) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";  // each level is nine times the one before
  for (int i = 1; i < 7; ++i) {
    const std::string name = "a" + std::to_string(i), last = "*a" + std::to_string(i - 1) + ", ";
    bomb += name + ": &" + name + " [" + last + last + last + last + last + last + last + last + last + "x]\n";
  }
  const std::string nul(1, '\0'), huge(std::size_t{100} << 20, 'a'), deep(1 << 20, '[');
  for (const char* text : {"", "\n\n", "# nothing\n", "~", "rules:", "rules: []", "[]", "{}", "rules: {}", "\xFF\xFE r",
                           "rules: [[[[", "<html>", "PK\x03\x04"}) {
    EXPECT_FALSE(reload(text)) << text;
  }
  for (const std::string& text :
       {nul, "rules: " + nul + " []", bomb, text_ + text_, text_ + "rules: []\n", huge, deep}) {
    EXPECT_FALSE(reload(text)) << text.substr(0, 100);
  }
  EXPECT_TRUE(reload("\xEF\xBB\xBF" + text_)) << "a byte order mark is no damage";
  expect_in_force();
}

}  // namespace
}  // namespace weir
