// The machine that a benchmark runs on: its description, how much of it other processes used, and pinning to cores.
//
// Without these, figures say little: stolen time and other processes explain a bad run. Linux only. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace weir::bench {

int cores();

// Pins the calling thread to the cores from `begin` to before `end`. Does nothing if the system does not allow it.
void pin_to_cores(int begin, int end);

// One line: processor, cores, memory, kernel and load.
std::string describe_machine();

// Processor time of the machine since it started, and of this process, in ticks.
struct CpuTimes {
  std::uint64_t all = 0, idle = 0, steal = 0, own = 0;
};
CpuTimes cpu_times();

// How much processor time the host stole and other processes used between two readings, in percent.
struct Disturbance {
  double steal = 0, others = 0;
};
Disturbance disturbance(const CpuTimes& from, const CpuTimes& to);

// Resident memory of this process in bytes, shared mappings included.
std::uint64_t resident_bytes();

// measure_in_child()
//
// Runs the work in a forked child and returns its figure, so that no contestant leaves memory for the next one.
// Negative if the child failed. Call it only while this process has one thread.
double measure_in_child(const std::function<double()>& work);

}  // namespace weir::bench
