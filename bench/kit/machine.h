// The machine that a bench runs on: what it is, how much of it was ours, and how to hold a thread to a core.
//
// Figures without these say little: steal and foreign load explain a bad run. Linux only. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace weir::bench {

int cores();

// Holds the calling thread to a core; does nothing where that is not allowed.
void pin_to_core(int core);

// Model, cores, memory, kernel: one line.
std::string describe_machine();

// Processor time since the machine started, in ticks, and our own share of it.
struct CpuTimes {
  std::uint64_t all = 0, idle = 0, steal = 0, own = 0;
};
CpuTimes cpu_times();

// What of the machine was stolen by its host and used by others between two readings, in percent.
struct Disturbance {
  double steal = 0, others = 0;
};
Disturbance disturbance(const CpuTimes& from, const CpuTimes& to);

// Resident memory of this process in bytes, shared mappings included.
std::uint64_t resident_bytes();

// measure_in_child()
//
// Runs the work in a forked child and brings its figure back, so that no contestant leaves memory behind for the next;
// negative if the child failed. Only while this process has one thread.
double measure_in_child(const std::function<double()>& work);

}  // namespace weir::bench
