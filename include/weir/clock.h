// Time as an argument: microseconds since the Unix epoch that never run backwards.
//
// Only clock.cc reads the system's clocks. All other code receives a Clock or a plain `now`, so tests and the
// simulator control the time: moving a ManualClock wakes the threads that sleep on it. Any thread may call any
// member.
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

// Every wall-clock time in a decision is below this many microseconds: the year 2112.
inline constexpr std::int64_t kTimeEnd = std::int64_t{1} << 52;

// One thread sleeps on a Sleeper, and any thread may wake it. A wake() before the sleep is not lost: the next sleep
// returns at once.
class Sleeper {
 public:
  void wake();

 private:
  friend class Clock;
  friend class ManualClock;
  std::mutex mutex_;  // guards woken_
  std::condition_variable changed_;
  bool woken_ = false;
  Sleeper* next_ = nullptr;  // link in the list of a ManualClock
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Micros now() const = 0;

  // sleep()
  //
  // Sleeps until the sleeper is woken or the clock shows `until`. It may return earlier, so the caller checks its
  // condition again. This default is for clocks that run in real time. It wakes about once a second in case the
  // machine was suspended.
  virtual void sleep(Sleeper& sleeper, Micros until) const;
};

// The wall clock as it was when this clock was made, advanced by the machine's boot clock. If someone sets the wall
// clock forward or back, no client gains a burst and no client is locked out. After a suspension the time is right.
std::shared_ptr<const Clock> make_system_clock();

// What the system's clocks show at one moment, and during which boot. It is a value, so tests can make one up.
struct ClockReading {
  std::array<std::uint64_t, 2> boot_id{};  // zero: unknown
  std::int64_t wall_us = 0;
  std::int64_t boot_us = 0;  // since that boot, including suspension
};
ClockReading read_clocks();

// A stopwatch: a reading is no time of day, but the difference of two readings is the time between them.
std::chrono::nanoseconds read_stopwatch();

// make_shared_clock()
//
// The boot clock plus an offset in memory that several processes share, so that they all read the same time. About
// once a second it stores the time in `latest_us`. After the next boot, time continues from there. Both values lie in
// the memory of a table, which must outlive the clock.
std::shared_ptr<const Clock> make_shared_clock(const std::int64_t& offset_us, std::int64_t& latest_us);

// A clock that moves only by set() and advance(). It can also be set back, for tests.
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
  mutable std::mutex sleepers_mutex_;  // guards sleepers_; locked before a sleeper's own mutex
  mutable Sleeper* sleepers_ = nullptr;
};

}  // namespace weir
