// The thread that does a little of a limiter's housekeeping about once a second, until it is destroyed.
//
// It sleeps on the limiter's clock, so that a ManualClock moves it too. A child after a fork has no such thread and
// must not destroy this. Tested by limiter_test.cc.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "weir/clock.h"

namespace weir {

class Sweeper {
 public:
  Sweeper(const Clock& clock, std::function<void()> sweep)
      : clock_(clock), sweep_(std::move(sweep)), thread_([this] { run(); }) {}
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;
  ~Sweeper() {
    ended_.store(true, std::memory_order_release);
    sleeper_.wake();
    thread_.join();
  }

 private:
  static constexpr Micros kRest{1'000'000};

  void run() {
    for (Micros next = clock_.now() + kRest; !ended_.load(std::memory_order_acquire); clock_.sleep(sleeper_, next)) {
      if (clock_.now() < next) continue;
      sweep_();
      next = clock_.now() + kRest;
    }
  }

  const Clock& clock_;
  const std::function<void()> sweep_;
  Sleeper sleeper_;
  std::atomic<bool> ended_{false};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace weir
