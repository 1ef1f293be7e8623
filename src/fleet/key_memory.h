// What Redis last said of keys: those that are over their limit need not be asked about until that can change, and when
// Redis cannot be asked, a node goes on from here.
//
//   const KeyMark mark = memory.mark_of(name);
//   if (auto denied = memory.denial(mark, limit, cost, now)) return *denied;    // nobody could have got permits since
//   const auto asked = memory.ask(now);                                         // before Redis is
//   memory.note(mark, limit, cost, decision, asked, now);                       // what a strict decision said
//
// Kept are denials of one permit, which stay true until their wait is over unless permits are given back, the key is
// reset or its limit changed: drop() is for those. Bounded: sets of four, where the one goes that matters least long.
// Names are those of key_name.h; 64 bits of a hash under a secret stand for them, so that nobody can choose two that
// are one. Time is the monotonic clock's. Any thread; a lock is held for some tens of nanoseconds, or as long as
// begin() of seed() takes. Tested by key_memory_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/key_name.h"
#include "table/finder.h"
#include "table/siphash.h"
#include "weir/verdict.h"

namespace weir {

// What is known of a key.
struct Said {
  std::int64_t remaining = 0;
  Micros reset_at{0};  // from when on it is full, if nobody has spent since
};

class KeyMemory {
 public:
  KeyMemory(std::size_t keys, table::SipKey secret);
  KeyMemory(const KeyMemory&) = delete;
  KeyMemory& operator=(const KeyMemory&) = delete;

  // denial()
  //
  // What a request of this cost is told if it is denied for sure.
  std::optional<Decision> denial(KeyMark mark, const Limit& limit, std::int64_t cost, Micros now);

  // guess()
  //
  // What was last said of a key, for a request that others deny: it is not charged to it. Nothing if it is not known,
  // or would deny, too, for a time that is not known.
  std::optional<Decision> guess(KeyMark mark, const Limit& limit, std::int64_t cost, Micros now);

  // What was last said of a key; nothing if it is full again, or under another limit.
  std::optional<Said> said(KeyMark mark, const Limit& limit, Micros now);

  // Taken before Redis is asked. What it answers may be void when it comes: permits may have been given back meanwhile.
  struct Asked {
    Micros at{0};
    std::uint64_t voids = 0;
  };
  Asked ask(Micros now) const { return {now, voids_.load()}; }

  // note()
  //
  // What a strict decision said. Another node may have heard more, or less, since.
  void note(KeyMark mark, const Limit& limit, std::int64_t cost, const Decision& decision, const Asked& asked,
            Micros now);

  // seed()
  //
  // begin(said), for whoever asks first since something was said: the others wait, and go on from there. Not called if
  // nothing is known, or was said under another limit.
  template <class Begin>
  void seed(KeyMark mark, const Limit& limit, Begin begin) {
    const std::size_t set = set_of(mark);
    const std::lock_guard lock(lock_of(set));
    Entry* const entry = find(sets_[set], mark);
    if (entry == nullptr || entry->is_seeded || entry->limit != print_of(limit)) return;
    entry->is_seeded = true;
    begin(Said{entry->remaining, entry->reset_at});
  }

  // drop()
  //
  // Denials of this key are not believed any more. By its mark, as other nodes tell it.
  void drop(KeyMark mark);
  void drop_all();
  // No denial is believed while nobody would say that it is void. When it can be heard again, all are forgotten.
  void believe(bool is_heard);
  // Takes the secret of a table, where keys have the same hashes: then those who have looked for a key there have its
  // mark. Before anything is known.
  void share_secret(table::SipKey secret);
  KeyMark mark_of(std::string_view name) const;
  static KeyMark mark_of(const table::Name& name) { return KeyMark{name.place == 0 ? 1 : name.place}; }
  // Brings what is known into the cache. Inlined by force: a function that only prefetches may be dropped.
  [[gnu::always_inline]] void prefetch(KeyMark mark) const {
    const Set& set = sets_[set_of(mark)];
    __builtin_prefetch(&set, 1, 3);
    __builtin_prefetch(reinterpret_cast<const char*>(&set) + 64, 1, 3);
  }

 private:
  struct Entry {
    std::uint32_t limit = 0;
    bool is_seeded = false;
    std::int64_t remaining = 0;
    Micros reset_at{0};
    Micros denied_until{0};
  };
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kLocks = 256;
  struct Set {
    std::array<KeyMark, kWays> marks{};  // 0: none
    std::array<Entry, kWays> entries{};
  };

  static std::uint32_t print_of(const Limit& limit);
  std::size_t set_of(KeyMark mark) const { return static_cast<std::uint64_t>(mark) & (sets_.size() - 1); }
  std::mutex& lock_of(std::size_t set) const { return locks_[set % kLocks]; }
  static Entry* find(Set& set, KeyMark mark);
  static Entry& make_room(Set& set, KeyMark mark);

  std::array<std::atomic<std::uint64_t>, 2> secret_;
  std::atomic<bool> is_believed_{true};
  std::atomic<std::uint64_t> voids_{0}, all_dropped_{0};
  mutable std::array<std::mutex, kLocks> locks_;  // each guards a part of the sets, and one of the next
  std::array<std::uint64_t, kLocks> dropped_{};   // of voids_, when one was last dropped there
  std::vector<Set> sets_;                         // a power of two
};

}  // namespace weir
