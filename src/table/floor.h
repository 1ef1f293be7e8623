// What a page remembers of keys that it had to evict: for each number of a limit a state that none of them had used
// more than. A new key may be one of them, so it starts from there: nothing is forgiven.
//
// A floor is a word like that of a key: the number, and a state that lapses as a key's does. Its name is that of the
// number's family: a new key finds the floors of all versions of its limit by it. Where the states of a limit do not
// fit a slot, its floor is a summary: how much was used, rounded up, and when. Logs in blocks and logs in two counts
// have two numbers, and so two floors. What a page evicts is always covered by
// a floor, which is raised before, in an operation of its own; the version of the page changes with it, so that nobody
// starts from what a floor was before. Pure, but for floor_over(). Tested by floor_test.cc and tests/eviction_test.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "table/slot.h"

namespace weir::table {

// The counts are rounded up to 17 bits, times of windows down and others up to about a millisecond.
struct Summary {
  std::int64_t at_us = 0, count = 0;
};
std::uint64_t pack_summary(const Summary& summary, bool is_fixed_window);
Summary unpack_summary(std::uint64_t packed);

// join(), covers()
//
// Of two states under one number what neither has used more than; whether a floor is that already.
std::uint64_t join(const Known& known, std::uint64_t a, std::uint64_t b);
inline bool covers(const Known& known, std::uint64_t floor, std::uint64_t state) {
  const Kind kind = known.packing.kind;
  const bool is_ordered = known.packing.fits_slot && kind != Kind::sliding && kind != Kind::compact;
  return is_ordered ? state <= floor : join(known, floor, state) == floor;
}

// Whether keys under this limit are evicted at all: permits in flight must not be forgotten.
inline bool is_evictable(const Known& known) { return known.packing.kind != Kind::holds; }

// floor_over()
//
// The least state of a floor that covers this key. Nothing if the key's block cannot be read.
std::optional<std::uint64_t> floor_over(SlotReader& reader, const Known& known, const Word& slot, std::int64_t now);

// join_cells()
//
// The same of cells whose limits share their states, under whichever of the limits has more permits.
TableCell join_cells(const TableCell& a, const TableCell& b, std::int64_t now);

}  // namespace weir::table
