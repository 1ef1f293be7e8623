// Does tests/schedule_test.cc find errors of the table? Seeded bugs, one at a time: it must notice every one.
//
// The mutants are in tests/mutants/table.txt. Each is one changed file of src/table, compiled as for schedule_test and
// linked with the rest of it. Then that program runs the tests that should notice, always with the same seed. A program
// that fails, crashes or does not end has noticed. The old text must be in the source exactly once, so an outdated
// mutant is noticed. Two mutants are made at a time.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "read_file.h"

namespace weir::test {
namespace {

namespace fs = std::filesystem;

struct Mutant {
  std::string what, file;
  std::vector<std::pair<std::string, std::string>> changes{};
  std::string tests{};
  bool is_quick = false;
  std::string result{};  // the error, once it was tried; empty: noticed
};

std::string with_lines(std::string text) {
  for (std::size_t at = 0; (at = text.find("\\n", at)) != text.npos;) text.replace(at, 2, "\n");
  return text;
}

// If the line begins with `mark`, sets `rest` to what follows it.
bool is_marked(const std::string& line, const std::string& mark, std::string& rest) {
  if (!line.starts_with(mark)) return false;
  rest = line.substr(mark.size());
  return true;
}

std::vector<Mutant> mutants() {
  std::vector<Mutant> all;
  std::ifstream text(fs::path(WEIR_SOURCE_DIR) / "tests/mutants/table.txt");
  std::string what, rest;
  for (std::string line; std::getline(text, line);) {
    if (is_marked(line, "# ", rest)) what = rest;
    if (is_marked(line, "file: ", rest)) all.push_back({what, rest});
    if (is_marked(line, "cpp: ", rest)) {
      const std::size_t arrow = rest.find(" =>");
      const std::string after = rest.substr(arrow + 3);
      all.back().changes.push_back(
          {with_lines(rest.substr(0, arrow)), with_lines(after.empty() ? "" : after.substr(1))});
    }
    if (is_marked(line, "by: ", rest)) {
      all.back().is_quick = is_marked(rest, "quick ", rest);
      all.back().tests = rest;
    }
  }
  return all;
}

// The source with its changes; empty if one of them does not apply exactly once.
std::string mutate(const Mutant& mutant) {
  std::string source = read_file(fs::path(WEIR_SOURCE_DIR) / "src/table" / mutant.file);
  for (const auto& [before, after] : mutant.changes) {
    const std::size_t at = source.find(before);
    if (at == source.npos || source.find(before, at + 1) != source.npos) return {};
    source.replace(at, before.size(), after);
  }
  return source;
}

bool run(const std::string& command) { return std::system(command.c_str()) == 0; }

std::string build(const Mutant& mutant, const fs::path& folder) {
  const std::string source = mutate(mutant);
  if (source.empty()) return "what it replaces does not stand in the source exactly once";
  fs::create_directories(folder);
  std::ofstream(folder / mutant.file) << source;
  const std::string object = (folder / "mutant.o").string(), errors = (folder / "errors").string();
  const std::string root = WEIR_SOURCE_DIR;
  const bool made =
      run(WEIR_CXX " -std=c++20 -O1 -w -D_GLIBCXX_ASSERTIONS -include " + root + "/tests/schedule_hook.h -I " + root +
          "/src -I " + root + "/include -c " + (folder / mutant.file).string() + " -o " + object + " 2>" + errors) &&
      run(WEIR_CXX " " + object + " " WEIR_SCHEDULE_OBJECTS " " WEIR_SCHEDULE_LIBRARIES " -pthread -o " +
          (folder / "mutant").string() + " 2>" + errors);
  return made ? "" : read_file(folder / "errors");
}

bool passes(const Mutant& mutant, const fs::path& folder) {
  return run("WEIR_SEED=1 timeout 900 " + (folder / "mutant").string() + " --gtest_fail_fast --gtest_filter='" +
             mutant.tests + "' >" + (folder / "output").string() + " 2>&1");
}

std::string try_mutant(const Mutant& mutant, const fs::path& folder) {
  const std::string errors = build(mutant, folder);
  if (!errors.empty()) return errors;
  return passes(mutant, folder) ? "no test noticed it" : "";
}

void try_all(std::vector<Mutant>& all) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < all.size(); i = next++) {
      all[i].result = try_mutant(all[i], fs::path(WEIR_BINARY_DIR) / "mutants" / ("table" + std::to_string(i)));
    }
  };
  std::thread other(work);
  work();
  other.join();
  for (const Mutant& mutant : all) EXPECT_EQ(mutant.result, "") << mutant.file << ": " << mutant.what;
}

TEST(TableMutants, QuickOnesAreNoticed) {
  std::vector<Mutant> quick = mutants();
  std::erase_if(quick, [](const Mutant& mutant) { return !mutant.is_quick; });
  EXPECT_GE(quick.size(), 4u);
  try_all(quick);
}

TEST(LongTableMutants, AreNoticed) {
  std::vector<Mutant> all = mutants();
  EXPECT_GE(all.size(), 30u);
  try_all(all);
}

// Mutants that only --long makes may be outdated.
TEST(TableMutants, StandInTheSource) {
  for (const Mutant& mutant : mutants()) EXPECT_NE(mutate(mutant), "") << mutant.file << ": " << mutant.what;
}

// Without a mutant the tests pass. One test is enough: schedule_test.cc runs them all.
TEST(TableMutants, AreNotNoticedWhereThereIsNone) {
  Mutant none{"nothing", "operation.cc", {{"#include \"table/operation.h\"", "#include \"table/operation.h\""}}};
  const std::vector<Mutant> all = mutants();
  none.tests = std::ranges::find_if(all, &Mutant::is_quick)->tests;
  const fs::path folder = fs::path(WEIR_BINARY_DIR) / "mutants/table_none";
  ASSERT_EQ(build(none, folder), "");
  EXPECT_TRUE(passes(none, folder)) << read_file(folder / "output");
}

}  // namespace
}  // namespace weir::test
