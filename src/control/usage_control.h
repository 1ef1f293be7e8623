// Keeps usage across restarts: a thread writes new usage every ten seconds, and at the end.
//
//   weir::control::UsageControl usage(limiter, gate, {.folder = "weir.state.usage", .days = 35});
//   auto report = usage.report({.subject = "user:42"});
//
// A killed process loses only what it counted since the last write. Its own damaged files are set aside with a log
// line, and their day starts at zero. A file that cannot be read, or that a newer version wrote, stays as it is, and
// its day is counted in memory. A full disk or an unusable folder is logged, and counting continues in memory.
// Without a folder everything is in memory. Any thread. Tested by usage_control_test.cc and tests/server/usage.sh.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "usage/usage_files.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir::control {

struct UsageControlOptions {
  std::string folder{};   // empty: in memory
  std::size_t days = 35;  // files of earlier days are removed
  std::chrono::milliseconds every{10'000};
};

struct UsageFileStatus {
  Micros written_at{0};         // when all usage was last on disk; 0: never
  std::uint64_t failures = 0;   // failed writes
  std::uint64_t set_aside = 0;  // damaged files
};

class UsageControl {
 public:
  // Both must outlive it. The gate must not have counted anything yet.
  UsageControl(Limiter& limiter, Gate& gate, UsageControlOptions options);
  ~UsageControl();
  UsageControl(const UsageControl&) = delete;
  UsageControl& operator=(const UsageControl&) = delete;

  // The usage of all processes that use the folder; for others, as of their last write.
  Result<UsageReport> report(const UsageQuery& query);
  UsageFileStatus status() const;

 private:
  void take_own();
  void take(const usage::UsageFiles::File& file);
  void write();
  void work(const std::stop_token& stop);
  std::vector<std::string> texts_of_others() const;

  Limiter& limiter_;
  Gate& gate_;
  const UsageControlOptions options_;
  bool has_files_ = false;
  usage::UsageFiles files_;
  std::vector<std::string> dates_left_;  // days whose files must not be overwritten

  mutable base::Mutex told_;
  UsageFileStatus status_ GUARDED_BY(told_);
  std::string error_ GUARDED_BY(told_);  // the last logged write error
  std::condition_variable_any waiting_;
  std::jthread thread_;
};

}  // namespace weir::control
