// A sliding log in two counters: what a table keeps of a log for which it has no block (table/pack.h).
//
// Windows are as long as the period. A request is admitted iff previous + current + cost <= permits. An interval as
// long as the period touches at most two windows that follow each other, so no period ever admits more than the log
// would; a client that uses at most half of its limit in each window is never denied. What was charged counts until the
// end of the next window, so the log may admit where this denies, never the other way round.
//
// A log becomes counters, and counters become a log, without forgiving anything: each event counts from the latest time
// that it may have had. Redis keeps every log as it is, so there is no twin in Lua. Pure; any thread. Tested by
// compact_log_test.cc.
#pragma once

#include "algorithm/division.h"
#include "algorithm/sliding_log.h"

namespace weir {

struct CompactLog {
  std::int64_t window = 0;  // its number since the epoch
  std::int64_t previous = 0;
  std::int64_t current = 0;
  std::int64_t used() const { return previous + current; }
  friend bool operator==(const CompactLog&, const CompactLog&) = default;
};

// To a window; one that is ahead of it stays.
inline CompactLog compact_log_in(const CompactLog& s, std::int64_t window) {
  if (s.window >= window) return s;
  if (s.window == window - 1) return {window, s.current, 0};
  return {window, 0, 0};
}
inline CompactLog compact_log_roll(const CompactLog& s, std::int64_t period, std::int64_t now) {
  return compact_log_in(s, div_floor(now, period));
}

// Two windows ahead: the clock was set back, and all of it counts as charged now.
inline Settled<CompactLog> compact_log_settle(const CompactLog& s, const Limit& limit, std::int64_t now) {
  const std::int64_t window = div_floor(now, limit.period_us);
  if (s.window <= window + 1) return {s, false};
  return {{window, 0, std::min(s.used(), limit.permits)}, true};
}

// The shortest wait until at most `room` is used, without traffic.
inline std::int64_t compact_log_wait(const CompactLog& s, std::int64_t period, std::int64_t now, std::int64_t room) {
  if (s.used() <= room) return 0;
  return (s.window + (s.current <= room ? 1 : 2)) * period - now;
}

// The counters may be above the limit: another version of it, with more permits, has admitted more.
inline Stepped<CompactLog> compact_log_step(CompactLog s, const Limit& limit, std::int64_t now, std::int64_t cost) {
  const std::int64_t period = limit.period_us;
  s = compact_log_roll(s, period, now);
  Decision d = granted(limit.capacity);
  if (cost < 0) {
    const std::int64_t given = cost < -s.used() ? s.used() : -cost;
    const std::int64_t newest = std::min(given, s.current);
    s.current -= newest;
    s.previous -= given - newest;
  } else if (cost > limit.permits) {
    refuse(d, kNever);
  } else if (const std::int64_t wait = compact_log_wait(s, period, now, limit.permits - cost); wait > 0) {
    refuse(d, Micros{wait});
  } else {
    s.current += cost;
  }
  d.remaining = std::max<std::int64_t>(0, limit.permits - s.used());
  d.reset_after = Micros{compact_log_wait(s, period, now, 0)};
  return {s, d, d.allowed && cost > 0};
}

// From the counter of the window that was charged. What a log would not remember any more may never have been counted
// here: the state may be that of a log that became counters after the event had left.
inline CompactLog compact_log_refund(const CompactLog& s, const Limit& limit, std::int64_t now, const Charged& charged,
                                     std::int64_t cost) {
  const std::int64_t period = limit.period_us, window = div_floor(charged.at_us, period);
  if (charged.at_us <= now - period) return s;
  const CompactLog at = compact_log_roll(s, period, now);
  if (at.window == window && at.current > 0)
    return {at.window, at.previous, std::max<std::int64_t>(0, at.current - cost)};
  if (at.window == window + 1 && at.previous > 0)
    return {at.window, std::max<std::int64_t>(0, at.previous - cost), at.current};
  return s;
}

// compact_log_of()
//
// The events that a log still counts, in counters. Of a log that is ahead of now none counts for less long.
template <class Log>
CompactLog compact_log_of(const Log& log, std::int64_t period, std::int64_t now) {
  const std::int64_t n = log.size(), window = div_floor(n > 0 ? std::max(now, log.time(n)) : now, period);
  const auto before = [&](std::int64_t i) { return i > 1 ? log.total(i - 1) : log.base(); };
  const auto from = [&](std::int64_t time) {
    return sliding_log_first(1, n, [&](std::int64_t i) { return log.time(i) > time; });
  };
  if (n == 0) return {window, 0, 0};
  const std::int64_t live = from(now - period), current = std::max(live, from(window * period - 1));
  return {window, before(current) - before(live), log.total(n) - before(current)};
}

// expand()
//
// Two events at most: the window before at its end, this one now.
template <class Log>
Log expand(const CompactLog& s, std::int64_t period, std::int64_t now) {
  const CompactLog at = compact_log_roll(s, period, now);
  const std::int64_t end = std::max<std::int64_t>(0, at.window * period - 1);
  Log log;
  std::int64_t size = 0;
  if (at.previous > 0 && end < now) log.apply(LogEdit{0, ++size, end, at.previous, 0});
  if (at.current > 0 || (at.previous > 0 && size == 0)) log.apply(LogEdit{0, ++size, now, at.used(), 0});
  return log;
}

// join()
//
// What neither of two states has used more than.
inline CompactLog join(const CompactLog& a, const CompactLog& b) {
  const std::int64_t window = std::max(a.window, b.window);
  const CompactLog x = compact_log_in(a, window), y = compact_log_in(b, window);
  return {window, std::max(x.previous, y.previous), std::max(x.current, y.current)};
}

}  // namespace weir
