// Shared by the tests of this folder: a second connection to a SQLite file, and a wait for what a thread will do.
//
// For tests only. One thread may use it. Tested through sqlite_source_test.cc.
#pragma once

#include <sqlite3.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "base/folder_fixture.h"
#include "plans/plan_directory.h"
#include "plans/plan_source.h"

namespace weir::plans {

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

// The promised number of subjects; fewer under a sanitizer that instruments every access.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kManySubjects = 10'000;
#else
inline constexpr int kManySubjects = 100'000;
#endif

inline double seconds_since(std::chrono::nanoseconds start) {
  return std::chrono::duration<double>(read_stopwatch() - start).count();
}

// Waits until the condition is true, but not forever. Returns the time it took, in seconds.
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

// Measures how long lookups are blocked. On a busy machine any thread may lose the processor. So only voluntary
// context switches count, since those mean that a lookup waited for another thread.
class Questions {
 public:
  void ask(Plans& plans, const std::string& subject) {
    const auto start = read_stopwatch();
    plans.find(subject);
    const double took = seconds_since(start);
    longest_ = std::max(longest_, took);
    if (++asked_ == 1 || took > 0.001) {
      rusage usage{};
      getrusage(RUSAGE_THREAD, &usage);
      if (std::exchange(gave_up_, usage.ru_nvcsw) != usage.ru_nvcsw && asked_ > 1) waited_ += took;
    }
  }
  // A caller blocked until all changes are done would ask only once or twice.
  void expect_none_held_up(double seconds) const {
    std::printf("%lld questions, the longest of %.1f ms; %.1f ms of %.0f were spent waiting\n", asked_, longest_ * 1e3,
                waited_ * 1e3, seconds * 1e3);
    EXPECT_GT(asked_, 100);
  }

 private:
  long long asked_ = 0;
  long gave_up_ = 0;
  double longest_ = 0, waited_ = 0;
};

inline std::string user(int number) { return "user:" + std::to_string(number); }

// A check that knows three plans, and accepts quotas that begin with a plausible number.
inline Result<CheckedRow> strict_check(const PlanRow& row) {
  CheckedRow checked;
  if (row.has_plan) {
    if (!row.plan) return fail(ErrorCode::invalid_argument, "its plan is NULL");
    if (*row.plan != "free" && *row.plan != "pro" && *row.plan != "enterprise") {
      return fail(ErrorCode::invalid_argument, "no plan is called '" + *row.plan + "'");
    }
    checked.plan = *row.plan;
  }
  if (row.has_override) {
    if (!row.limits) return fail(ErrorCode::invalid_argument, "its limits are NULL");
    const long long permits = std::strtoll(row.limits->c_str(), nullptr, 10);
    if (permits <= 0 || permits > 1'000'000'000) {
      return fail(ErrorCode::out_of_range, "'" + *row.limits + "' is no quota");
    }
    checked.instead = *row.limits;
  }
  return checked;
}

inline void until_plan(PlanDirectory& plans, const std::string& subject, const std::string& plan) {
  until([&] {
    const PlanTerms terms = plans.find(subject);
    return !terms.is_pending && terms.plan == plan;
  });
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

struct PlanSourceTest : testing::Test {
  static std::unique_ptr<PlanSource> opened(std::unique_ptr<PlanSource> source) {
    const Result<void> connected = source->connect();
    EXPECT_TRUE(connected) << connected.error().message;
    return source;
  }
  static PlanRow one(PlanSource& source, const std::string& subject) {
    const auto rows = source.find({&subject, 1});
    EXPECT_TRUE(rows) << rows.error().message;
    return rows && rows->size() == 1 ? rows->front() : PlanRow{};
  }
  static std::string error_of(const Result<void>& result) { return result ? "" : result.error().message; }
};

inline std::string plan_of(const PlanRow& row) { return row.plan.value_or("NULL"); }

}  // namespace weir::plans
