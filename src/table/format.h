// What stands in a fresh table, and whether the header of an old one can be believed.
//
// A header comes from a file, so it may hold anything: check_header() accepts only what this build would lay out the
// same way, and only after that is a byte of the rest looked at. Any thread. Tested by file_test.cc and
// fuzz/state_open.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "algorithm/calendar_shift.h"
#include "table/layout.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::table {

inline constexpr std::uint64_t kKeysDefault = 1'000'000;
inline constexpr std::uint64_t kKeysInPage = kSlots * 3 / 4;  // above this load the keys of a page begin to crowd
// How far a table may grow beyond what it was made for: page_of() counts in fractions of 20.44 bits.
inline constexpr std::uint64_t kGrowthMax = std::uint64_t{1} << 19;

struct Geometry {
  std::uint64_t pages = 0;
  std::uint64_t base_pages = 0;
  std::uint64_t arena_lines = 0;
};

// geometry_for()
//
// 0 keys are a million; 0 bytes of arena are 32 for each key. Refuses what the layout cannot number.
Result<Geometry> geometry_for(std::uint64_t keys, std::uint64_t arena_bytes);

// fit_into()
//
// The largest table that takes no more than so many bytes: for so many keys, or with so much arena, or, if both are 0,
// with the usual shares.
Result<Geometry> fit_into(std::uint64_t memory, std::uint64_t keys, std::uint64_t arena_bytes);

// How many keys so many pages have room for.
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
// Makes the table's time go on from where it was; see clock_offset_us().
void set_clock(Header& header, const ClockReading& reading);

// clock_offset_us()
//
// What is added to the boot clock after a new boot, when the table last saw `latest_us` (0: never). The wall clock
// says how long the machine was off, but time never runs back: a wall clock that is behind is not followed. One that is
// more than ten years ahead is wrong more probably than the file is that old, and would be kept for ever: it is not
// followed either.
std::int64_t clock_offset_us(const ClockReading& reading, std::int64_t latest_us);

// keeps_time()
//
// Whether the header's offset belongs to the boot clock of this reading. Not so after a boot, nor in a container whose
// boot clock is another: one behind the latest time of the table, or one in another time namespace that is ahead of it
// while the wall clock is not.
bool keeps_time(const Header& header, const ClockReading& reading);

// note_wall_clock()
//
// For whoever looks after the table: how far the wall clock is ahead of its time, so that keeps_time() can tell a boot
// clock that is ahead from a table that nobody has used for long. Calendars follow it: see calendar_shift.h.
void note_wall_clock(Header& header, const ClockReading& reading);
CalendarShift calendar_shift(const Header& header);

// time_at()
//
// The table's time at this reading: as it goes on, or as it would go on if the table were opened now.
std::int64_t time_at(const Header& header, const ClockReading& reading);

// checksum_of()
//
// Of the fields that never change.
std::uint64_t checksum_of(const Header& header);

// check_header()
//
// Whether a region can be mapped that has this header and so many bytes, and is of layout `oldest` or newer. The error
// says what to do.
Result<Geometry> check_header(const Header& header, std::uint64_t file_bytes, std::uint32_t oldest = kVersion);

}  // namespace weir::table
