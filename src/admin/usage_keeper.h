// Keeps what everybody spent across restarts: a thread that writes what is new every ten seconds, and at the end.
//
//   weir::UsageKeeper keeper(limiter, gate, {.folder = "weir.state.usage", .days = 35});
//   auto report = keeper.report({.subject = "user:42"});
//
// A process that is killed loses what it counted since the last writing, and nothing else. Files of its own that are
// damaged are set aside, with a line in the log, and the day begins anew; one that cannot be read, or is of a newer
// version, stays as it is, and its day is counted in memory. A disk that is full or a folder that cannot be had is told
// in the log, and the counting goes on in memory. Without a folder all is in memory. Any thread. Tested by
// usage_files_test.cc and tests/server/usage.sh.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "admin/usage_files.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

struct UsageKeeperOptions {
  std::string folder{};   // empty: in memory
  std::size_t days = 35;  // files of those before go
  std::chrono::milliseconds every{10'000};
};

struct UsageKept {
  Micros written_at{0};         // when all that was counted by then was last on the disk; 0: it never was
  std::uint64_t failures = 0;   // of writing
  std::uint64_t set_aside = 0;  // files that were damaged
};

class UsageKeeper {
 public:
  // Both outlive it. The gate has counted nothing yet.
  UsageKeeper(Limiter& limiter, Gate& gate, UsageKeeperOptions options);
  ~UsageKeeper();
  UsageKeeper(const UsageKeeper&) = delete;
  UsageKeeper& operator=(const UsageKeeper&) = delete;

  // Of all processes that use the folder; of others as they last wrote.
  Result<SpendingReport> report(const SpendingQuery& query);
  UsageKept kept() const;

 private:
  void take_own();
  void take(const UsageFiles::File& file);
  void write();
  void work(const std::stop_token& stop);
  std::vector<std::string> texts_of_others() const;

  Limiter& limiter_;
  Gate& gate_;
  const UsageKeeperOptions options_;
  bool has_files_ = false;
  UsageFiles files_;
  std::vector<std::string> dates_left_;  // whose files are not ours to write over

  mutable std::mutex told_;  // guards what follows
  UsageKept kept_;
  std::string error_;  // of the last writing, which was told
  std::condition_variable_any waiting_;
  std::jthread thread_;
};

}  // namespace weir
