// Calendar windows as glibc sees them: a second opinion on time zones, for the oracle only.
//
// It asks localtime_r() under the TZ variable what the clock on the wall shows, and takes the definition at its word:
// a calendar window begins the first time the local clock reaches its midnight. Slow at first sight of a window, which
// is then remembered. It changes the environment of the process while it looks: for tests with one thread.
// Tested by oracle_test.cc and tests/scenarios/calendar.txt.
#pragma once

#include "oracle.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::oracle {

Result<WindowsAt> glibc_windows(const CalendarPeriod& period);

}  // namespace weir::oracle
