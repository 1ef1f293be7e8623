// Finds the calendar of a limit that another or an earlier process wrote into a table, by the name of its zone.
//
// Reads the zone file. Any thread. Tested by compile_test.cc.
#pragma once

#include <memory>
#include <string>

#include "weir/quota.h"

namespace weir {

class Calendar;

// Null if this machine has no such zone.
std::shared_ptr<const Calendar> find_calendar(CalendarUnit unit, const std::string& zone);

}  // namespace weir
