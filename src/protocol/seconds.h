// Waits in whole seconds, as protocols carry them, and as text for people. Always rounded up, so that no client
// retries too early.
//
// Pure; any thread may call it. Tested by headers_test.cc.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "weir/clock.h"

namespace weir::protocol {

inline constexpr std::int64_t kMicrosPerSecond = 1'000'000;

// For non-negative waits and times.
constexpr std::int64_t seconds_ceil(Micros wait) {
  const std::int64_t us = wait.count();
  return us / kMicrosPerSecond + (us % kMicrosPerSecond > 0 ? 1 : 0);
}

// For people: `250 ms`, `7.5 s`, `34 s`, `1 min 30 s`, `6 h 12 min`, `3 d 4 h`. Also rounded up.
inline std::string wait_text(Micros time) {
  const std::int64_t us = std::max<std::int64_t>(time.count(), 0);
  const auto in = [us](std::int64_t unit) { return us / unit + (us % unit > 0 ? 1 : 0); };
  const auto in_two = [](std::int64_t count, std::int64_t per_large, const char* large, const char* small) {
    const std::string rest = count % per_large == 0 ? "" : ' ' + std::to_string(count % per_large) + small;
    return std::to_string(count / per_large) + large + rest;
  };
  if (us == 0) return "0 s";
  if (const std::int64_t ms = in(1'000); ms < 1'000) return std::to_string(ms) + " ms";
  if (const std::int64_t tenths = in(100'000); tenths < 100) {
    const std::string rest = tenths % 10 == 0 ? "" : '.' + std::to_string(tenths % 10);
    return std::to_string(tenths / 10) + rest + " s";
  }
  const std::int64_t seconds = in(kMicrosPerSecond);
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3'600) return in_two(seconds, 60, " min", " s");
  if (const std::int64_t minutes = in(60 * kMicrosPerSecond); minutes < 24 * 60) {
    return in_two(minutes, 60, " h", " min");
  }
  return in_two(in(3'600 * kMicrosPerSecond), 24, " d", " h");
}

// The same for seconds as JSON carries them.
inline std::string wait_text(double seconds) {
  constexpr double kMost = 1e12;
  return wait_text(Micros{std::llround(std::clamp(seconds, 0.0, kMost) * 1e6)});
}

}  // namespace weir::protocol
