// The contents of a state file, read from a copy of it, by `weir state`. The file has no keys, only slots.
//
// The copy may be of a table that was killed, or that other processes use. It is repaired, or its operations in
// flight are undone, but only in the copy. An older layout is converted, also in the copy. Counts of a table in use
// do not belong to a single moment. One thread. Tested by resize_test.cc and tests/server/state.sh.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "table/file.h"
#include "table/slot.h"

namespace weir::table {

// A key that is not full.
struct Held {
  std::uint64_t page = 0;
  std::uint64_t name = 0;  // the stored part of its hash
  const Limit* limit = nullptr;
  Decision peek{};
};

struct Totals {
  std::uint64_t live = 0, lapsed = 0, tickets = 0;
  std::uint64_t unreadable = 0;   // slots that make no sense: the file is damaged
  std::uint64_t floors = 0;       // pages' records of the keys that they evicted
  std::uint64_t fullest = 0;      // slots in use in the fullest page
  std::uint64_t arena_lines = 0;  // in use
  std::uint64_t compact = 0;      // logs that are kept as two counts
  Counters counters{};
};

class Contents {
 public:
  // A mapping from open_copy(), and the clock reading that gives its time.
  Contents(Mapping mapping, FindCalendar find_calendar, const ClockReading& reading);

  const Region& region() const { return mapping_.region(); }
  std::int64_t now() const { return now_; }
  bool is_in_use() const { return is_in_use_; }
  bool was_clean() const { return was_clean_; }  // the last user closed it cleanly
  SlotReader& reader() { return reader_; }

  // walk()
  //
  // Calls `visit` for each live key.
  Totals walk(const std::function<void(const Held&)>& visit);

  // The word of a slot, after any operation on it has ended.
  Word read(Unit& unit) { return actor_.read(unit); }

 private:
  void look_at(const Word& word, std::uint64_t page, const std::function<void(const Held&)>& visit, Totals& totals);

  Mapping mapping_;
  const std::int64_t now_;
  const bool is_in_use_, was_clean_;
  Registry registry_;
  Actor actor_;
  SlotReader reader_;
};

// The slot for a new key in a page of a copy, which has no other users: the first free one from its home on, with the
// lines before it marked. Null if the page is full.
Unit* free_slot(Page& page, std::uint64_t name);

// The path with its symbolic links resolved, or as it is if it does not exist.
std::string real_path(const std::string& path);

}  // namespace weir::table
