// What this node knows of keys: one record for each of the last 65,536 keys that it asked Redis about.
//
//   KeyMemory::Asked asked{now};
//   if (auto denied = memory.ask(mark, limit, cost, asked)) return *denied;   // else it is counted as in flight
//   memory.note(mark, limit, cost, decision, decided_us, asked, now);         // Redis answered, or
//   memory.miss(mark, limit, cost, asked);                                    // it did not
//   memory.spare(mark, limit, cost, terms, grant);                            // may this node admit it by itself?
//
// A record is of a name and a period: versions of a limit share it. It has what Redis last said was used (ordered by
// Redis's clock, since replies overtake each other), the permits of calls in flight, and at most how many permits of
// this key are unsynced (owed.h knows exactly how many). Denials of one permit are cached until their wait is over;
// drop() invalidates one early, and keeps what is known to be used. When this node decides by its share of a limit
// (local.h), seed() starts that share once from what is known.
//
// Bounded: sets of four records, where the one that recovers first is evicted, but never one with a call in flight. 64
// bits of a keyed hash stand for the names of key_name.h, so that nobody can choose two that collide. Time is the
// monotonic clock's. Any thread; a lock is held for some tens of nanoseconds, or for as long as the caller's function
// takes. Tested by key_memory_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm/limit.h"
#include "fleet/key_name.h"
#include "fleet/share.h"
#include "table/finder.h"
#include "table/siphash.h"
#include "weir/verdict.h"

namespace weir {

// What is known of a key.
struct Said {
  std::int64_t remaining = 0;
  Micros reset_at{0};     // from then on it is full, if nobody else was admitted since
  std::int64_t used = 0;  // more than the limit, if a higher version of it admitted more
};

class KeyMemory {
 public:
  KeyMemory(std::size_t keys, table::SipKey secret);
  KeyMemory(const KeyMemory&) = delete;
  KeyMemory& operator=(const KeyMemory&) = delete;

  // denial()
  //
  // The cached answer to a request of this cost, if Redis would deny it for sure.
  std::optional<Decision> denial(KeyMark mark, const Limit& limit, std::int64_t cost, Micros now);

  // guess()
  //
  // What was last said of a key, for a request that another limit denies: it is not charged to it. Nothing if that is
  // not known, or if this limit would deny it, too, for a wait that is not known.
  std::optional<Decision> guess(KeyMark mark, const Limit& limit, std::int64_t cost, Micros now);

  // What was last said of a key; nothing if it is full again, or was said under another limit.
  std::optional<Said> said(KeyMark mark, const Limit& limit, Micros now);

  // A question to Redis, from before it is sent: an answer may be void when it comes, if permits were refunded
  // meanwhile.
  struct Asked {
    Micros at{0};
    std::uint64_t voids = 0;
    std::uint32_t counted = 0;  // bit i: charge i is counted as in flight
    std::uint32_t owing = 0;    // bit i: its key may have unsynced charges
  };
  Asked begin(Micros now) const { return {now, voids_.load(), 0, 0}; }

  // ask()
  //
  // A cached denial; or nothing, and charge number `place` is counted as in flight. is_any_owed() says whether any key
  // has unsynced charges, as this one may if it is not known. It is called behind the lock of the record, so a
  // thread that adds unsynced charges later finds the record. `is_shared`: this node's share has admitted it, so it has
  // begun.
  template <class IsAnyOwed>
  std::optional<Decision> ask(KeyMark mark, const Limit& limit, std::int64_t cost, Asked& asked, std::size_t place,
                              IsAnyOwed is_any_owed, bool may_cache = true, bool is_shared = false) {
    const std::size_t set = set_of(mark);
    const std::lock_guard lock(lock_of(set));
    Entry* entry = find(sets_[set], mark, limit);
    if (entry == nullptr) {
      const bool may_owe = is_any_owed();
      if (may_owe) asked.owing |= std::uint32_t{1} << place;
      entry = make_room(sets_[set], mark, limit);
      if (entry == nullptr) return {};
      if (!may_owe) entry->owed_most = 0;
      if (is_shared) entry->seeded = round_.load(std::memory_order_relaxed);
    } else if (may_cache && cost == 1 && is_believed_.load(std::memory_order_relaxed)) {
      if (const auto denial = denial_of(*entry, limit, asked.at)) return denial;
    }
    begin_call(*entry, cost, asked, place);
    return {};
  }

  // note()
  //
  // Redis's answer; `decided_us` is Redis's clock. Another node may have asked since.
  void note(KeyMark mark, const Limit& limit, std::int64_t cost, const Decision& decision, std::int64_t decided_us,
            const Asked& asked, std::size_t place, Micros now);
  // This key has unsynced charges from before this node's start.
  void owe(KeyMark mark, const Limit& limit);
  // Unsynced charges of this key were added or written back elsewhere: spare() counts them the next time.
  void recount_unsynced(KeyMark mark, const Limit& limit);
  // There is no answer, or none that says something of the key: only the call is over.
  void miss(KeyMark mark, const Limit& limit, std::int64_t cost, const Asked& asked, std::size_t place);

