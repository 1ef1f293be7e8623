// The contents of a fresh table, and whether the header of an existing one can be trusted.
//
// A header comes from a file, so it may contain anything. check_header() accepts only what this build would lay out
// in the same way. Only then is any other byte read. Any thread. Tested by file_test.cc and fuzz/state_open.cc.
#pragma once

#include <array>
#include <cstdint>

#include "algorithm/calendar_shift.h"
#include "table/layout.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::table {

inline constexpr std::uint64_t kKeysDefault = 1'000'000;
inline constexpr std::uint64_t kKeysInPage = kSlots * 3 / 4;  // above this load, the keys of a page begin to crowd
// How much larger a table may grow than it was created: page_of() counts in fractions of 20.44 bits.
inline constexpr std::uint64_t kGrowthMax = std::uint64_t{1} << 19;

struct Geometry {
  std::uint64_t pages = 0;
  std::uint64_t base_pages = 0;
  std::uint64_t arena_lines = 0;
};

// geometry_for()
//
// 0 keys means a million; 0 bytes of arena means 32 for each key. Refuses what the layout cannot number.
Result<Geometry> geometry_for(std::uint64_t keys, std::uint64_t arena_bytes);

// fit_into()
//
// The largest table that takes at most `memory` bytes: for this number of keys, or with this arena, or, if both are
// 0, with the usual shares.
Result<Geometry> fit_into(std::uint64_t memory, std::uint64_t keys, std::uint64_t arena_bytes);

// The number of keys that this number of pages is meant for.
inline std::uint64_t keys_of(std::uint64_t pages) { return pages * kKeysInPage; }

struct Identity {
  std::array<std::uint64_t, 2> hash_key{};
  std::int64_t created_us = 0;
};

// format()
//
// Fills the header and the maps of a region that is all zero.
void format(const Region& region, const Geometry& geometry, const Identity& identity, const ClockReading& reading);

// set_clock()
//
// Makes the table's time continue from where it was; see clock_offset_us().
void set_clock(Header& header, const ClockReading& reading);

// clock_offset_us()
//
// The value to add to the boot clock after a new boot, if the table last saw `latest_us` (0: never). The wall clock
// says how long the machine was off, but time never runs backwards, so a wall clock that is behind is ignored. A wall
// clock more than ten years ahead is more probably wrong than the file is that old, and the table would keep the
// error forever. It is ignored, too.
std::int64_t clock_offset_us(const ClockReading& reading, std::int64_t latest_us);

// keeps_time()
//
// Whether the header's offset belongs to the boot clock of this reading. It does not after a boot, nor in a container
// with a different boot clock. Such a clock is behind the latest time of the table. Or it belongs to
// another time namespace, and is ahead of that time while the wall clock is not.
bool keeps_time(const Header& header, const ClockReading& reading);

// note_wall_clock()
//
// For the process that sweeps the table. Records how far the wall clock is ahead of the table's time. So keeps_time()
// can distinguish a boot clock that is ahead from a table that was long unused. Calendars follow it: see
// calendar_shift.h.
void note_wall_clock(Header& header, const ClockReading& reading);
std::optional<algorithm::CalendarShift> calendar_shift(const Header& header);

// time_at()
//
// The table's time at this reading, or the time that it would continue from if the table were opened now.
std::int64_t time_at(const Header& header, const ClockReading& reading);

// checksum_of()
//
// The checksum of the fields that never change.
std::uint64_t checksum_of(const Header& header);

// check_header()
//
// Whether a region with this header and this file size can be mapped, and has layout `oldest` or newer. The error
// says what to do.
Result<Geometry> check_header(const Header& header, std::uint64_t file_bytes, std::uint32_t oldest = kVersion);

}  // namespace weir::table
