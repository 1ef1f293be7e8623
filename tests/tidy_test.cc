// Checks the checkout by the rules of tidy.h, and each rule by samples with and without a finding.
//
// The test walks the folder to find the files, since git may be missing. It leaves out build/ and the fuzz corpora.
// clang-format checks the formatting, in one version, since versions differ.
#include "tidy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace weir::tidy {
namespace {

namespace fs = std::filesystem;

std::vector<File> read_checkout() {
  const fs::path root = WEIR_SOURCE_DIR;
  std::vector<File> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string path = fs::relative(entry->path(), root).generic_string();
    if (path == ".git" || path == "build" || path == ".cache" || path == "fuzz/corpus") {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && path != ".git") {
      std::ifstream in(entry->path(), std::ios::binary);
      std::string text{std::istreambuf_iterator<char>(in), {}};
      if (text.find('\0') == text.npos) files.push_back({path, std::move(text)});
    }
  }
  return files;
}

const std::vector<File>& checkout() {
  static const std::vector<File> files = read_checkout();
  return files;
}

Paths known_paths() {
  Paths paths;
  for (const File& file : checkout()) paths.insert(file.path);
  return paths;
}

const File* find(const std::string& path) {
  for (const File& file : checkout()) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

template <class Rule>
void expect_none(Rule rule) {
  std::string findings;
  for (const File& file : checkout()) findings += to_string(rule(file));
  EXPECT_TRUE(findings.empty()) << findings;
}

// The messages of a rule about a sample; empty if there is no finding.
std::string layers(const std::string& path, const std::string& text) {
  return to_string(check_layers({path, text}, {"src/limiter_impl.h", "src/resp/number.h", "src/server/loop/loop.h"}));
}
std::string clock(const std::string& path, const std::string& text) { return to_string(check_clock({path, text})); }
std::string head(const std::string& path, const std::string& text) {
  return to_string(check_head({path, text}, {"src/resp/reply.h", "include/weir/clock.h"}));
}
std::string text_of(const std::string& path, const std::string& text) { return to_string(check_text({path, text})); }
std::string twins(const std::string& lua, const std::string& cpp) {
  return to_string(check_twins({"src/algorithm/bucket.lua", lua}, {"src/algorithm/bucket.h", cpp}));
}

bool says(const std::string& findings, const std::string& words) { return findings.find(words) != findings.npos; }

// The checkout.

TEST(Tidy, TheCheckoutIsFound) {
  EXPECT_NE(find("include/weir/limiter.h"), nullptr);
  EXPECT_NE(find("dev"), nullptr);
  EXPECT_NE(find("tests/tidy_test.cc"), nullptr);
}

TEST(Tidy, EachLayerIncludesOnlyWhatItsRowAllows) {
  const Paths known = known_paths();
  expect_none([&](const File& file) { return check_layers(file, known); });
}

TEST(Tidy, TheTableOfFoldersIsThatOfTheLayers) {
  const File* contributing = find("CONTRIBUTING.md");
  ASSERT_NE(contributing, nullptr);
  const Findings findings = check_folder_table(*contributing);
  EXPECT_TRUE(findings.empty()) << to_string(findings);
}

TEST(Tidy, OnlyTheClockReadsTheTime) { expect_none(check_clock); }

TEST(Tidy, NothingIsDefinedTwice) {
  const Findings findings = check_one_definition(checkout());
  EXPECT_TRUE(findings.empty()) << to_string(findings);
}

TEST(Tidy, AFolderIsANamespace) {
  std::string public_text;
  for (const File& file : checkout()) {
    if (file.path.rfind("include/weir/", 0) == 0) public_text += file.text;
  }
  expect_none([&](const File& file) { return check_namespaces(file, public_text); });
}

TEST(Tidy, EveryLuaFileOfAnAlgorithmHasItsTwinAndIsInTheScript) {
  const File* assembly = find("cmake/script.cmake");
  ASSERT_NE(assembly, nullptr);
  for (const File& file : checkout()) {
    const fs::path path = file.path;
    if (path.parent_path() != "src/algorithm" || path.extension() != ".lua") continue;
    const File* header = find(fs::path(path).replace_extension(".h").generic_string());
    EXPECT_NE(header, nullptr) << file.path << ":1: has no header of the same name beside it";
    const Findings findings = check_twins(file, header != nullptr ? *header : File{});
    EXPECT_TRUE(findings.empty()) << to_string(findings);
    EXPECT_TRUE(says(assembly->text, path.stem().string())) << "cmake/script.cmake:1: leaves out " << file.path;
  }
}

TEST(Tidy, EveryNamedTestIsThere) {
  const Paths known = known_paths();
  expect_none([&](const File& file) { return check_named_tests(file, known); });
}

TEST(Tidy, EveryFileBeginsWithAHeadComment) {
  const Paths known = known_paths();
  expect_none([&](const File& file) { return check_head(file, known); });
}

TEST(Tidy, TheTextIsClean) { expect_none(check_text); }

TEST(Tidy, NoPathOfAMachineIsNamed) { expect_none(check_machine_paths); }

TEST(Tidy, TheSourcesAreFormatted) {
  if (std::system("command -v clang-format-14 >/dev/null 2>&1") != 0) {
    ASSERT_EQ(std::getenv("CI"), nullptr) << "clang-format-14 is missing; ./dev setup brings it";
    GTEST_SKIP() << "clang-format-14 is missing, so formatting was not checked; ./dev setup brings it";
  }
  std::string command = "cd '" WEIR_SOURCE_DIR "' && clang-format-14 --dry-run -Werror --style=file";
  for (const File& file : checkout()) {
    const fs::path path = file.path;
    if (path.extension() == ".h" || path.extension() == ".cc") command += " '" + file.path + "'";
  }
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output, last;
  std::array<char, 4096> chunk;
  while (fgets(chunk.data(), chunk.size(), pipe) != nullptr) {  // the first place in each file is enough
    const std::string line = chunk.data(), path = line.substr(0, line.find(':'));
    if (says(line, ": error: ") && path != last) output += line, last = path;
  }
  EXPECT_EQ(pclose(pipe), 0) << output << "run: ./dev lint --fix";
}

// The rules.

TEST(TidyRules, AnAlgorithmMayNotReachUp) {
  EXPECT_EQ(layers("src/algorithm/a.h", "#include \"weir/verdict.h\"\n#include \"algorithm/b.h\"\n"), "");
  EXPECT_TRUE(says(layers("src/algorithm/a.h", "\n#include \"store/b.h\"\n"), "src/algorithm/a.h:2: \"store/b.h\""));
  EXPECT_TRUE(says(layers("src/algorithm/a.cc", "#include \"weir/limiter.h\"\n"), "layer 'limiter.h'"));
  EXPECT_TRUE(says(layers("src/algorithm/a.cc", "#include <fstream>\n"), "(io)"));
  EXPECT_TRUE(says(layers("src/algorithm/a.cc", "#include \"limiter/wait_queue.h\"\n"), "layer 'limiter'"));
}

TEST(TidyRules, TheCodecKnowsOnlyTheStandardLibrary) {
  EXPECT_EQ(layers("src/resp/a.cc", "#include \"number.h\"\n#include \"resp/b.h\"\n#include <string>\n"), "");
  EXPECT_NE(layers("src/resp/a.cc", "#include \"weir/result.h\"\n"), "");
  EXPECT_NE(layers("src/resp/a.cc", "#include <sys/socket.h>\n"), "");
  EXPECT_NE(layers("src/resp/a.cc", "#include <fmt/format.h>\n"), "");
}

TEST(TidyRules, EveryOtherLayerKeepsItsRow) {
  EXPECT_EQ(layers("src/store/a.cc", "#include \"algorithm/b.h\"\n#include \"table/b.h\"\n#include \"weir/clock.h\"\n"),
            "");
  EXPECT_NE(layers("src/store/a.cc", "#include \"policy/b.h\"\n"), "");
  EXPECT_EQ(layers("src/limiter/limiter.cc", "#include \"store/b.h\"\n#include \"weir/limiter.h\"\n"), "");
  EXPECT_NE(layers("src/limiter/limiter.cc", "#include \"protocol/b.h\"\n"), "");
  EXPECT_EQ(layers("src/protocol/a.cc", "#include \"resp/b.h\"\n#include \"weir/verdict.h\"\n"), "");
  EXPECT_NE(layers("src/protocol/a.cc", "#include \"weir/limiter.h\"\n"), "");
  EXPECT_NE(layers("src/protocol/a.cc", "#include <netinet/in.h>\n"), "");
  EXPECT_EQ(layers("src/server/http/a.cc", "#include \"server/loop/b.h\"\n#include \"weir/limiter.h\"\n"), "");
  EXPECT_NE(layers("src/server/http/a.cc", "#include \"server/admin/b.h\"\n"), "");
  EXPECT_NE(layers("src/server/loop/a.cc", "#include \"server/http/b.h\"\n"), "");
  EXPECT_EQ(layers("src/server/a.cc", "#include \"server/b.h\"\n#include \"server/admin/b.h\"\n"), "");
  EXPECT_NE(layers("src/server/a.cc", "#include \"store/b.h\"\n"), "");
  EXPECT_NE(layers("include/weir/a.h", "#include \"algorithm/b.h\"\n"), "");
  EXPECT_NE(layers("include/weir/a.h", "#include <tl/expected.hpp>\n"), "");
  EXPECT_EQ(layers("include/weir/result.h", "#include <tl/expected.hpp>\n"), "");
  EXPECT_NE(layers("src/helpers/a.h", "#include \"weir/clock.h\"\n"), "");
  EXPECT_EQ(layers("tests/a_test.cc", "#include \"store/b.h\"\n#include \"algorithm/b.h\"\n"), "");
  EXPECT_EQ(layers("src/algorithm/a.h", "// #include \"store/b.h\"\n/* \n#include \"store/b.h\"\n*/\n"), "");
}

TEST(TidyRules, ATableOfFoldersMayNotBeWrong) {
  const std::string all = to_string(check_folder_table({"C.md", "| `src/resp/` | RESP | `base` |\n"}));
  EXPECT_TRUE(says(all, "C.md:1: 'resp' may include:\n")) << all;
  EXPECT_TRUE(says(all, "leaves out 'gate'")) << all;
  EXPECT_FALSE(says(all, "leaves out 'resp'")) << all;
  EXPECT_TRUE(says(to_string(check_folder_table({"C.md", "| `src/nothing/` | x | public |\n"})), "no layer is called"));
}

TEST(TidyRules, TheTimeIsReadInOneFile) {
  for (const char* line : {"auto t = std::chrono::steady_clock::now();", "using C = std::chrono::system_clock;",
                           "clock_gettime(CLOCK_MONOTONIC, &t);", "gettimeofday(&t, nullptr);",
                           "auto t = time(nullptr);", "auto t = std::time(nullptr);", "timer::clock_type::now();"}) {
    EXPECT_TRUE(says(clock("src/store/a.cc", line), "src/store/a.cc:1: ")) << line;
    EXPECT_NE(clock("include/weir/a.h", line), "") << line;
    EXPECT_EQ(clock("src/base/clock.cc", line) + clock("tests/a.cc", line) + clock("bench/a.cc", line), "") << line;
  }
  EXPECT_NE(clock("src/algorithm/a.lua", "local now = os.time()\n"), "");
  EXPECT_EQ(clock("src/store/a.cc", "// steady_clock would do\nlog(\"steady_clock\"); clock->now(); run_time(0);\n"),
            "");
}

TEST(TidyRules, WhatIsDefinedTwiceIsSeen) {
  const std::string in_weir = "namespace weir {\nstruct A {\n};\n";
  const auto found = [&](const std::string& more) {
    return to_string(check_one_definition({{"src/table/a.h", in_weir}, {"src/policy/b.h", more}}));
  };
  EXPECT_TRUE(says(found("namespace weir {\nenum class A : int { x };\n"),
                   "src/policy/b.h:2: A is defined in src/table/a.h:2"));
  EXPECT_TRUE(
      says(found("namespace weir {\nnamespace c {\n}  // namespace c\nclass A final : public B {\n"), "b.h:4: A"));
  EXPECT_EQ(found("namespace weir::table {\nstruct A {\n"), "");
  EXPECT_EQ(found("namespace weir {\nnamespace {\nstruct A {\n"), "");
  const auto twice = [](const std::string& one, const std::string& other) {
    return to_string(check_one_definition({{"src/table/a.h", "namespace weir {\n" + one + "\n"},
                                           {"src/policy/b.h", "namespace weir {\n" + other + "\n"}}));
  };
  EXPECT_TRUE(says(twice("std::string text(Micros time);", "inline std::string text(Micros time) {"), "b.h:2: text("));
  EXPECT_EQ(twice("std::string text(Micros time);", "std::string text(double time);"), "");
  EXPECT_EQ(twice("std::string text(Micros time);", "  std::string text(Micros time);"), "") << "of a class";
  EXPECT_EQ(found("namespace weir {\nstruct A;\nstruct A::Impl {\n"), "");
}

TEST(TidyRules, AFolderIsANamespace) {
  const auto found = [](const std::string& path, const std::string& text) {
    return to_string(check_namespaces({path, text}, "class Gate {\n};\nint parse_policy();\n"));
  };
  EXPECT_EQ(found("src/fleet/a.h", "namespace weir::fleet {\nstruct A {\n};\n}  // namespace weir::fleet\n"), "");
  EXPECT_EQ(found("src/server/http/a.h", "namespace weir::server::http {\nint a();\n"), "");
  EXPECT_EQ(found("src/fleet/a.cc", "namespace weir::fleet::a_test {\nint a() {}\n"), "");
  EXPECT_EQ(found("src/gate/a.h", "namespace weir::policy {\nclass Rulebook;\n}  // namespace weir::policy\n"), "");
  EXPECT_EQ(found("src/gate/a.cc", "namespace weir {\nResult<void> Gate::check(int a) {\n}\nint parse_policy() {\n}\n"),
            "");
  EXPECT_TRUE(says(found("src/gate/a.h", "namespace weir::policy {\nint a();\n"), "src/gate/a.h:2: only declares"));
  EXPECT_TRUE(says(found("src/gate/a.h", "namespace weir {\nstruct A {\n"), "a.h:2: include/weir does not declare A"));
  EXPECT_TRUE(says(found("src/gate/a.cc", "namespace weir {\nint more(int b) {\n"), "a.cc:2: include/weir does not"));
}

TEST(TidyRules, TwinsHaveTheSameFunctionsInTheSameOrder) {
  const std::string lua = "local function bucket_debt(s)\nend\nlocal function bucket_step(s)\nend\n";
  const std::string cpp =
      "inline int bucket_debt(int s) { return s; }\ninline Stepped<Bucket> bucket_step(int s) {\n}\n";
  EXPECT_EQ(twins(lua, cpp), "");
  EXPECT_TRUE(says(twins(lua + "local function bucket_peek(s)\nend\n", cpp), "bucket.lua:5: bucket_peek has no twin"));
  EXPECT_TRUE(says(twins(lua, cpp + "inline int bucket_more(int s) {}\n"), "bucket.h:4: bucket_more has no twin"));
  EXPECT_TRUE(
      says(twins("local function bucket_step(s)\nend\nlocal function bucket_debt(s)\nend\n", cpp), "in one order"));
  EXPECT_EQ(twins(lua, "// bucket_old(x)\n" + cpp + "  return bucket_inner(s);\nint helper(int s) {}\n"), "");
}

TEST(TidyRules, ALuaTwinIsPure) {
  EXPECT_TRUE(says(twins("local t = redis.call('TIME')\n", ""), "bucket.lua:1: 'redis.call'"));
  EXPECT_NE(twins("local t = math.random(3)\n", ""), "");
  EXPECT_EQ(twins("-- redis.call is for the wrapper\nlocal t = math.floor(3)\n", ""), "");
}

TEST(TidyRules, AHeadCommentIsProse) {
  const std::string good = "// What this is and why it is this way,\n// in two lines.\n";
  EXPECT_EQ(head("src/a.cc", good + "\n#include <string>\n"), "");
  EXPECT_NE(head("src/a.cc", "#include <string>\n" + good), "");
  EXPECT_NE(head("src/a.cc", "// Copyright.\n// Us.\n"), "");
  EXPECT_NE(head("src/a.cc", "// One line of many words, and then no more than that one.\n"), "");
  EXPECT_EQ(head("src/a.lua", "-- What this is and why it is this way,\n-- in two lines.\n"), "");
  EXPECT_EQ(head("dev", "#!/usr/bin/env bash\n# What this is and why it is this way,\n# in two lines.\n"), "");
  EXPECT_EQ(head("src/resp/reply.cc", "// Bounds every length before it allocates.\n"), "");
  EXPECT_EQ(head("src/base/clock.cc", "// The one place that asks.\n"), "");
  EXPECT_EQ(head("src/resp/reply_test.cc", "// Tests of replies: split anywhere.\n"), "");
  EXPECT_NE(head("src/resp/other_test.cc", "// Tests of replies: split anywhere.\n"), "");
  EXPECT_NE(head("src/resp/reply.cc", "#include \"reply.h\"\n"), "");
  EXPECT_NE(head("tests/a.sh", "#!/usr/bin/env bash\nset -e\n"), "");
  EXPECT_EQ(head("docs/a.md", "No comment.\n"), "");
}

TEST(TidyRules, TextHasNoLitter) {
  const std::string promise = std::string("TO") + "DO";
  EXPECT_EQ(text_of("src/a.cc", "int a;\n"), "");
  EXPECT_TRUE(says(text_of("src/a.cc", "int a;\n\tint b;\n"), "src/a.cc:2: a tab"));
  EXPECT_TRUE(says(text_of("docs/a.md", "end \n"), "blanks at the end"));
  EXPECT_TRUE(says(text_of("docs/a.md", "end\r\n"), "blanks at the end"));
  EXPECT_TRUE(says(text_of("docs/a.md", "end"), "no newline"));
  EXPECT_TRUE(says(text_of("src/a.cc", "// " + promise + ": later\n"), "a promise"));
  EXPECT_EQ(text_of("src/a.cc", "// " + promise + " (#12): later\n"), "");
  EXPECT_EQ(text_of("tests/a.sh", "mktemp -d weir.XXXXXX\n"), "");
}

TEST(TidyRules, LinesAndFilesAreShort) {
  EXPECT_EQ(text_of("src/a.cc", std::string(120, 'x') + "\n"), "");
  EXPECT_TRUE(says(text_of("src/a.cc", std::string(121, 'x') + "\n"), "121 characters"));
  EXPECT_EQ(text_of("docs/a.md", std::string(300, 'x') + "\n"), "");
  std::string umlauts;
  for (int i = 0; i < 120; ++i) umlauts += "\xC3\xA4";
  EXPECT_EQ(text_of("src/a.cc", umlauts + "\n"), "");
  EXPECT_EQ(text_of("src/a.cc", std::string(600, '\n')), "");
  EXPECT_TRUE(says(text_of("src/a.cc", std::string(601, '\n')), "601 lines"));
}

TEST(TidyRules, ANamedTestIsThere) {
  const Paths known = {"tests/a_test.cc"};
  EXPECT_TRUE(check_named_tests({"src/table/a.h", "// Pure. Tested by a_test.cc.\n"}, known).empty());
  EXPECT_EQ(check_named_tests({"src/table/a.h", "// Pure. Tested by ba_test.cc.\n"}, known).size(), 1u);
}

TEST(TidyRules, HeadersAreReadOnce) {
  EXPECT_EQ(text_of("src/a.h", "#pragma once\n"), "");
  EXPECT_NE(text_of("src/a.h", "#ifndef A\n"), "");
}

TEST(TidyRules, PathsOfAMachineAreSeen) {
  const std::string bad = std::string("cd /ho") + "me/ada/weir\n";
  EXPECT_TRUE(says(to_string(check_machine_paths({"docs/a.md", "\n" + bad})), "docs/a.md:2: "));
  EXPECT_NE(to_string(check_machine_paths({"docs/a.md", std::string("\"/ro") + "ot/x\""})), "");
  EXPECT_EQ(to_string(check_machine_paths({"docs/a.md", "POST /v1/check, build/weir, https://a.example/homepage/\n"})),
            "");
}

}  // namespace
}  // namespace weir::tidy
