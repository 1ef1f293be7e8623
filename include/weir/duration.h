// How long, as a person writes it: `5s`, `200ms`, `2min`, `1h`; in the units of a quota.
//
// Pure; any thread. Tested by quota_test.cc.
#pragma once

#include <string_view>

#include "weir/clock.h"
#include "weir/result.h"

namespace weir {

// A time of up to a day, and more than none.
Result<Micros> parse_duration(std::string_view text);

}  // namespace weir
