// The sweep: lapsed keys leave, the lines that keys no longer walk past are forgotten, full pages remembered.
//
// It takes pages one after another and never holds anything that others need, so it may stop and go on at any time, and
// several may sweep at once. For the one thread of an actor. Tested by tests/full_table_test.cc.
#pragma once

#include <cstdint>

#include "table/slot.h"

namespace weir::table {

// sweep_page()
//
// What makes no sense is left alone. The numbers of limits that are left are added to `used`, if that is given; false
// if the page was inserted into all the while, so that some may be missing.
bool sweep_page(Actor& actor, SlotReader& reader, Page& page, std::int64_t now, NumberSet* used = nullptr);

// Takes a slot away, or leaves a word in it that has no block; its block goes. False if the slot has changed.
bool remove_slot(Actor& actor, SlotReader& reader, Unit& unit, const Word& word, const Word& next = {});

// reclaim_blocks()
//
// For whoever finds the arena full: sweeps some pages, other ones each time, for blocks of keys that have lapsed. False
// while it rests.
bool reclaim_blocks(Actor& actor, SlotReader& reader, std::int64_t now);

// rest_from_reclaiming()
//
// It was in vain: nobody does it again for a while. Else a flood of keys that are refused would cost the sweep of
// thousands of slots each.
void rest_from_reclaiming(const Region& region, std::int64_t now);

}  // namespace weir::table
