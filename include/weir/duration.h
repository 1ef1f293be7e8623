// Parses a duration such as `5s`, `200ms`, `2min` or `1h`, in the units of a quota.
//
// Pure; any thread. Tested by quota_test.cc.
#pragma once

#include <string_view>

#include "weir/clock.h"
#include "weir/result.h"

namespace weir {

// A duration of more than 0 and at most one day.
Result<Micros> parse_duration(std::string_view text);

}  // namespace weir
