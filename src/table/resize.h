// A state file made anew with more or less room, while nobody uses it: `weir state resize`.
//
// The new one is built beside the old and takes its name when it is complete, so a kill in between leaves the old one.
// What has lapsed stays behind; what is spent stays spent. A slot does not know its key, but its page and the bits it
// stores say which page of the table as it was made it came from: see Region::page_of(). In a table that was made
// smaller than that they no longer do. One thread. Tested by resize_test.cc.
#pragma once

#include <cstdint>
#include <string>

#include "table/format.h"
#include "table/registry.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::table {

struct ResizeOptions {
  std::string path;
  std::uint64_t keys = 0;         // 0: as many as now
  std::uint64_t arena_bytes = 0;  // 0: as much for a key as now, or what is left of `memory`
  std::uint64_t memory = 0;       // bytes of the whole; 0: no matter
  FindCalendar find_calendar{};
};

struct Resized {
  Geometry before, after;
  std::uint64_t kept = 0;     // slots
  std::uint64_t dropped = 0;  // of them, those that had lapsed
};

Result<Resized> resize(const ResizeOptions& options, const ClockReading& reading = read_clocks());

}  // namespace weir::table
