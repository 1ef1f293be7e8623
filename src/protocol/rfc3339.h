// A time as logs and the admin API write it: 2026-11-16T07:00:00.123Z.
//
// Pure; any thread. Tested by headers_test.cc.
#pragma once

#include <string>

#include "weir/clock.h"

namespace weir {

std::string rfc3339(Micros time);

}  // namespace weir
