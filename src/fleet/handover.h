// Who decides a key: Redis alone, or also this node's share. A small state machine, one per node.
//
//   redis   Redis decides. If a single call fails, this node decides from what it knows of the key
//           (KeyMemory::admit_alone()).
//   away    A circuit breaker is open: this node's share decides, and what it admits is unsynced
//           (unsynced_charges.h). docs/fleet.md calls this state `share`.
//   both    The breakers are closed again, but charges of this node or another one are not in Redis yet: a request
//           must pass this node's share and Redis. It becomes unsynced only if Redis does not answer, and all nodes
//           together admit no more than their shares.
//
// From `redis` to `away` when a breaker opens. From `away` to `both` when the last one closes. From `both` to `redis`
// when this node has written its charges back, and every other live node has reported the same since then. A node waits
// a minute at most for a live node whose charges cannot be written. In a cluster, only the slots of a server whose
// breaker has opened are handed over.
//
// is_on() and concerns() are for any thread and cost one load. begin() is for pipelines, the rest for the store's
// thread. Tested by handover_test.cc and tests/fleet_seam_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "fleet/key_memory.h"
#include "redis/slot.h"
#include "weir/clock.h"

namespace weir::fleet {

class Handover {
 public:
  static constexpr int kAll = -1;  // every slot, or there are none

  explicit Handover(KeyMemory& memory) : memory_(memory) {}

  // Whether this node's share takes part in deciding: for any key; for keys in this slot.
  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  bool concerns(int slot) const {
    if (!is_on()) return false;
    if (slot < 0 || are_all_.load(std::memory_order_relaxed)) return true;
    const auto bit = static_cast<std::size_t>(slot);
    return (slots_[bit / 64].load(std::memory_order_relaxed) >> bit % 64 & 1) != 0;
  }

  // A breaker has opened.
  void begin(int slot = kAll) {
    const std::lock_guard lock(mutex_);
    ++openings_;
    if (slot < 0) {
      are_all_.store(true, std::memory_order_relaxed);
    } else {
      const auto bit = static_cast<std::size_t>(slot);
      slots_[bit / 64].fetch_or(std::uint64_t{1} << bit % 64, std::memory_order_relaxed);
    }
    if (!is_on_.exchange(true)) memory_.set_sharing(true);
  }

  // A request that this node's share has admitted while Redis is being asked. If Redis does not answer, the request
  // becomes unsynced.
  class Pending {
   public:
    explicit Pending(Handover& handover) : handover_(handover) { handover_.pending_.fetch_add(1); }
    ~Pending() { handover_.pending_.fetch_sub(1); }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

   private:
    Handover& handover_;
  };
  bool is_none_pending() const { return pending_.load() == 0; }

  // What another node last reported.
  struct Other {
    std::int64_t beat_ms = 0;  // by Redis's clock
    bool is_synced = false;
  };

  // turn()
  //
  // Checks whether Redis can decide alone again. `beats` counts the heartbeats that Redis has answered, and
  // `redis_ms` is Redis's clock as of the last of them. `others` are all other nodes that are believed to be alive.
  struct Facts {
    bool is_any_open = false;
    bool is_synced = false;   // this node's charges are in Redis
    std::uint64_t beats = 0;  // answered heartbeats, in total
    std::int64_t redis_ms = 0;
    std::span<const Other> others{};
    Micros wait_max{60'000'000};  // how long to wait for a live node that still writes back
  };
  void turn(const Facts& facts, Micros now) {
    if (!is_on()) return;
    const std::uint64_t openings = openings_now();
    if (facts.is_any_open || openings != openings_seen_) {
      openings_seen_ = openings;
      returned_ = false;
      return;
    }
    if (!returned_) {
      returned_ = true;
      returned_at_ = now;
      returned_ms_ = 0;
      beats_ = facts.beats;
    }
    if (returned_ms_ == 0) {
      if (facts.beats == beats_) return;
      returned_ms_ = facts.redis_ms;  // Redis's clock, a little after the return
    }
    if (!is_settled(facts.is_synced, now)) return;
    const bool are_synced = std::ranges::all_of(
        facts.others, [&](const Other& one) { return one.is_synced && one.beat_ms > returned_ms_; });
    if (are_synced || now - returned_at_ >= facts.wait_max) end(openings);
  }

  // What this node reports: it has nothing to write back from an outage.
  bool reports_synced(bool is_synced, Micros now) const { return !is_on() || is_settled(is_synced, now); }

 private:
  // After this time, a thread that saw the breaker open has recorded its charge.
  static constexpr Micros kNoted{50'000};
  bool is_settled(bool is_synced, Micros now) const { return is_synced && returned_ && now - returned_at_ >= kNoted; }
  std::uint64_t openings_now() const {
    const std::lock_guard lock(mutex_);
    return openings_;
  }
  void end(std::uint64_t openings) {
    const std::lock_guard lock(mutex_);
    if (openings != openings_) return;
    memory_.set_sharing(false);
    is_on_.store(false);
    are_all_.store(false);
    for (auto& some : slots_) some.store(0, std::memory_order_relaxed);
    returned_ = false;
  }

  KeyMemory& memory_;
  std::atomic<bool> is_on_{false}, are_all_{false};
  std::array<std::atomic<std::uint64_t>, redis::kSlots / 64> slots_{};
  std::atomic<std::int64_t> pending_{0};
  mutable std::mutex mutex_;  // guards openings_, and is_on_ against it
  std::uint64_t openings_ = 0;
  std::uint64_t openings_seen_ = 0;  // the store's thread's, like what follows
  bool returned_ = false;            // no breaker has been open since returned_at_
  Micros returned_at_{0};
  std::int64_t returned_ms_ = 0;  // by Redis's clock; 0: not known yet
  std::uint64_t beats_ = 0;
};

}  // namespace weir::fleet
