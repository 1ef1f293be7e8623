// Time, as an argument: microseconds since the Unix epoch that never run backwards.
//
// Only clock.cc asks the system. Everything else is given a Clock or a plain `now`, so that tests and
// the simulator move time by hand, and whoever sleeps on a ManualClock wakes when it is moved. All members
// may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace weir {

using Micros = std::chrono::microseconds;

// Every time of day in a decision is below this many microseconds: the year 2112.
inline constexpr std::int64_t kTimeEnd = std::int64_t{1} << 52;

// Where one thread sleeps and any thread may wake it. A wake() that comes before the sleep is not lost: that sleep
// ends at once.
class Sleeper {
 public:
  void wake();

 private:
  friend class Clock;
  friend class ManualClock;
  std::mutex mutex_;  // guards woken_
  std::condition_variable changed_;
  bool woken_ = false;
  Sleeper* next_ = nullptr;  // of the list of a ManualClock
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Micros now() const = 0;

  // sleep()
  //
  // Until the sleeper is woken or the clock shows `until`; it may also end before, so look again. This one is
  // for clocks that go at the pace of the world; it looks up once a second, in case that the machine was suspended.
  virtual void sleep(Sleeper& sleeper, Micros until) const;
};

// The wall clock as it was when this clock was made, carried on at the pace of the machine's boot
// clock: setting the wall clock forward or back gives nobody a burst and locks nobody out, and a
// suspended machine wakes up at the right time.
std::shared_ptr<const Clock> make_system_clock();

// What the system's clocks show at one moment, and in which of its boots: a value, so that tests can make one up.
struct ClockReading {
  std::array<std::uint64_t, 2> boot_id{};  // zero: not known
  std::int64_t wall_us = 0;
  std::int64_t boot_us = 0;  // since that boot, suspension included
};
ClockReading read_clocks();

// A stopwatch: no time of day, but the distance of two readings is the time between them.
std::chrono::nanoseconds read_stopwatch();

// make_shared_clock()
//
// The boot clock plus an offset that several processes share, so that all of them read the same time. It notes in
// `latest_us`, about once a second, how far time has come: from there it goes on after the next boot. Both
// lie in a table, which must outlive the clock.
std::shared_ptr<const Clock> make_shared_clock(const std::int64_t& offset_us, std::int64_t& latest_us);

// A clock that stands still until told. It obeys: it can also be set back, to see what happens.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Micros start = Micros{0}) : now_us_(start.count()) {}
  Micros now() const override { return Micros{now_us_.load(std::memory_order_relaxed)}; }
  void sleep(Sleeper& sleeper, Micros until) const override;
  void set(Micros now);
  void advance(Micros by);

 private:
  void wake_all();

  std::atomic<std::int64_t> now_us_;
  mutable std::mutex sleepers_mutex_;  // guards sleepers_; locked before a sleeper's own
  mutable Sleeper* sleepers_ = nullptr;
};

}  // namespace weir
