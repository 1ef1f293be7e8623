// Fixed window: a counter that restarts at zero at every boundary. Its twin in Lua is fixed_window.lua.
//
// The end of a window identifies it, so windows of a period and of a calendar work in the same way. A calendar's ends
// are by its own clock (calendar_shift.h), so a corrected wall clock changes neither which day was charged nor how
// often. Pure, but for the thread's correction; any thread.
// Tested by differential_test.cc and tests/scenarios/fixed_window.txt.
#pragma once

#include "algorithm/calendar.h"
#include "algorithm/calendar_shift.h"
#include "algorithm/division.h"
#include "algorithm/step.h"

namespace weir::algorithm {

struct FixedWindow {
  std::int64_t end_us = 0;  // of the window that `count` belongs to; by the calendar's clock if it is a calendar's
  std::int64_t count = 0;
  friend bool operator==(const FixedWindow&, const FixedWindow&) = default;
};

inline Window fixed_window_at(const Limit& limit, std::int64_t now) {
  if (limit.period_us == 0) return limit.calendar->window_at(shown_by(*limit.calendar, now));
  const std::int64_t period = limit.period_us;
  const std::int64_t lead = period - limit.phase_us;  // of the first window, which begins before the epoch
  const std::int64_t start = div_floor(now + lead, period) * period - lead;
  return {start, start + period, start + 2 * period};
}

// The time at which the state's window ends; until `now` if it has ended.
inline std::int64_t fixed_window_end(const FixedWindow& s, const Limit& limit, std::int64_t now) {
  return limit.period_us == 0 ? end_by(*limit.calendar, s.end_us, now) : s.end_us;
}

inline Settled<FixedWindow> fixed_window_settle(FixedWindow s, const Limit& limit, std::int64_t now) {
  if (fixed_window_end(s, limit, now) <= now) return {s, false};
  const Window window = fixed_window_at(limit, now);
  if (s.end_us <= window.next_end_us) return {s, false};  // this window or the next: used until it ends
  return {{window.end_us, s.count}, true};
}

// The count may exceed the limit, because another version of it with more permits has admitted that many.
inline Stepped<FixedWindow> fixed_window_step(FixedWindow s, const Limit& limit, std::int64_t now, std::int64_t cost) {
  std::int64_t end = fixed_window_end(s, limit, now);
  if (end <= now) {
    s = {fixed_window_at(limit, now).end_us, 0};
    end = fixed_window_end(s, limit, now);
  }
  const std::int64_t left = end - now;
  Decision d = granted(limit.capacity);
  if (cost < 0) {
    s.count = cost < -s.count ? 0 : s.count + cost;
  } else if (cost > limit.permits) {
    refuse(d, kNever);
  } else if (s.count + cost > limit.permits) {
    refuse(d, Micros{left});
  } else {
    s.count += cost;
  }
  d.remaining = std::max<std::int64_t>(0, limit.permits - s.count);
  d.reset_after = Micros{s.count > 0 ? left : 0};
  return {s, d, d.allowed && cost > 0};
}

// Refunds only to the window that was charged, and only while it lasts.
inline FixedWindow fixed_window_refund(FixedWindow s, const Limit& limit, std::int64_t now, const Charged& charged,
                                       std::int64_t cost) {
  if (fixed_window_end(s, limit, now) <= now) return s;
  const std::int64_t charged_end = limit.period_us == 0 ? charged_window_end(*limit.calendar, charged.at_us, now)
                                                        : fixed_window_at(limit, charged.at_us).end_us;
  if (charged_end != s.end_us) return s;
  return {s.end_us, std::max<std::int64_t>(0, s.count - cost)};
}

}  // namespace weir::algorithm
