// Tests the tree of a config: positions, bounds, and the error for each kind of damage. Also tests flow style output.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/node.h"

namespace weir::policy {
namespace {

Node read(std::string_view text) {
  std::vector<TextProblem> problems;
  Node root = read_yaml(text, problems);
  EXPECT_TRUE(problems.empty()) << text.substr(0, 200) << ": " << problems[0].message;
  return root;
}

// Returns `line:column message` of the first problem.
std::string problem_of(std::string_view text) {
  std::vector<TextProblem> problems;
  read_yaml(text, problems);
  if (problems.empty()) return "none";
  return std::to_string(problems[0].at.line) + ':' + std::to_string(problems[0].at.column) + ' ' + problems[0].message;
}

TEST(Yaml, RecordsThePositionOfEveryValue) {
  const Node root = read("a: 1\nb:\n  - {c: d, e: 'f'}\n");
  ASSERT_TRUE(root.is_map());
  ASSERT_EQ(root.items.size(), 4U);
  EXPECT_EQ(root.items[1].text, "1");
  const Node& inner = root.items[3].items[0];
  EXPECT_EQ(inner.at.line, 3);
  EXPECT_EQ(inner.at.column, 5);
  EXPECT_EQ(inner.items[1].text, "d");
  EXPECT_EQ(inner.items[1].at.column, 9);
  EXPECT_TRUE(inner.items[1].is_plain);
  EXPECT_FALSE(inner.items[3].is_plain);
}

TEST(Yaml, ReadsJsonWithTabsAndAByteOrderMarkAndCarriageReturns) {
  EXPECT_EQ(read("{\n\t\"a\": \"x\\/y\\u00e9\",\n\t\"b\": [1, null]\n}\n").items[1].text, "x/y\xC3\xA9");
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "a: b\r\nc: d\r\n")
                .items[3]
                .text,
            "d");
  EXPECT_EQ(read(R"({"a": "\ud83d\ude00 \\ud83d"})").items[1].text, "\xF0\x9F\x98\x80 \\ud83d");
  EXPECT_TRUE(read("a: ~").items[1].is_null);
  EXPECT_TRUE(read("").is_scalar());
}

TEST(Yaml, CopiesTheValueOfAnAlias) {
  const Node root = read("a: &x [1, 2]\nb: *x\n");
  EXPECT_EQ(root.items[3].items.size(), 2U);
}

TEST(Yaml, LimitsDepthAliasesAndSizes) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_EQ(problem_of(nested(32)), "none");
  EXPECT_NE(problem_of(nested(33)).find("nested more than 32 levels deep"), std::string::npos);
  EXPECT_NE(problem_of(std::string(kPolicyBytesMax, '[')).find("nested more than 32 levels deep"), std::string::npos);
  const auto aliased = [](int count) {
    std::string text = "a: &x 1\nb: [";
    for (int i = 0; i < count; ++i) text += "*x, ";
    return text + "1]";
  };
  EXPECT_EQ(problem_of(aliased(64)), "none");
  EXPECT_NE(problem_of(aliased(65)).find("more than 64 aliases"), std::string::npos);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 8; ++i) {
    const std::string n = std::to_string(i), before = std::to_string(i - 1);
    bomb += "a" + n + ": &a" + n + " [";
    for (int k = 0; k < 8; ++k) bomb += "*a" + before + ", ";
    bomb += "x]\n";
  }
  EXPECT_NE(problem_of(bomb).find("more than"), std::string::npos);
  const std::string line = "#" + std::string(1'022, ' ') + "\n";  // 1 KiB
  std::string full;
  while (full.size() < kPolicyBytesMax) full += line;
  EXPECT_EQ(problem_of(full), "none");
  EXPECT_NE(problem_of(full + "\n").find("1 MiB"), std::string::npos);
  std::string wide;
  for (int i = 0; i < 30'000; ++i) wide += "x,";
  EXPECT_EQ(problem_of("a: [" + wide + "]"), "none");
  EXPECT_EQ(problem_of("{\"a\": [" + wide + "]}"), "none");
  for (const std::string before : {"a:\n  [", "- [", "[[", "{[", "{a: b, ["}) {
    EXPECT_NE(problem_of(before + wide).find("too many values in one bracket"), std::string::npos) << before;
  }
  std::string many = "a: [";
  for (std::size_t i = 0; i < kNodesMax; ++i) many += i % 1'000 == 0 ? "1,\n" : "1,";
  EXPECT_NE(problem_of(many + "1]").find("more than 250000 values"), std::string::npos);
}

TEST(Yaml, ErrorsNameTheMistakeAndItsPosition) {
  const std::pair<std::string, const char*> cases[] = {
      {"a: 1\nb: 2\na: 3\n", "3:1 the key 'a' is given twice"},
      {std::string("a: \0b", 5), "1:4 a control character, '\\x00'"},
      {"a: {b: /users/{id}}\n", "in quotes, such as '/users/{id}'"},
      {"a: *b\n", "must be in quotes"},
      {"a: b: c\n", "a value with a colon and a space in it must be in quotes"},
      {"a: 1\n---\nb: 2\n", "a second document begins here"},
      {"a: !!binary x\n", "the tag"},
      {"a: !!map {}\n", "the tag"},
      {"x: {[a]: b}\n", "a key must be a word"},
      {"a: [1\n", "close each bracket"},
  };
  for (const auto& [text, told] : cases)
    EXPECT_NE(problem_of(text).find(told), std::string::npos) << text << problem_of(text);
}

TEST(Flow, ParsesBackToTheSameText) {
  for (const std::string text :
       {"plain", "two words", " lead", "trail ", "a: b", "#x",       "a #b", "'",  "\"", "\\",   "~",    "null",
        "true",  "1",         "-",     "- a",    "*",    "a*",       "&a",   "!t", "%a", "@",    "`",    "{id}",
        "[x]",   "a,b",       "\n",    "\t",     "\x01", "\xC3\xA9", "?",    "|",  ">",  "a  b", "100%", "10/s"}) {
    EXPECT_EQ(read("{k: " + flow_text(text) + "}").items[1].text, text);
    EXPECT_EQ(read("{k: " + flow(list_node({text, text})) + "}").items[1].items[1].text, text);
  }
  EXPECT_EQ(flow_text("10/s burst 50"), "10/s burst 50");
}

}  // namespace
}  // namespace weir::policy
