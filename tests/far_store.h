// A store far away, of a loop that runs: every call from its fibers waits for a timer that the loop watches.
//
//   FarStore store(fibers);                   as LoopOptions::far_end
//   store.answers = false;                    whoever waits goes on waiting
//
// Some of those who wait are answered each time, in random order. One at a time in a process; made and ended while no
// loop runs, else of the loop's thread, but for its atomics. Used by fiber_loop_test.cc.
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/fiber.h"
#include "limiter/limiter_hook.h"
#include "seed.h"
#include "server/loop/far_end.h"

namespace weir::test {

class FarStore final : public FarEnd {
 public:
  explicit FarStore(Fibers& fibers)
      : fibers_(fibers), random_(seeded()), timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
    only_ = this;
    before_store = [] {
      if (only_ != nullptr && Fibers::here() == &only_->fibers_) only_->wait();
    };
  }
  FarStore(const FarStore&) = delete;
  FarStore& operator=(const FarStore&) = delete;
  ~FarStore() override {
    before_store = nullptr;
    only_ = nullptr;
  }

  int descriptor() const override { return timer_.get(); }
  void send() override {
    if (!waiting_.empty() && !std::exchange(is_armed_, true)) arm();
  }
  void on_readable() override {
    std::uint64_t times = 0;
    if (read(timer_.get(), &times, sizeof times) != sizeof times) return;
    is_armed_ = false;
    for (std::size_t i = waiting_.size() / 2 + 1; i > 0 && !waiting_.empty() && answers; --i) answer_one();
  }
  void abandon() override {
    is_abandoned_ = true;
    abandoned = waiting_.size();
    while (!waiting_.empty()) answer_one();
  }

  std::atomic<bool> answers{true};
  std::atomic<std::size_t> calls{0};
  std::atomic<std::size_t> abandoned{0};  // calls that were under way at the end

 private:
  void wait() {
    if (is_abandoned_) return;
    waiting_.push_back(fibers_.current());
    ++calls;
    fibers_.suspend();
  }
  void answer_one() {
    const auto place = static_cast<std::size_t>(pick(random_, 0, static_cast<std::int64_t>(waiting_.size()) - 1));
    Fiber* const fiber = waiting_[place];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(place));
    fibers_.resume(fiber);
  }
  void arm() {
    itimerspec once{};
    once.it_value.tv_nsec = 200'000;
    timerfd_settime(timer_.get(), 0, &once, nullptr);
  }

  static inline FarStore* only_ = nullptr;
  Fibers& fibers_;
  std::mt19937_64 random_;
  Descriptor timer_;
  std::vector<Fiber*> waiting_;
  bool is_armed_ = false;
  bool is_abandoned_ = false;
};

}  // namespace weir::test
