// What a page remembers of keys that it had to evict. For each number of a limit it keeps a state, the floor, that
// none of them had used more than. A new key may be one of them, so it starts from the floor: eviction frees
// no used permits.
//
// A floor is a word like that of a key: the number, and a state that expires as a key's does. Its name is that of the
// number's family, so a new key finds the floors of all versions of its limit. If the states of a limit do not fit a
// slot, its floor is a summary: how much was used, rounded up, and when. Logs in blocks and logs in two counts have
// two numbers, and so two floors. Everything a page evicts is covered by a floor. The floor is raised before the
// eviction, in an operation of its own. The page's version changes with it, so no request starts from an outdated
// floor. Pure, except for floor_over(). Tested by floor_test.cc and tests/eviction_test.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "table/slot.h"

namespace weir::table {

// Counts are rounded up to 17 significant bits. Times are rounded to about a millisecond: those of fixed windows
// down, others up.
struct Summary {
  std::int64_t at_us = 0, count = 0;
};
std::uint64_t pack_summary(const Summary& summary, bool is_fixed_window);
Summary unpack_summary(std::uint64_t packed);

// After a correction of the wall clock, windows of two days may be in effect at a time: see algorithm/calendar_shift.h.
inline bool is_of_corrected_calendar(const Limit& limit) {
  return limit.calendar != nullptr && algorithm::ShiftedCalendar::here() != nullptr;
}

// join(), covers()
//
// join(): of two states under one number, a state that neither has used more than. covers(): whether a floor is that
// already. None of the states has expired.
std::uint64_t join(const Known& known, std::uint64_t a, std::uint64_t b, std::int64_t now);
inline bool covers(const Known& known, std::uint64_t floor, std::uint64_t state, std::int64_t now) {
  const Kind kind = known.packing.kind;
  const bool is_ordered = known.packing.fits_slot && kind != Kind::sliding && kind != Kind::compact;
  return is_ordered && !is_of_corrected_calendar(known.limit) ? state <= floor
                                                              : join(known, floor, state, now) == floor;
}

// Whether keys under this limit may be evicted: permits in flight must not be.
inline bool is_evictable(const Known& known) { return known.packing.kind != Kind::holds; }

// floor_over()
//
// The lowest state of a floor that covers this key. Nothing if the key's block cannot be read.
std::optional<std::uint64_t> floor_over(SlotReader& reader, const Known& known, const Word& slot, std::int64_t now);

// join_cells()
//
// The same for cells whose limits share their states, under the limit with more permits.
TableCell join_cells(const TableCell& a, const TableCell& b, std::int64_t now);

}  // namespace weir::table
