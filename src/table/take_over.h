// Brings a state file of an older layout up to date when a process opens it.
//
// The file is copied, and each page of the copy is rewritten by itself. The copy takes the file's name once it is
// complete and on disk. A kill or a power loss in between leaves the old file as it was, and the next process starts
// again. Keys keep what they used. While an older program has the file open, it is not taken over; that program
// refuses the new file. One thread. Tested by tests/take_over_test.cc.
#pragma once

#include <string>

#include "table/registry.h"
#include "table/slot.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::table {

// modernize()
//
// Rewrites the pages of a private copy whose header names an older layout. Does nothing to a copy of this layout. The
// header stays as it is. No operation may be in flight in the copy.
void modernize(Actor& actor, SlotReader& reader);

// take_over()
//
// Replaces a file of an older layout by one of this layout. Does nothing if there is no such file: opening it then
// reports what is wrong with it.
Result<void> take_over(const std::string& path, const FindCalendar& find_calendar,
                       const ClockReading& reading = read_clocks());

}  // namespace weir::table
