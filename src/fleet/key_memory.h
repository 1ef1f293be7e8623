// What this node knows of keys: a record for each key that it asked Redis about, for at most 65,536 keys by default.
//
//   KeyMemory::Asked asked{now};
//   if (auto denied = memory.ask(mark, limit, cost, asked)) return *denied;   // else it is counted as in flight
//   memory.note(mark, limit, cost, decision, decided_us, asked, now);         // Redis answered, or
//   memory.miss(mark, limit, cost, asked);                                    // it did not
//   memory.admit_alone(mark, limit, cost, terms, grant);                            // may this node admit it alone?
//
// A record belongs to a name and a period: versions of a limit share it. It has what Redis last said was used,
// ordered by Redis's clock, because replies overtake each other. It has the permits of calls in flight, and an upper
// bound on the unsynced permits of this key (unsynced_charges.h knows the exact number). Denials of one permit are
// cached until their wait is over. drop() invalidates a denial early, and keeps what is known to be used. When this
// node decides by its share of a limit (fallback_store.h), begin_share() starts that share once from what is known.
//
// Bounded: sets of four records. The record that recovers first is evicted, but never one with a call in flight. A set
// remembers the highest use that it evicted: admit_alone() assumes that much of a key without a record. 64 bits of a
// keyed hash replace the names of key_name.h, so that no client can choose two that collide. Time is that of the
// monotonic clock. Any thread. A lock is held for some tens of nanoseconds, or for as long as the caller's function
// takes. Tested by key_memory_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm/limit.h"
#include "base/mutex.h"
#include "base/siphash.h"
#include "fleet/key_name.h"
#include "fleet/share.h"
#include "table/finder.h"
#include "weir/verdict.h"

namespace weir::fleet {

// What is known about a key.
struct KnownUsage {
  std::int64_t remaining = 0;
  Micros reset_at{0};     // from then on it is full, unless another node admitted requests since
  std::int64_t used = 0;  // may exceed the limit, if a higher version of it admitted more
};

class KeyMemory {
 public:
  // Whether the share of a key stays in use, see begin_share(). Empty: always.
  using IsLasting = std::function<bool(std::string_view key)>;

  KeyMemory(std::size_t keys, base::SipKey secret, IsLasting is_lasting = {});

  bool is_lasting(std::string_view key) const { return !is_lasting_ || is_lasting_(key); }

  // denial()
  //
  // The cached denial, if Redis would certainly deny a request of this cost.
  std::optional<Decision> denial(KeyMark mark, const Limit& limit, std::int64_t cost, Micros now);

  // guess()
  //
  // The last known state of a key, for a request that another limit denies, so that this key is not charged. Returns
  // nothing if the state is unknown, or if this limit would also deny, for an unknown wait.
  std::optional<Decision> guess(KeyMark mark, const Limit& limit, std::int64_t cost, Micros now);

  // The last known state of a key; nothing if it is full again, or if the reply of Redis was about another limit.
  std::optional<KnownUsage> known_usage(KeyMark mark, const Limit& limit, Micros now);

  // A request to Redis, from before it is sent. Its reply may be outdated when it arrives, if permits were refunded
  // meanwhile.
  struct Asked {
    Micros at{0};
    std::uint64_t drops = 0;
    std::uint32_t counted = 0;          // bit i: charge i is counted as in flight
    std::uint32_t without_record = 0;   // bit i: it is counted in its set, because it has no record
    bool is_late = false;               // its deadline is over, so newer replies may have arrived long ago
    std::uint32_t unsynced_places = 0;  // bit i: its key may have unsynced charges
  };
  Asked begin(Micros now) const { return {.at = now, .drops = drops_.load()}; }

  // ask()
  //
  // Returns a cached denial, or nothing, and then counts charge number `place` as in flight. is_any_unsynced() returns
  // whether any key has unsynced charges, since an unknown key may have some. It is called while the record is
  // locked, so a thread that adds unsynced charges later finds the record. `is_shared`: this node's share has
  // admitted the request, so the share has begun.
  template <class IsAnyUnsynced>
  std::optional<Decision> ask(KeyMark mark, const Limit& limit, std::int64_t cost, Asked& asked, std::size_t place,
                              IsAnyUnsynced is_any_unsynced, bool may_cache = true, bool is_shared = false) {
    const std::size_t set = set_of(mark);
    const base::MutexLock lock(lock_of(set));
    Entry* entry = find(sets_[set], mark, limit);
    if (entry == nullptr) {
      const bool may_be_unsynced = is_any_unsynced();
      if (may_be_unsynced) asked.unsynced_places |= std::uint32_t{1} << place;
      entry = make_room(sets_[set], mark, limit, asked.at);
      if (entry == nullptr) {
        begin_call(sets_[set], cost, asked, place);
        return {};
      }
      if (!may_be_unsynced) entry->unsynced_most = 0;
      if (is_shared) entry->seeded = round_.load(std::memory_order_relaxed);
    } else if (may_cache && cost == 1 && is_caching_.load(std::memory_order_relaxed)) {
      if (const auto denial = denial_of(*entry, limit, asked.at)) return denial;
    }
    begin_call(sets_[set], *entry, cost, asked, place);
    return {};
  }

