// What the benchmarks compare the store with: one compare-and-swap, and maps under mutexes.
//
// A map does all the work of a token bucket: it uses the arithmetic of the library and returns the same Decision. So
// only storage and locking differ. A lookup makes no string from the key, and the map keeps the hash of each key, which
// is the best that a standard map can do. Any thread may call the members, except reserve().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "algorithm/bucket.h"

namespace weir::bench {

struct alignas(16) Pair {
  std::uint64_t low = 0, high = 0;
};

// One compare-and-swap of 16 bytes. If `at` is not `expected`, returns false and sets `expected` to the value of `at`.
inline bool compare_and_swap(Pair& at, Pair& expected, Pair desired) {
#if defined(__x86_64__)
  bool swapped = false;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(swapped), "+m"(at), "+a"(expected.low), "+d"(expected.high)
               : "b"(desired.low), "c"(desired.high)
               : "memory");
  return swapped;
#elif defined(__aarch64__)
  // Exclusive loads and stores, which every machine has. The single instruction of LSE costs the same.
  Pair seen;
  std::uint32_t failed = 0;
  do {
    asm volatile("ldaxp %0, %1, %2" : "=&r"(seen.low), "=&r"(seen.high) : "Q"(at) : "memory");
    const bool equal = seen.low == expected.low && seen.high == expected.high;
    const Pair next = equal ? desired : seen;
    asm volatile("stlxp %w0, %2, %3, %1" : "=&r"(failed), "=Q"(at) : "r"(next.low), "r"(next.high) : "memory");
  } while (failed != 0);
  const bool swapped = seen.low == expected.low && seen.high == expected.high;
  expected = seen;
  return swapped;
#else
#error "write the compare-and-swap of 16 bytes for this processor"
#endif
}

// The minimum that a check does with its slot: read it, then swap it.
inline void bare_charge(Pair& slot) {
  Pair old{__atomic_load_n(&slot.low, __ATOMIC_RELAXED), __atomic_load_n(&slot.high, __ATOMIC_RELAXED)};
  while (!compare_and_swap(slot, old, {old.low, old.high + 1})) {
  }
}

// Not noexcept, so that the map keeps the hash in each node. A lookup then compares few strings.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using BucketMap = std::unordered_map<std::string, algorithm::Bucket, TextHash, std::equal_to<>>;

inline Decision check_bucket(BucketMap& map, std::string_view key, const Limit& limit, std::int64_t now) {
  auto found = map.find(key);
  if (found == map.end()) found = map.emplace(std::string(key), algorithm::Bucket{}).first;
  const algorithm::Bucket settled = algorithm::bucket_settle(found->second, limit, now).state;
  const algorithm::Stepped<algorithm::Bucket> stepped = algorithm::bucket_step(settled, limit, now, 1, limit);
  found->second = stepped.decision.allowed ? stepped.next : settled;
  return stepped.decision;
}

// One map, one mutex.
class MutexedMap {
 public:
  void reserve(std::size_t keys) { map_.reserve(keys); }

  Decision check(std::string_view key, const Limit& limit, std::int64_t now) {
    const std::lock_guard lock(mutex_);
    return check_bucket(map_, key, limit, now);
  }

 private:
  std::mutex mutex_;  // guards map_
  BucketMap map_;
};

// 64 such maps, each with its own mutex.
class ShardedMap {
 public:
  void reserve(std::size_t keys) {
    for (Shard& shard : shards_) shard.map.reserve(keys / kShards);
  }

  Decision check(std::string_view key, const Limit& limit, std::int64_t now) {
    Shard& shard = shards_[TextHash{}(key) >> (64 - kShardBits)];
    const std::lock_guard lock(shard.mutex);
    return check_bucket(shard.map, key, limit, now);
  }

 private:
  static constexpr std::size_t kShardBits = 6, kShards = 1 << kShardBits;
  struct alignas(64) Shard {
    std::mutex mutex;  // guards map
    BucketMap map;
  };
  std::array<Shard, kShards> shards_;
};

}  // namespace weir::bench
