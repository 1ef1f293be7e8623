// Concurrency permits that a node granted while Redis was unavailable, until Redis has a record of them.
//
// take() returns permits to report to Redis, and finish() takes the result. A release in between may reach Redis before
// the permit itself does. finish() then returns true: the release must be sent again. Permits beyond the bound
// are never reported to Redis, so they are in flight beside those that Redis counts. Any thread. Tested by
// unsynced_permits_test.cc and tests/fleet_faults_settle_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "weir/verdict.h"

namespace weir::fleet {

struct UnsyncedPermit {
  std::string key{}, id{};
  Limit limit{};  // the whole limit, not this node's share
  std::int64_t cost = 0;
  Micros until{0};  // monotonic: then it expires
};

class UnsyncedPermits {
 public:
  explicit UnsyncedPermits(std::size_t most) : most_(most) {}

  void add(UnsyncedPermit permit);
  void release(std::string_view key, std::string_view id);
  void forget(std::string_view key);

  // Permits that Redis has no record of yet and that have not expired. Each is returned once, until finish().
  std::vector<UnsyncedPermit> take(std::size_t most, Micros now);
  // True if the permit was released meanwhile. If `is_known` is false, take() returns it again.
  bool finish(const UnsyncedPermit& permit, bool is_known);

  // False if take() may return some. One load.
  bool is_empty() const { return waiting_count_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Entry {
    UnsyncedPermit permit;
    bool is_taken = false, is_released = false;
  };

  static std::string name_of(std::string_view key, std::string_view id);
  void wait(std::string name) REQUIRES(mutex_);

  const std::size_t most_;
  std::atomic<std::size_t> waiting_count_{0};
  base::Mutex mutex_;
  std::unordered_map<std::string, Entry> entries_ GUARDED_BY(mutex_);
  std::vector<std::string> waiting_ GUARDED_BY(mutex_);  // names; some may no longer have an entry
};

}  // namespace weir::fleet
