// Sliding window: the current window's count plus a fading part of the previous one's. Its twin in Lua is
// sliding_window.lua.
//
// used = floor(previous * (period - elapsed) / period) + current. The floor is the only rounding in the client's
// favour. Pure; any thread. Tested by differential_test.cc and tests/scenarios/sliding_window.txt.
#pragma once

#include "algorithm/division.h"
#include "algorithm/step.h"

namespace weir::algorithm {

struct SlidingWindow {
  std::int64_t window = 0;  // its number since the epoch
  std::int64_t previous = 0;
  std::int64_t current = 0;
  friend bool operator==(const SlidingWindow&, const SlidingWindow&) = default;
};

// The templates also serve CompactLog (compact_log.h), which has the same counters.
template <class State>
concept TwoCounts = requires(State s) {
  s.window;
  s.previous;
  s.current;
};

// Advances the state to the window of now. A state that is ahead stays.
template <TwoCounts State>
State sliding_window_roll(State s, std::int64_t period, std::int64_t now) {
  const std::int64_t window = div_floor(now, period);
  if (s.window >= window) return s;
  if (s.window == window - 1) return {window, s.current, 0};
  return {window, 0, 0};
}

// The shortest wait until used <= room, without traffic.
inline std::int64_t sliding_window_wait(const SlidingWindow& s, std::int64_t elapsed, std::int64_t period,
                                        std::int64_t room) {
  if (s.current > room) return period - elapsed + period - mul_div_ceil(period, room + 1, s.current) + 1;
  if (s.previous <= room - s.current) return 0;
  const std::int64_t wait = period - mul_div_ceil(period, room - s.current + 1, s.previous) + 1 - elapsed;
  return std::max<std::int64_t>(0, wait);
}

// Two windows ahead means that the clock was set back: then everything counts as charged now.
template <TwoCounts State>
Settled<State> sliding_window_settle(State s, const Limit& limit, std::int64_t now) {
  const std::int64_t window = div_floor(now, limit.period_us);
  if (s.window <= window + 1) return {s, false};
  return {{window, 0, std::min(s.previous + s.current, limit.permits)}, true};
}

// Counters may exceed the limit, because another version of it with more permits has admitted that many. They never
// exceed the limit that the state belongs to.
inline Stepped<SlidingWindow> sliding_window_step(SlidingWindow s, const Limit& limit, std::int64_t now,
                                                  std::int64_t cost) {
  const std::int64_t period = limit.period_us;
  s = sliding_window_roll(s, period, now);
  const std::int64_t start = s.window * period;
  const std::int64_t elapsed = std::max<std::int64_t>(0, now - start);
  const std::int64_t ahead = std::max<std::int64_t>(0, start - now);  // until a window that has not begun
  Decision d = granted(limit.capacity);
  if (cost < 0) {
    const std::int64_t given = cost < -(s.previous + s.current) ? s.previous + s.current : -cost;
    const std::int64_t newest = std::min(given, s.current);
    s.current -= newest;
    s.previous -= given - newest;
  } else if (cost > limit.permits) {
    refuse(d, kNever);
  } else if (const std::int64_t wait = sliding_window_wait(s, elapsed, period, limit.permits - cost); wait > 0) {
    refuse(d, Micros{wait + ahead});
  } else {
    s.current += cost;
  }
  const std::int64_t used = mul_div_floor(s.previous, period - elapsed, period) + s.current;
  const std::int64_t reset = sliding_window_wait(s, elapsed, period, 0);
  d.remaining = std::max<std::int64_t>(0, limit.permits - used);
  d.reset_after = Micros{reset > 0 ? reset + ahead : 0};
  return {s, d, d.allowed && cost > 0 && s.previous <= limit.permits};
}

// Refunds to the counter of the charged window. Older windows no longer have a counter.
template <TwoCounts State>
State sliding_window_refund(State s, const Limit& limit, std::int64_t now, const Charged& charged, std::int64_t cost) {
  const State at = sliding_window_roll(s, limit.period_us, now);
  const std::int64_t window = div_floor(charged.at_us, limit.period_us);
  if (at.window == window && at.current > 0)
    return {at.window, at.previous, std::max<std::int64_t>(0, at.current - cost)};
  if (at.window == window + 1 && at.previous > 0)
    return {at.window, std::max<std::int64_t>(0, at.previous - cost), at.current};
  return s;
}

}  // namespace weir::algorithm
