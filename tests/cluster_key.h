// Where a key of Weir lies in a cluster of Redis, for tests that need keys on chosen servers.
//
// Pure. Used by fleet_faults_failover_test.cc and fleet_seam_cluster_test.cc.
#pragma once

#include <cstddef>
#include <string>

#include "fleet/redis_key.h"
#include "redis/slot.h"

namespace weir::test {

inline constexpr int kClusterSlots = 16'384;

inline int slot_of_key(const std::string& key) {
  std::string head;
  fleet::append_redis_head(head, fleet::kTicketMark, fleet::redis_tag(fleet::subject_of(key)));
  return redis::slot_of(head);
}

// A key that this master of a RedisCluster has; `below`: of its first slots.
inline std::string key_on(std::size_t master, const std::string& name, int below = kClusterSlots) {
  const int first = static_cast<int>(master) * kClusterSlots / 3,
            end = static_cast<int>(master + 1) * kClusterSlots / 3;
  for (int i = 0;; ++i) {
    const std::string key = name + std::to_string(i);
    const int slot = slot_of_key(key);
    if (slot >= first && slot < end && slot < first + below) return key;
  }
}

}  // namespace weir::test