  // note()
  //
  // Stores Redis's answer; `decided_us` is of Redis's clock. Another node may have asked since. `is_lasting`: as for
  // begin_share(). If the key had no record, its share may have begun as a whole one, and then stays in use.
  void note(KeyMark mark, const Limit& limit, std::int64_t cost, const Decision& decision, std::int64_t decided_us,
            const Asked& asked, std::size_t place, Micros now, bool is_lasting = true);
  // This key has unsynced charges from before this node's start.
  void mark_unsynced(KeyMark mark, const Limit& limit);
  // Unsynced charges of this key were added or written back elsewhere: the next admit_alone() counts them.
  void recount_unsynced(KeyMark mark, const Limit& limit);
  // Instead of note(), if there is no answer or it does not describe the key. Only ends the call.
  void miss(KeyMark mark, const Limit& limit, std::int64_t cost, const Asked& asked, std::size_t place);

  enum class Alone : std::uint8_t {
    granted,
    denied,  // not enough is left for this node
    busy,    // nothing is known, and a call about the key may be in flight or its record may have been evicted
  };
  // admit_alone()
  //
  // Whether this node can admit a request that Redis did not decide. It can if the cost fits this node's part of what
  // Redis last said was left, less what is in flight and what is unsynced. If nothing is known of the key, what it may
  // have used is the highest use that its set has evicted; a key that this node never asked about counts as full if
  // there is none. unsynced() is called only if it matters. grant(left, reset_at) must add the charge to it.
  template <class Unsynced, class Grant>
  Alone admit_alone(KeyMark mark, const Limit& limit, std::int64_t cost, NodeRank rank, Micros now, Unsynced unsynced,
                    Grant grant) {
    const base::MutexLock lock(lock_of(set_of(mark)));
    Set& set = sets_[set_of(mark)];
    Entry* entry = find(set, mark, limit);
    if (entry == nullptr) entry = make_room(set, mark, limit, now);
    if (entry == nullptr || (!entry->is_known && (entry->calls > 0 || set.calls > 0))) return Alone::busy;
    const std::int64_t used = limit.capacity - remaining_of(*entry, limit, now);
    std::int64_t left = left_of(limit.capacity, used, rank) - entry->in_flight - set.in_flight;
    std::int64_t not_in_redis = entry->unsynced_most;
    if (not_in_redis == kSome || left - not_in_redis < cost) not_in_redis = unsynced();
    left -= not_in_redis;
    entry->unsynced_most = capped(left < cost ? not_in_redis : not_in_redis + cost);
    if (left < cost) return !entry->is_known && used > 0 ? Alone::busy : Alone::denied;
    grant(left - cost, std::max(now, entry->reset_at));
    return Alone::granted;
  }

  // begin_share()
  //
  // Calls begin(said, is_higher) for the first request that this node's share decides since Redis last answered, or
  // since set_sharing(true). Does not call it if nothing is known and nothing is unsynced: then the share starts whole.
  // Calls it again for a higher version of the limit, if nothing was left under the lower one: the higher one is full,
  // too. Then `is_higher` is true, and requests may be using the share already. is_lasting() returns whether the share
  // stays in use. If Redis decides the key when it can, it does not, and the next request begins it again.
  template <class IsLasting, class Begin>
  void begin_share(KeyMark mark, const Limit& limit, Micros now, IsLasting is_lasting, Begin begin) {
    const std::size_t set = set_of(mark);
    const base::MutexLock lock(lock_of(set));
    Entry* const entry = find(sets_[set], mark, limit);
    const std::uint16_t round = round_.load(std::memory_order_relaxed);
    if (entry == nullptr) return;
    const bool is_full = entry->is_full && entry->reset_at > now;
    const bool is_higher = is_full && entry->is_share_full && entry->used < limit.capacity;
    const bool has_begun = entry->seeded == round;
    if (has_begun && !is_higher) return;
    entry->seeded = is_lasting() ? round : std::uint16_t{0};
    entry->is_share_full = is_full;
    if (is_full) entry->used = std::max(entry->used, limit.capacity);
    const bool may_be_unsynced = std::exchange(entry->unsynced_most, kSome) > 0;
    if (entry->is_known) {
      begin(KnownUsage{remaining_of(*entry, limit, now), entry->reset_at, entry->used}, has_begun);
    } else if (may_be_unsynced) {
      begin(KnownUsage{.remaining = limit.capacity}, has_begun);
    }
  }

