// Waits in whole seconds, as protocols carry them. Always rounded up, so that no client retries too early.
//
// Pure; any thread may call it. Tested by headers_test.cc.
#pragma once

#include <cstdint>

#include "weir/clock.h"

namespace weir {

inline constexpr std::int64_t kMicrosPerSecond = 1'000'000;

// For non-negative waits and times.
constexpr std::int64_t seconds_ceil(Micros wait) {
  const std::int64_t us = wait.count();
  return us / kMicrosPerSecond + (us % kMicrosPerSecond > 0 ? 1 : 0);
}

}  // namespace weir
