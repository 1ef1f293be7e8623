// Calendar windows as glibc computes them, for the oracle only: so it does not use our own calendar.
//
// Calls localtime_r() under the TZ variable and applies the definition: a calendar window begins the first time the
// local clock reaches its midnight. Slow when it first meets a window, which it then remembers. It changes the
// environment of the process meanwhile, so it is for tests with one thread. Tested by oracle_test.cc and
// tests/scenarios/calendar.txt.
#pragma once

#include "oracle.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::oracle {

Result<WindowsAt> glibc_windows(const CalendarPeriod& period);

}  // namespace weir::oracle
