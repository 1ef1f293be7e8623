// Rebuilds a state file with more or less capacity, while no process uses it: `weir state resize`.
//
// The new file is built beside the old one and takes its name when it is complete, so a kill in between leaves the
// old one. Expired keys are dropped; what is used stays used. A slot does not know its key. But its page and its
// stored bits determine its page in the table as it was created: see Region::page_of(). Once a table
// is smaller than it was created, they no longer determine it. One thread. Tested by resize_test.cc.
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
  std::uint64_t arena_bytes = 0;  // 0: as much per key as now, or what `memory` leaves
  std::uint64_t memory = 0;       // bytes of the whole file; 0: unspecified
  FindCalendar find_calendar{};
};

struct Resized {
  Geometry before, after;
  std::uint64_t kept = 0;     // slots
  std::uint64_t dropped = 0;  // slots that had expired, or could not be read
};

Result<Resized> resize(const ResizeOptions& options, const ClockReading& reading = read_clocks());

}  // namespace weir::table
