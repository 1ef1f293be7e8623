// Formats a time as in logs and the admin API: 2026-11-16T07:00:00.123Z.
//
// Pure; any thread may call it. Tested by headers_test.cc.
#pragma once

#include <string>

#include "weir/clock.h"

namespace weir {

std::string rfc3339(Micros time);

}  // namespace weir
