// Sliding log: stores every admitted event, so nothing is estimated. Its twin in Lua is sliding_log.lua.
//
// Each event has one entry: its time and the cumulative total of all costs up to it. So any cost is one write and a
// decision is a binary search. The functions read the log and return an edit, which the store applies. So a vector, a
// ring in the table and a string in Redis share the arithmetic. Entries are numbered from 1, as in Lua. One thread.
// Tested by differential_test.cc and tests/scenarios/sliding_log.txt.
#pragma once

#include <cstddef>
#include <vector>

#include "algorithm/step.h"

namespace weir::algorithm {

struct LogEvent {
  std::int64_t time_us;
  std::int64_t total;  // cumulative
};

// Drops the first `dead` entries and all after entry `keep`, which becomes (time, total).
struct LogEdit {
  std::int64_t dead, keep, time_us, total, base;
};

// Subtracts `cost` from entry `from` and from the totals of all later ones. `drops` removes the entry. Cost 0: no
// change.
struct LogRefund {
  std::int64_t from, cost;
  bool drops;
};

class SlidingLog {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(events_.size() - first_); }
  std::int64_t base() const { return base_; }  // the total before entry 1
  std::int64_t time(std::int64_t i) const { return at(i).time_us; }
  std::int64_t total(std::int64_t i) const { return at(i).total; }

  void apply(const LogEdit& edit) {
    base_ = edit.base;
    events_.resize(first_ + static_cast<std::size_t>(edit.keep), LogEvent{0, 0});
    first_ += static_cast<std::size_t>(edit.dead);
    if (edit.keep > edit.dead) events_.back() = {edit.time_us, edit.total};
    if (first_ > 64 && first_ > events_.size() / 2) compact();
    if (base_ > kTotalsMax) restart_totals();
  }

  void apply(const LogRefund& refund) {
    const auto from = events_.begin() + static_cast<std::ptrdiff_t>(first_) + refund.from - 1;
    if (refund.cost == 0) return;
    for (auto event = from; event != events_.end(); ++event) event->total -= refund.cost;
    if (refund.drops) events_.erase(from);
  }

 private:
  // Redis stores totals as doubles. There, as here, totals restart long before 2^53; no decision depends on that.
  static constexpr std::int64_t kTotalsMax = std::int64_t{1} << 52;

  void restart_totals() {
    for (LogEvent& event : events_) event.total -= base_;
    base_ = 0;
  }
  const LogEvent& at(std::int64_t i) const { return events_[first_ + static_cast<std::size_t>(i) - 1]; }
  void compact() {
    events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
    if (events_.capacity() > 4 * events_.size()) events_.shrink_to_fit();
  }

  std::vector<LogEvent> events_;
  std::size_t first_ = 0;
  std::int64_t base_ = 0;
};

// The smallest i in [low, high] with test(i), or high + 1. Once true, test must stay true.
template <class Test>
std::int64_t sliding_log_first(std::int64_t low, std::int64_t high, Test test) {
  std::int64_t end = high + 1;
  while (low < end) {
    const std::int64_t middle = low + (end - low) / 2;
    if (test(middle)) {
      end = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Moves events after now to now, where they become one.
template <class Log>
Settled<LogEdit> sliding_log_settle(const Log& log, std::int64_t now) {
  const std::int64_t n = log.size();
  if (n == 0 || log.time(n) <= now) return {{0, n, 0, 0, 0}, false};
  std::int64_t keep = sliding_log_first(1, n, [&](std::int64_t i) { return log.time(i) > now; });
  if (keep > 1 && log.time(keep - 1) == now) --keep;
  return {{0, keep, now, log.total(n), log.base()}, true};
}

// The log may exceed the limit, because another version of it with more permits has admitted that many.
template <class Log>
Stepped<LogEdit> sliding_log_step(const Log& log, const Limit& limit, std::int64_t now, std::int64_t cost) {
  const std::int64_t permits = limit.permits, period = limit.period_us, n = log.size();
  std::int64_t base = log.base(), last = base, time = 0;
  if (n > 0) last = log.total(n), time = log.time(n);
  const std::int64_t dead = sliding_log_first(1, n, [&](std::int64_t i) { return log.time(i) > now - period; }) - 1;
  if (dead > 0) base = log.total(dead);
  const std::int64_t used = last - base;
  std::int64_t keep = n, total = last;
  Decision d = granted(limit.capacity);
  if (cost < 0) {
    total = cost < -used ? base : last + cost;
    keep = total == base ? dead : sliding_log_first(dead + 1, n, [&](std::int64_t i) { return log.total(i) >= total; });
    time = keep > dead ? log.time(keep) : 0;
  } else if (cost > permits) {
    refuse(d, kNever);
  } else if (const bool crowded = cost > 0 && n - dead >= limit.events_max && time != now;
             crowded || used + cost > permits) {
    // The last event that must leave: to free enough permits, and an entry for one more event.
    const std::int64_t i =
        sliding_log_first(dead + 1, n, [&](std::int64_t k) { return last - log.total(k) + cost <= permits; });
    const std::int64_t leaver = cost > 0 ? std::max(i, n - limit.events_max + 1) : i;
    refuse(d, Micros{log.time(leaver) + period - now});
  } else if (cost > 0) {
    total = last + cost;
    if (keep == dead || time != now) ++keep;
    time = now;
  }
  const bool room = keep - dead < limit.events_max || time == now;
  d.remaining = room ? std::max<std::int64_t>(0, permits - (total - base)) : 0;
  d.reset_after = Micros{total > base ? time + period - now : 0};
  return {{dead, keep, time, total, base}, d, d.allowed && cost > 0};
}

// Refunds from the charged event, while the log stores it.
template <class Log>
LogRefund sliding_log_refund(const Log& log, const Limit& limit, std::int64_t now, const Charged& charged,
                             std::int64_t cost) {
  const std::int64_t n = log.size(), at = charged.at_us;
  if (at <= now - limit.period_us) return {0, 0, false};
  const std::int64_t i = sliding_log_first(1, n, [&](std::int64_t k) { return log.time(k) >= at; });
  if (i > n || log.time(i) != at) return {0, 0, false};
  const std::int64_t all = log.total(i) - (i > 1 ? log.total(i - 1) : log.base());
  return {i, std::min(cost, all), cost >= all};
}

}  // namespace weir::algorithm