  enum class Spare : std::uint8_t {
    granted,
    denied,   // not enough is left for this node
    busy,     // nothing is known, and a call about the key is in flight
    unknown,  // there is no room for a record
  };
  // spare()
  //
  // Whether a request that Redis did not decide can be admitted by this node: if its cost fits this node's part of what
  // Redis last said was left, less what is in flight and what is unsynced. A key that this node never asked about
  // counts as full. unsynced() is called only if it matters; grant(left, reset_at) must add the charge to it.
  template <class Unsynced, class Grant>
  Spare spare(KeyMark mark, const Limit& limit, std::int64_t cost, Seat seat, Micros now, Unsynced unsynced,
              Grant grant) {
    const std::size_t set = set_of(mark);
    const std::lock_guard lock(lock_of(set));
    Entry* entry = find(sets_[set], mark, limit);
    if (entry == nullptr) {
      entry = make_room(sets_[set], mark, limit);
      if (entry == nullptr) return Spare::unknown;
    }
    if (!entry->is_known && entry->calls > 0) return Spare::busy;
    const std::int64_t used = limit.capacity - remaining_of(*entry, limit, now);
    std::int64_t left = left_of(limit.capacity, used, seat) - entry->in_flight;
    std::int64_t owed = entry->owed_most;
    if (owed == kSome || left - owed < cost) owed = unsynced();
    left -= owed;
    entry->owed_most = owed_of(left < cost ? owed : owed + cost);
    if (left < cost) return Spare::denied;
    grant(left - cost, std::max(now, entry->reset_at));
    return Spare::granted;
  }

  // seed()
  //
  // begin(said), for the first request that is decided by this node's share since Redis last said something, or since
  // share(true). Not called if nothing is known, nor unsynced: then the share is whole.
  template <class Begin>
  void seed(KeyMark mark, const Limit& limit, Micros now, Begin begin) {
    const std::size_t set = set_of(mark);
    const std::lock_guard lock(lock_of(set));
    Entry* const entry = find(sets_[set], mark, limit);
    const std::uint16_t round = round_.load(std::memory_order_relaxed);
    if (entry == nullptr || entry->seeded == round) return;
    entry->seeded = round;
    const bool may_owe = std::exchange(entry->owed_most, kSome) > 0;
    if (entry->is_known || may_owe) begin(Said{remaining_of(*entry, limit, now), entry->reset_at, entry->used});
  }

  // share()
  //
  // From true to false, shares that have begun go on, whatever Redis says: it does not have the charges of all nodes.
  void share(bool is_sharing);

  // drop()
  //
  // Denials of this key are void, under every period. What is known to be used stays: it errs against the client until
  // Redis is asked.
  void drop(KeyMark mark);
  void drop_all();
  // Caches no denial while nobody would say that it is void. When that is heard again, all are dropped.
  void believe(bool is_heard);
  // Uses the secret of a table, where keys have the same hashes: a key that was looked up there has its mark. Before
  // anything is known.
  void share_secret(table::SipKey secret);
  KeyMark mark_of(std::string_view name) const;
  static KeyMark mark_of(const table::Name& name) { return KeyMark{name.place == 0 ? 1 : name.place}; }
  // Brings the record into the cache. Inlined by force: a function that only prefetches may be dropped.
  [[gnu::always_inline]] void prefetch(KeyMark mark) const {
    const Set& set = sets_[set_of(mark)];
    __builtin_prefetch(&set, 1, 3);
    __builtin_prefetch(reinterpret_cast<const char*>(&set) + 64, 1, 3);
  }

 private:
  static constexpr std::uint16_t kSome = UINT16_MAX;  // nobody has counted them, or there are more
  static std::uint16_t owed_of(std::int64_t permits) {
    return static_cast<std::uint16_t>(std::min<std::int64_t>(permits, kSome));
  }

  struct Entry {
    std::uint32_t limit = 0;          // a print of it, which denials depend on
    std::uint32_t period = 0;         // the same of its period
    std::uint16_t seeded = 0;         // in this round
    std::uint16_t calls = 0;          // in flight
    std::uint16_t owed_most = kSome;  // permits that are unsynced, or kSome
    bool is_known = false;
    std::int64_t used = 0;  // by Redis's last word
    Micros reset_at{0};
    Micros denied_until{0};
    std::int64_t said_us = 0;    // Redis's clock when it said so
    std::int64_t in_flight = 0;  // permits
  };
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kLocks = 256;
  struct Set {
    std::array<KeyMark, kWays> marks{};  // 0: none
    std::array<Entry, kWays> entries{};
  };

  static std::uint32_t print_of(const Limit& limit);
  static std::optional<Decision> denial_of(const Entry& entry, const Limit& limit, Micros now);
  static void begin_call(Entry& entry, std::int64_t cost, Asked& asked, std::size_t place);
  static void end_call(Entry& entry, std::int64_t cost);
  static std::int64_t remaining_of(const Entry& entry, const Limit& limit, Micros now);
  std::size_t set_of(KeyMark mark) const { return static_cast<std::uint64_t>(mark) & (sets_.size() - 1); }
  std::mutex& lock_of(std::size_t set) const { return locks_[set % kLocks]; }
  static std::uint32_t period_of(const Limit& limit) { return static_cast<std::uint32_t>(period_print(limit) >> 32); }
  static Entry* find(Set& set, KeyMark mark, const Limit& limit);
  static Entry* make_room(Set& set, KeyMark mark, const Limit& limit);

  std::array<std::atomic<std::uint64_t>, 2> secret_;
  std::atomic<bool> is_believed_{true};
  std::atomic<bool> is_sharing_{false};
  std::atomic<std::uint16_t> round_{1};  // of shares; 0 is none
  std::atomic<std::uint64_t> voids_{0}, all_dropped_{0};
  mutable std::array<std::mutex, kLocks> locks_;  // each guards a part of the sets, and one of the next
  std::array<std::uint64_t, kLocks> dropped_{};   // of voids_, when one was last dropped there
  std::vector<Set> sets_;                         // a power of two
};

}  // namespace weir
