// The sweep. It removes expired keys, clears the marks of lines that keys no longer walk past, and marks full pages.
//
// It takes pages one after another and never locks anything, so it may stop and continue at any time, and several
// sweeps may run at once. For the one thread of an actor. Tested by tests/full_table_test.cc.
#pragma once

#include <cstdint>

#include "table/slot.h"

namespace weir::table {

// sweep_page()
//
// Leaves unreadable slots as they are. Adds the numbers of the remaining limits to `used`, if given. Returns false if
// the page had insertions all the time, so that some numbers may be missing.
bool sweep_page(Actor& actor, SlotReader& reader, Page& page, std::int64_t now, NumberSet* used = nullptr);

// Empties a slot, or leaves a word in it that has no block, and frees its block. False if the slot has changed.
bool remove_slot(Actor& actor, SlotReader& reader, Unit& unit, const Word& word, const Word& next = {});

// reclaim_blocks()
//
// For a thread that finds the arena full. Sweeps some pages, different ones each time, for blocks of expired keys.
// Returns false during a pause.
bool reclaim_blocks(Actor& actor, SlotReader& reader, std::int64_t now);

// rest_from_reclaiming()
//
// Call this if reclaiming freed nothing: it pauses reclaiming for a while. Otherwise each request of a flood of denied
// keys would sweep thousands of slots.
void rest_from_reclaiming(const Region& region, std::int64_t now);

}  // namespace weir::table
