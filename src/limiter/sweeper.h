// A thread that runs a limiter's housekeeping in small slices until it is destroyed.
//
// It sleeps on the limiter's clock, so a ManualClock drives it, too. A child process after a fork has no such thread
// and must not destroy this object. Tested by limiter_test.cc.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "weir/clock.h"

namespace weir::limiter {

class Sweeper {
 public:
  // `sweep` runs a slice and returns how long to rest until the next. The first slice runs after one second.
  Sweeper(const Clock& clock, std::function<Micros()> sweep)
      : clock_(clock), sweep_(std::move(sweep)), thread_([this] { run(); }) {}
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;
  ~Sweeper() {
    ended_.store(true, std::memory_order_release);
    sleeper_.wake();
    thread_.join();
  }

 private:
  static constexpr Micros kFirstRest{1'000'000};

  void run() {
    Micros next = clock_.now() + kFirstRest;
    for (; !ended_.load(std::memory_order_acquire); clock_.sleep(sleeper_, next)) {
      const Micros now = clock_.now();
      if (now >= next) next = now + sweep_();
    }
  }

  const Clock& clock_;
  const std::function<Micros()> sweep_;
  Sleeper sleeper_;
  std::atomic<bool> ended_{false};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace weir::limiter
