// Who decides a key: Redis alone, or also this node's share. A small state machine, one per node.
//
//   redis   Redis decides. If a single call fails, this node decides from what it knows of the key
//           (KeyMemory::admit_alone()).
//   share   A circuit breaker is open: this node's share decides, and what it admits is unsynced
//           (unsynced_charges.h).
//   both    The breakers are closed, but charges of this node or another one are not in Redis yet: a request must pass
//           this node's share and Redis. It becomes unsynced only if Redis does not answer.
//
// From `redis` to `share` when a breaker opens, and to `both` when this node starts and finds one with unsynced
// charges. From `share` to `both` when the last breaker closes. From `both` to `redis` when this node has written its
// charges back and every other live node has reported the same since. A node waits a minute at most for a live node
// that cannot write. In a cluster, only the slots of a server whose breaker has opened are handed over.
//
// is_on() and concerns() are for any thread and cost one load. begin() is for pipelines, the rest for the store's
// thread. Tested by handover_test.cc and tests/fleet_seam_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.h"
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
    const base::MutexLock lock(mutex_);
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
    explicit Pending(Handover& handover) : count_(handover.pending_[handover.phase_.load()]) { count_.fetch_add(1); }
    ~Pending() { count_.fetch_sub(1); }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

   private:
    std::atomic<std::int64_t>& count_;
  };
  // Whether none is pending from before the return of Redis. Later ones may always be pending, under load.
  bool is_none_pending() const {
    const std::size_t phase = phase_.load();
    return pending_[1 - phase].load() == 0 && (is_new_phase_.load() || pending_[phase].load() == 0);
  }

  // What another node last reported.
  struct Other {
    std::int64_t beat_ms = 0;  // by Redis's clock
    bool is_synced = false;
    std::uint64_t id = 0;  // a hash of its id
  };

  // meet()
  //
  // A node that has just started knows of no outage. `others` are the nodes of a heartbeat that Redis has answered at
  // `redis_ms`. If one of them may have unsynced charges from before this node's first heartbeat, Redis cannot decide
  // alone yet. A node that is late may be cut off from Redis: then what it last reported is outdated. After an outage
  // the others may return a little later, so this node looks for them for as long as a heartbeat is `believed`.
  void meet(std::span<const Other> others, std::int64_t redis_ms, Micros believed, Micros now) {
    if (joined_ms_ == 0) {
      joined_ms_ = redis_ms;
      new_until_ = now + believed;
    }
    if (!is_new(now)) return met_.clear();
    const std::int64_t late_ms = believed.count() / 2'000;
    for (const Other& one : others) {
      if (std::ranges::find(met_, one.id) != met_.end()) continue;
      if (one.is_synced && one.beat_ms >= joined_ms_) {
        met_.push_back(one.id);
      } else if ((!one.is_synced || redis_ms - one.beat_ms > late_ms) && !is_on()) {
        begin();
      }
    }
  }
  bool is_new(Micros now) const { return now < new_until_; }

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
      is_new_phase_.store(false);
      return;
    }
    if (!returned_) {
      returned_ = true;
      returned_at_ = now;
      returned_ms_ = 0;
      beats_ = facts.beats;
    }
    begin_phase();
    if (returned_ms_ == 0) {
      if (facts.beats == beats_) return;
      returned_ms_ = facts.redis_ms;  // Redis's clock, a little after the return
    }
    if (!is_settled(facts.is_synced, now)) return;
    const bool are_synced = std::ranges::all_of(
        facts.others, [&](const Other& one) { return one.is_synced && one.beat_ms > returned_ms_; });
    if (are_synced || now - returned_at_ >= facts.wait_max) end(openings);
  }

  // What this node reports: it has nothing to write back from an outage, nor from before its start.
  bool reports_synced(bool is_synced, Micros now) {
    was_synced_ = was_synced_ || is_synced;
    return was_synced_ && (!is_on() || is_settled(is_synced, now));
  }

 private:
  // After this time, a thread that saw the breaker open has recorded its charge.
  static constexpr Micros kNoted{50'000};
  bool is_settled(bool is_synced, Micros now) const { return is_synced && returned_ && now - returned_at_ >= kNoted; }
  // From the return of Redis on, requests are counted apart from earlier ones, once none is pending from before the
  // last time that this was done.
  void begin_phase() {
    const std::size_t phase = phase_.load();
    if (is_new_phase_.load() || pending_[1 - phase].load() != 0) return;
    phase_.store(1 - phase);
    is_new_phase_.store(true);
  }
  std::uint64_t openings_now() const {
    const base::MutexLock lock(mutex_);
    return openings_;
  }
  void end(std::uint64_t openings) {
    const base::MutexLock lock(mutex_);
    if (openings != openings_) return;
    memory_.set_sharing(false);
    is_on_.store(false);
    are_all_.store(false);
    for (auto& some : slots_) some.store(0, std::memory_order_relaxed);
    returned_ = false;
    is_new_phase_.store(false);
  }

  KeyMemory& memory_;
  std::atomic<bool> is_on_{false}, are_all_{false};
  std::array<std::atomic<std::uint64_t>, redis::kSlots / 64> slots_{};
  std::array<std::atomic<std::int64_t>, 2> pending_{};  // by the phase in which they began
  std::atomic<std::size_t> phase_{0};                   // 0 or 1
  std::atomic<bool> is_new_phase_{false};               // it began after the return of Redis
  mutable base::Mutex mutex_;                           // guards is_on_ against openings_, too
  std::uint64_t openings_ GUARDED_BY(mutex_) = 0;
  std::uint64_t openings_seen_ = 0;  // the store's thread's, like what follows
  bool was_synced_ = false;          // once since the start
  bool returned_ = false;            // no breaker has been open since returned_at_
  Micros returned_at_{0};
  std::int64_t returned_ms_ = 0;  // by Redis's clock; 0: not known yet
  std::uint64_t beats_ = 0;
  std::int64_t joined_ms_ = 0;  // the first heartbeat, by Redis's clock; 0: none is answered yet
  Micros new_until_{0};
  std::vector<std::uint64_t> met_;  // nodes that have reported since joined_ms_ that they are synced
};

}  // namespace weir::fleet
