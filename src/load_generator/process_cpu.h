// The processor time that a process has used, in all its threads.
//
// It comes from the scheduler's statistics in nanoseconds if the kernel keeps them, otherwise from /proc/PID/stat in
// ticks of 10 ms. Linux only. Any thread. Tested by process_cpu_test.cc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace weir::load_generator {

// Nanoseconds since its start; nothing if there is no such process.
std::optional<std::int64_t> process_cpu_ns(pid_t pid);

}  // namespace weir::load_generator
