// Jolts: at its accesses to shared memory a thread is killed, stopped or put aside, by chance.
//
// That happens only in a program whose table was built with the hook (see schedule_hook.h and CMakeLists.txt): there
// this is what the hook calls. In any other program set_jolts() has no effect, and the same tests run with what signals
// and the system's scheduler do. Each thread has jolts of its own. Used by kill_test.cc and linearizable_test.cc.
#pragma once

#include <cstdint>

namespace weir::test {

// Once in so many accesses; 0 is never.
struct Jolts {
  std::uint32_t kill_in = 0, stop_in = 0;  // the whole process, by itself
  std::uint32_t yield_in = 0;
  unsigned solo_tries = 2, patience = 8;  // what the table's own numbers are
};

void set_jolts(const Jolts& jolts, std::uint64_t seed);

// Whether the table of this program has the hook: true once it was called.
bool are_jolts_felt();

}  // namespace weir::test
