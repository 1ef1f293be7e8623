// Compile options of the table for tests/schedule_test.cc: every access to shared memory first asks the scheduler which
// participant runs next, and the schedule chooses the tuning numbers.
//
// CMake includes it in front of every file of that build, and of no other: see tests/CMakeLists.txt.
#pragma once

namespace weir::test {

void before_access();
unsigned solo_tries();
unsigned spins();
unsigned limits();
unsigned freed_max();

}  // namespace weir::test

#define WEIR_TABLE_HOOK() ::weir::test::before_access()
#define WEIR_TABLE_SOLO_TRIES ::weir::test::solo_tries()
#define WEIR_TABLE_SPINS ::weir::test::spins()
#define WEIR_TABLE_LIMITS ::weir::test::limits()
#define WEIR_TABLE_EVICTED_MAX 1  // the model knows of no more, and of no blocks that others give but logs
#define WEIR_TABLE_SPARE_PART 1'000'000
#define WEIR_TABLE_FREED_MAX ::weir::test::freed_max()
