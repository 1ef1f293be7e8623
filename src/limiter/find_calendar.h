// Finds the calendar of a limit that another or an earlier process wrote into a table, by the name of its zone.
//
// Reads the zone file. Any thread. Tested by compile_test.cc.
#pragma once

#include <memory>
#include <string>

#include "weir/quota.h"

namespace weir::algorithm {
class Calendar;
}  // namespace weir::algorithm

namespace weir::limiter {

// Null if this machine has no such zone.
std::shared_ptr<const algorithm::Calendar> find_calendar(CalendarUnit unit, const std::string& zone);

}  // namespace weir::limiter
