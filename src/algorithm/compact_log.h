// A sliding log in two counters: the form that a table uses when it has no block for a log (table/pack.h).
//
// Windows are as long as the period. A request is admitted iff previous + current + cost <= permits. An interval of
// one period touches at most two consecutive windows, so no period ever admits more than the log would. A client that
// uses at most half of its limit in each window is never denied. A charge counts until the end of the next window, so
// the log may admit where this denies, never the other way round.
//
// Converting a log to counters or back never lowers what counts as used: each event counts from the latest time that
// it may have had. Redis keeps every log as it is, so there is no twin in Lua. Pure; any thread. Tested by
// compact_log_test.cc.
#pragma once

#include "algorithm/division.h"
#include "algorithm/sliding_log.h"
#include "algorithm/sliding_window.h"

namespace weir::algorithm {

struct CompactLog {
  std::int64_t window = 0;  // its number since the epoch
  std::int64_t previous = 0;
  std::int64_t current = 0;
  std::int64_t used() const { return previous + current; }
  friend bool operator==(const CompactLog&, const CompactLog&) = default;
};

// The shortest wait until at most `room` is used, without traffic.
inline std::int64_t compact_log_wait(const CompactLog& s, std::int64_t period, std::int64_t now, std::int64_t room) {
  if (s.used() <= room) return 0;
  return (s.window + (s.current <= room ? 1 : 2)) * period - now;
}

// The counters may exceed the limit, because another version of it with more permits has admitted more.
inline Stepped<CompactLog> compact_log_step(CompactLog s, const Limit& limit, std::int64_t now, std::int64_t cost) {
  const std::int64_t period = limit.period_us;
  s = sliding_window_roll(s, period, now);
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

// Refunds to the counter of the charged window, but only what a log would still store. Older charges may never have
// been counted here, because the log may have become counters after the event had left.
inline CompactLog compact_log_refund(const CompactLog& s, const Limit& limit, std::int64_t now, const Charged& charged,
                                     std::int64_t cost) {
  if (charged.at_us <= now - limit.period_us) return s;
  return sliding_window_refund(s, limit, now, charged, cost);
}

// compact_log_of()
//
// The events that a log still counts, as counters. If the log is ahead of now, no event counts for a shorter time.
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
// Makes at most two events: the previous window's at its end, the current window's at now.
template <class Log>
Log expand(const CompactLog& s, std::int64_t period, std::int64_t now) {
  const CompactLog at = sliding_window_roll(s, period, now);
  const std::int64_t end = std::max<std::int64_t>(0, at.window * period - 1);
  Log log;
  std::int64_t size = 0;
  if (at.previous > 0 && end < now) log.apply(LogEdit{0, ++size, end, at.previous, 0});
  if (at.current > 0 || (at.previous > 0 && size == 0)) log.apply(LogEdit{0, ++size, now, at.used(), 0});
  return log;
}

// join()
//
// Returns the maximum of two states, counter by counter. It rolls with a period of 1, so that a window's number
// serves as the time.
template <TwoCounts Counts>
Counts join(const Counts& a, const Counts& b) {
  const std::int64_t window = std::max(a.window, b.window);
  const Counts x = sliding_window_roll(a, 1, window), y = sliding_window_roll(b, 1, window);
  return {window, std::max(x.previous, y.previous), std::max(x.current, y.current)};
}

}  // namespace weir::algorithm
