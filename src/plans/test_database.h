// What the tests of this folder share: a file of SQLite in a folder of the test's own, written by another's connection,
// and a wait for what a thread will do.
//
// Not for anything but tests. One thread. Tested through sqlite_source_test.cc.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "plans/plan_source.h"

namespace weir {

class PlansFolder {
 public:
  PlansFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-plans-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~PlansFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PlansFolder(const PlansFolder&) = delete;
  PlansFolder& operator=(const PlansFolder&) = delete;
  std::string at(const std::string& name) const { return path_ + '/' + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Another program that has the file open.
class OtherProgram {
 public:
  explicit OtherProgram(const std::string& file) {
    EXPECT_EQ(sqlite3_open(file.c_str(), &connection_), SQLITE_OK);
    sqlite3_busy_timeout(connection_, 5'000);
  }
  ~OtherProgram() { sqlite3_close(connection_); }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;

  void run(const std::string& sql) {
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << sql.substr(0, 100) << ": " << (message != nullptr ? message : "");
    sqlite3_free(message);
  }

 private:
  sqlite3* connection_ = nullptr;
};

// As many subjects as are promised; fewer where every access is watched.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kManySubjects = 10'000;
#else
inline constexpr int kManySubjects = 100'000;
#endif

inline double seconds_since(std::chrono::nanoseconds start) {
  return std::chrono::duration<double>(read_stopwatch() - start).count();
}

// Until it is so, but not for ever. How long it took, in seconds.
template <class Condition>
double until(Condition condition, double seconds_max = 60) {
  const auto start = read_stopwatch();
  while (!condition()) {
    if (seconds_since(start) > seconds_max) {
      ADD_FAILURE() << "not within " << seconds_max << " s";
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return seconds_since(start);
}

inline std::string plan_of(const PlanRow& row) { return row.plan.value_or("NULL"); }

}  // namespace weir
