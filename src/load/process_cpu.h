// How much processor time a process has used, all its threads together.
//
// From the scheduler's own account where the kernel keeps one, which counts nanoseconds; else from /proc/PID/stat,
// which counts ticks of 10 ms. Linux only. Any thread. Tested by process_cpu_test.cc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace weir::load {

// Nanoseconds since it began; nothing if there is no such process.
std::optional<std::int64_t> process_cpu_ns(pid_t pid);

}  // namespace weir::load
