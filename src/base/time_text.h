// Times as texts in UTC: the date of HTTP, and the time in logs and the admin API.
//
// Pure; any thread may call it. Tested by time_text_test.cc.
#pragma once

#include <string>

#include "weir/clock.h"

namespace weir::base {

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(Micros now);

// As logs and the admin API have it: 2026-11-16T07:00:00.123Z.
std::string rfc3339(Micros time);

}  // namespace weir::base