  // set_sharing()
  //
  // After set_sharing(true), a share that has begun stays in use, whatever Redis replies: Redis does not have the
  // charges of all nodes.
  void set_sharing(bool is_sharing);
  // The number of calls of set_sharing() that changed it, wrapped around. Shares of an earlier round are not in use.
  std::uint16_t round() const { return round_.load(std::memory_order_relaxed); }

  // drop()
  //
  // Invalidates the cached denials of this key, under every period. Keeps what is known to be used: that errs against
  // the client until Redis is asked.
  void drop(KeyMark mark);
  void drop_all();
  // False: caches no denial, because invalidations would not arrive. Back to true: drops all denials.
  void set_caching(bool is_heard);
  // Uses the secret of a table, so that keys have the same hash in both: a key that was looked up in the table has
  // its mark. Call it before anything is known.
  void share_secret(base::SipKey secret);
  KeyMark mark_of(std::string_view name) const;
  static KeyMark mark_of(const table::Name& name) { return KeyMark{name.place == 0 ? 1 : name.place}; }
  // Brings the record into the cache. Inlined by force: a function that only prefetches may be dropped.
  [[gnu::always_inline]] void prefetch(KeyMark mark) const {
    const Set& set = sets_[set_of(mark)];
    __builtin_prefetch(&set, 1, 3);
    __builtin_prefetch(reinterpret_cast<const char*>(&set) + 64, 1, 3);
  }

 private:
  static constexpr std::uint16_t kSome = UINT16_MAX;  // not counted, or more than fit
  static std::uint16_t capped(std::int64_t permits) {
    return static_cast<std::uint16_t>(std::min<std::int64_t>(permits, kSome));
  }

  struct Entry {
    std::uint32_t limit = 0;              // a hash of it; denials depend on it
    std::uint32_t period = 0;             // a hash of its period
    std::uint16_t seeded = 0;             // the round in which the share was seeded
    std::uint16_t calls = 0;              // in flight
    std::uint16_t unsynced_most = kSome;  // permits that are unsynced, or kSome
    bool is_known : 1 = false;
    bool is_full : 1 = false;        // nothing was left, so more than `used` may be used under a higher version
    bool is_share_full : 1 = false;  // the share was seeded so
    std::int64_t used = 0;           // as Redis last reported; before that, what an evicted record may have had
    Micros reset_at{0};              // of that
    Micros denied_until{0};
    std::int64_t said_us = 0;    // Redis's clock at that report
    std::int64_t in_flight = 0;  // permits
  };
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kLocks = 256;
  struct Set {
    std::array<KeyMark, kWays> marks{};  // 0: empty
    std::array<Entry, kWays> entries{};
    // Of calls that have no record, because calls about all four are in flight.
    std::int64_t in_flight = 0;  // permits
    std::uint32_t calls = 0;
    // Of records that were evicted while they counted.
    std::int64_t evicted_used = 0;  // the most
    Micros evicted_until{0};        // when all are full again
  };

  static std::uint32_t print_of(const Limit& limit);
  static std::optional<Decision> denial_of(const Entry& entry, const Limit& limit, Micros now);
  static void begin_call(Set& set, Entry& entry, std::int64_t cost, Asked& asked, std::size_t place);
  static void begin_call(Set& set, std::int64_t cost, Asked& asked, std::size_t place);
  static void end_call(Set& set, Entry* entry, std::int64_t cost, const Asked& asked, std::size_t place);
  static void evict(Set& set, const Entry& entry, Micros now);
  static void store(Entry& entry, const Limit& limit, const Decision& decision, Micros now);
  static void store_older(Entry& entry, const Limit& limit, const Decision& decision, Micros now);
  static std::int64_t remaining_of(const Entry& entry, const Limit& limit, Micros now);
  std::size_t set_of(KeyMark mark) const { return static_cast<std::uint64_t>(mark) & (sets_.size() - 1); }
  base::Mutex& lock_of(std::size_t set) const { return locks_[set % kLocks]; }
  static std::uint32_t period_of(const Limit& limit) {
    return static_cast<std::uint32_t>(algorithm::period_print(limit) >> 32);
  }
  static Entry* find(Set& set, KeyMark mark, const Limit& limit);
  static Entry* make_room(Set& set, KeyMark mark, const Limit& limit, Micros now);

  const IsLasting is_lasting_;
  std::array<std::atomic<std::uint64_t>, 2> secret_;
  std::atomic<bool> is_caching_{true};
  std::atomic<bool> is_sharing_{false};
  std::atomic<std::uint16_t> round_{1};  // of shares; 0 is none
  std::atomic<std::uint64_t> drops_{0}, all_dropped_{0};
  mutable std::array<base::Mutex, kLocks> locks_;  // each guards every 256th set, and one of the next
  std::array<std::uint64_t, kLocks> dropped_{};    // drops_ at the last drop there
  std::vector<Set> sets_;                          // size is a power of two
};

}  // namespace weir::fleet
