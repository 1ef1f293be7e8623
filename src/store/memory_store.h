// The memory store: cells by key, in shards, each under its mutex. Simple, right and bounded.
//
// A request locks the shards of all its keys in ascending order, decides, and writes all or nothing. A key that would
// decide like one never seen is forgotten, at the latest when room is needed; one that is still spent never is, so a
// flood of new keys is refused rather than forgiven.
//
// `now` is a reading of the store's clock, taken before the locks. A thread may be kept from running in between, and a
// key would see time run backwards, which gives permits back: so a reading that is older than what a shard has seen is
// taken again, under the locks. All members may be called from any thread. Tested by tests/store_contract_test.cc, a
// suite that any store must pass.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "algorithm/cell.h"
#include "store/siphash.h"
#include "weir/clock.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

// A key has one state for each algorithm.
struct CellName {
  Algorithm algorithm;
  std::string_view key;
};

class MemoryStore {
 public:
  MemoryStore(std::size_t keys_max, std::shared_ptr<const Clock> clock);

  // One request: all charges are taken or none is. The same key and limit twice are merged.
  Result<Verdict> charge(std::span<const Charge> charges, std::int64_t now);

  Result<Decision> acquire(const Charge& charge, std::string_view id, std::int64_t now);
  bool release(std::string_view key, std::string_view id, std::int64_t now);
  bool reset(std::string_view key, std::int64_t now);

  // Keys held, lapsed ones that no sweep has met yet included.
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kShards = 64;  // as many as there are bits in ShardSet
  using ShardSet = std::uint64_t;

  struct Entry {
    Cell cell;
    std::int64_t expires_us;  // from then on the cell decides like a fresh one
  };
  struct StoredName {
    Algorithm algorithm;
    std::string key;
  };
  // Keyed: an attacker chooses the names.
  struct NameHash {
    using is_transparent = void;
    SipKey key;
    std::size_t operator()(const CellName& name) const;
    std::size_t operator()(const StoredName& name) const { return (*this)(CellName{name.algorithm, name.key}); }
  };
  struct NameEqual {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return a.algorithm == b.algorithm && std::string_view(a.key) == std::string_view(b.key);
    }
  };
  using Entries = std::unordered_map<StoredName, Entry, NameHash, NameEqual>;

  struct Shard {
    explicit Shard(SipKey key) : entries(0, NameHash{key}) {}
    std::mutex mutex;  // guards all below
    Entries entries;
    std::size_t sweep_at = 64;             // the size at which lapsed entries are looked for
    std::int64_t earliest_us = INT64_MAX;  // no entry lapses before
    std::int64_t latest_us = 0;            // the time of the last request here
  };

  struct Debit;  // a charge under way
  class Room;    // for the keys that a request adds
  class Locks;   // the shards of a request
  template <class Visit>
  static void for_each_shard(std::deque<Shard>& shards, ShardSet set, Visit visit);
  std::size_t shard_of(const CellName& name) const;
  static std::vector<Debit> merge(std::span<const Charge> charges, std::vector<std::size_t>& places);

  std::int64_t time_of(ShardSet held, std::int64_t now);
  void prepare(Debit& debit, std::int64_t now);
  Result<Room> reserve(std::span<Debit> debits, ShardSet held, std::int64_t now);
  void take(Debit& debit, Room& room, std::int64_t now);
  void settle(Debit& debit, std::int64_t now);
  void forget(Shard& shard, const CellName& name);
  void keep(Debit& debit, Room& room, std::int64_t now);
  bool make_room(ShardSet held, std::int64_t now);
  void sweep(Shard& shard, std::int64_t now);

  const std::size_t keys_max_;
  const std::shared_ptr<const Clock> clock_;
  std::atomic<std::size_t> size_{0};
  const SipKey hash_key_;
  std::deque<Shard> shards_;  // kShards of them; a shard does not move
};

}  // namespace weir
