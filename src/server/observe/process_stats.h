// What the operating system reports about this process: processor time, memory and descriptors.
//
// A number that is not available is 0. Any thread. Tested by process_stats_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/clock.h"

namespace weir::server::observe {

struct ProcessStats {
  Micros cpu{0};
  Micros started{0};  // since the epoch
  std::uint64_t resident_bytes = 0, virtual_bytes = 0;
  std::uint64_t threads = 0;
  std::uint64_t open_fds = 0, max_fds = 0;
};

ProcessStats process_stats();

// Parses /proc/self/stat: everything but descriptors. `started` is relative to the boot of the machine.
std::optional<ProcessStats> read_process_stat(std::string_view line, std::int64_t ticks_per_second,
                                              std::uint64_t page_bytes);

}  // namespace weir::server::observe
