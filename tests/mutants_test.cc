// Does the differential test find errors? At least ten mutants for each algorithm, in C++ and in Lua: it must notice
// every one.
//
// The mutants are in tests/mutants/*.txt as `cpp: old => new` and `lua: old => new`. A Lua mutant runs as it is. A C++
// mutant is compiled (compiler, flags and a precompiled header come from the build) and loaded. The old text must be in
// the source exactly once, so an outdated mutant is noticed.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "fleet/redis_script.h"
#include "lua_redis.h"
#include "read_file.h"
#include "trace.h"

namespace weir::test {
namespace {

namespace fs = std::filesystem;

struct Mutant {
  std::string file;  // of the algorithm: "bucket"
  std::string what;
  std::string language;  // "cpp" or "lua"
  std::string before, after;
};

std::vector<Mutant> mutants_of(const std::string& file) {
  std::vector<Mutant> mutants;
  std::ifstream text(fs::path(WEIR_SOURCE_DIR) / "tests/mutants" / (file + ".txt"));
  std::string what;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("# ")) what = line.substr(2);
    if (!line.starts_with("cpp: ") && !line.starts_with("lua: ")) continue;
    const std::size_t arrow = line.find(" => ");
    mutants.push_back({file, what, line.substr(0, 3), line.substr(5, arrow - 5), line.substr(arrow + 4)});
  }
  return mutants;
}

// The source with the one change; empty if what it replaces does not stand there exactly once.
std::string mutate(std::string source, const Mutant& mutant) {
  const std::size_t at = source.find(mutant.before);
  if (at == std::string::npos || source.find(mutant.before, at + 1) != std::string::npos) return {};
  return source.replace(at, mutant.before.size(), mutant.after);
}

fs::path source_of(const std::string& name) { return fs::path(WEIR_SOURCE_DIR) / "src" / name; }

std::string mutated_script(const Mutant& mutant) {
  const std::string source = read_file(source_of("algorithm/" + mutant.file + ".lua"));
  const std::string changed = mutate(source, mutant);
  std::string script(fleet::redis_script());
  const std::size_t at = script.find(source);
  if (changed.empty() || at == std::string::npos) return {};
  return script.replace(at, source.size(), changed);
}

class Library {
 public:
  explicit Library(const fs::path& path) : handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  std::unique_ptr<Engine> engine(const Limit& limit) const {
    auto* make = reinterpret_cast<Engine* (*)(const Limit&)>(::dlsym(handle_, "make_mutant"));
    return std::unique_ptr<Engine>(make(limit));
  }
  bool loaded() const { return handle_ != nullptr; }

 private:
  void* handle_;
};

std::string compile_mutant(const Mutant& mutant, const fs::path& folder) {
  const std::string source = mutate(read_file(source_of("algorithm/" + mutant.file + ".h")), mutant);
  if (source.empty()) return "what it replaces does not stand in the source exactly once";
  fs::create_directories(folder / "algorithm");
  std::ofstream(folder / "algorithm" / (mutant.file + ".h")) << source;
  const std::string object = (folder / "mutant.o").string(), library = (folder / "mutant.so").string();
  const std::string errors = " 2>" + (folder / "errors").string();
  // A folder that stays and a step that only compiles: then a compiler cache knows it again.
  const std::string command = WEIR_CXX " " WEIR_MUTANT_FLAGS " -include " WEIR_MUTANT_COMMON " -I " + folder.string() +
                              " -I " WEIR_SOURCE_DIR "/src -I " WEIR_SOURCE_DIR "/include -I " WEIR_SOURCE_DIR
                              "/tests -c " WEIR_SOURCE_DIR "/tests/mutants/engine.cc -o " +
                              object + errors + " && " WEIR_CXX " -shared " + object + " -o " + library + errors;
  return std::system(command.c_str()) == 0 ? "" : read_file(folder / "errors");
}

std::vector<Algorithm> algorithms_in(const std::string& file) {
  if (file == "bucket") return {Algorithm::token_bucket, Algorithm::leaky_bucket};
  return {parse_algorithm(file).value()};
}

class Mutants : public ::testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { seed_ = base_seed(); }

  // Traces that the real arithmetic passes, made once for an algorithm.
  static std::vector<Trace> traces(const std::string& file) {
    std::vector<Trace> all;
    for (const Algorithm algorithm : algorithms_in(file)) {
      for (std::uint64_t i = 0; i < 1'000; ++i) {
        all.push_back(random_trace(algorithm, seed_ + i, 100, i % 2 == 0 ? Time::forward : Time::both_ways));
      }
    }
    return all;
  }

  // In its own process, since a mutant may crash or never end. Both count as noticed.
  static bool notices_apart(const std::vector<Trace>& traces, const Library& library) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit minute{60, 60};  // seconds of processor time
      ::setrlimit(RLIMIT_CPU, &minute);
      ::_exit(notices(traces, [&](const Limit& limit) { return library.engine(limit); }) ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }

  template <class Make>
  static bool notices(const std::vector<Trace>& traces, Make make) {
    for (const Trace& trace : traces) {
      if (replay(trace, *make(trace.limits.front()))) return true;
    }
    return false;
  }

  static inline std::uint64_t seed_ = 0;
};

TEST_P(Mutants, AreNoticedInLua) {
  const std::vector<Trace> all = traces(GetParam());
  int count = 0;
  for (const Mutant& mutant : mutants_of(GetParam())) {
    if (mutant.language != "lua") continue;
    ++count;
    const std::string script = mutated_script(mutant);
    ASSERT_FALSE(script.empty()) << mutant.what << " what it replaces does not stand in the source exactly once";
    const auto redis = std::make_shared<LuaRedis>(script);
    EXPECT_TRUE(notices(all, [&](const Limit& limit) { return lua_engine(redis, limit); })) << mutant.what;
  }
  EXPECT_GE(count, 10);
}

// The real arithmetic passes, so a failure of a mutant is due to the mutant.
TEST_P(Mutants, AreNotNoticedWhereThereIsNone) {
  const Mutant none{GetParam(), "nothing", "cpp", "#pragma once", "#pragma once"};
  const std::vector<Trace> all = traces(GetParam());
  const fs::path folder = fs::path(WEIR_BINARY_DIR) / "mutants" / (GetParam() + "0");
  ASSERT_EQ(compile_mutant(none, folder), "");
  const Library library(folder / "mutant.so");
  ASSERT_TRUE(library.loaded()) << ::dlerror();
  EXPECT_FALSE(notices_apart(all, library));
  const auto redis = std::make_shared<LuaRedis>(fleet::redis_script());
  EXPECT_FALSE(notices(all, [&](const Limit& limit) { return lua_engine(redis, limit); }));
}

TEST_P(Mutants, AreNoticedInCpp) {
  const std::vector<Trace> all = traces(GetParam());
  int count = 0;
  for (const Mutant& mutant : mutants_of(GetParam())) {
    if (mutant.language != "cpp") continue;
    ++count;
    const fs::path folder = fs::path(WEIR_BINARY_DIR) / "mutants" / (mutant.file + std::to_string(count));
    const std::string errors = compile_mutant(mutant, folder);
    ASSERT_EQ(errors, "") << mutant.what;
    const Library library(folder / "mutant.so");
    ASSERT_TRUE(library.loaded()) << ::dlerror();
    EXPECT_TRUE(notices_apart(all, library)) << mutant.what;
  }
  EXPECT_GE(count, 10);
}

INSTANTIATE_TEST_SUITE_P(Of, Mutants,
                         ::testing::Values("fixed_window", "sliding_window", "sliding_log", "bucket", "concurrency"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::test
