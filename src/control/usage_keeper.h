// Keeps usage across restarts: a thread writes new usage every ten seconds, and at the end.
//
//   weir::control::UsageKeeper keeper(limiter, gate, {.folder = "weir.state.usage", .days = 35});
//   auto report = keeper.report({.subject = "user:42"});
//
// A killed process loses only what it counted since the last write. Its own damaged files are set aside with a log
// line, and their day starts at zero. A file that cannot be read, or that a newer version wrote, stays as it is, and
// its day is counted in memory. A full disk or an unusable folder is logged, and counting continues in memory.
// Without a folder everything is in memory. Any thread. Tested by usage_files_test.cc and tests/server/usage.sh.
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

struct UsageKeeperOptions {
  std::string folder{};   // empty: in memory
  std::size_t days = 35;  // files of earlier days are removed
  std::chrono::milliseconds every{10'000};
};

struct UsageKept {
  Micros written_at{0};         // when all usage was last on disk; 0: never
  std::uint64_t failures = 0;   // failed writes
  std::uint64_t set_aside = 0;  // damaged files
};

class UsageKeeper {
 public:
  // Both must outlive it. The gate must not have counted anything yet.
  UsageKeeper(Limiter& limiter, Gate& gate, UsageKeeperOptions options);
  ~UsageKeeper();
  UsageKeeper(const UsageKeeper&) = delete;
  UsageKeeper& operator=(const UsageKeeper&) = delete;

  // The usage of all processes that use the folder; for others, as of their last write.
  Result<UsageReport> report(const UsageQuery& query);
  UsageKept kept() const;

 private:
  void take_own();
  void take(const usage::UsageFiles::File& file);
  void write();
  void work(const std::stop_token& stop);
  std::vector<std::string> texts_of_others() const;

  Limiter& limiter_;
  Gate& gate_;
  const UsageKeeperOptions options_;
  bool has_files_ = false;
  usage::UsageFiles files_;
  std::vector<std::string> dates_left_;  // days whose files must not be overwritten

  mutable base::Mutex told_;
  UsageKept kept_ GUARDED_BY(told_);
  std::string error_ GUARDED_BY(told_);  // the last logged write error
  std::condition_variable_any waiting_;
  std::jthread thread_;
};

}  // namespace weir::control
