// Waits as the wire knows them: whole seconds, always rounded up, so that nobody is told to come too early.
//
// Pure; any thread. Tested by headers_test.cc.
#pragma once

#include <cstdint>

#include "weir/clock.h"

namespace weir {

inline constexpr std::int64_t kMicrosPerSecond = 1'000'000;

// For waits and times that are not negative.
constexpr std::int64_t seconds_ceil(Micros wait) {
  const std::int64_t us = wait.count();
  return us / kMicrosPerSecond + (us % kMicrosPerSecond > 0 ? 1 : 0);
}

}  // namespace weir
