// Kills, stops or reschedules a thread at random accesses to shared memory: jolts.
//
// This happens only in a program whose table has the hook (see schedule_hook.h and CMakeLists.txt); the hook calls
// these functions. In any other program set_jolts() has no effect, and the same tests run with signals and the system's
// scheduler. Each thread has its own jolts. Used by kill_test.cc and linearizable_test.cc.
#pragma once

#include <cstdint>

namespace weir::test {

// Each happens about once in this many accesses; 0: never.
struct Jolts {
  std::uint32_t kill_in = 0, stop_in = 0;  // the whole process, by itself
  std::uint32_t yield_in = 0;
  unsigned solo_tries = 2, spins = 8;  // the values of the table itself
};

void set_jolts(const Jolts& jolts, std::uint64_t seed);

// Whether the table of this program has the hook: true once it was called.
bool are_jolts_felt();

}  // namespace weir::test
