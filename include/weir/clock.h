// Time, as an argument: microseconds since the Unix epoch that never run backwards.
//
// Only clock.cc asks the system. Everything else is given a Clock or a plain `now`, so that tests and
// the simulator move time by hand. All members may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace weir {

using Micros = std::chrono::microseconds;

// Every time of day in a decision is below this many microseconds: the year 2112.
inline constexpr std::int64_t kTimeEnd = std::int64_t{1} << 52;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Micros now() const = 0;
};

// The wall clock as it was when this clock was made, carried on at the pace of the machine's boot
// clock: setting the wall clock forward or back gives nobody a burst and locks nobody out, and a
// suspended machine wakes up at the right time.
std::shared_ptr<const Clock> make_system_clock();

// A clock that stands still until told. It obeys: it can also be set back, to see what happens.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Micros start = Micros{0}) : now_us_(start.count()) {}
  Micros now() const override { return Micros{now_us_.load(std::memory_order_relaxed)}; }
  void set(Micros now) { now_us_.store(now.count(), std::memory_order_relaxed); }
  void advance(Micros by) { now_us_.fetch_add(by.count(), std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> now_us_;
};

}  // namespace weir
