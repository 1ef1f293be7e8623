// A remote store for a loop that runs: every call from its fibers waits for a timer that the loop watches.
//
//   FarStore store(fibers);                   as LoopOptions::backend
//   Limiter limiter({.shared = store.store()});
//   store.answers = false;                    calls that wait go on waiting
//
// Some of the waiting calls are answered each time, in random order. Create and destroy it while no loop runs; in
// between it belongs to the loop's thread, except for its atomics. Used by fiber_loop_test.cc.
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/fiber.h"
#include "seed.h"
#include "server/loop/fiber_task.h"
#include "waiting_store.h"

namespace weir::test {

class FarStore final : public server::loop::AsyncBackend {
 public:
  explicit FarStore(base::Fibers& fibers)
      : fibers_(fibers), random_(seeded()), timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {}
  FarStore(const FarStore&) = delete;
  FarStore& operator=(const FarStore&) = delete;

  // For LimiterOptions::shared.
  std::shared_ptr<store::Store> store() {
    return std::make_shared<WaitingStore>([this] {
      if (base::Fibers::here() == &fibers_) wait();
    });
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
  std::atomic<std::size_t> abandoned{0};  // calls that were in flight at the end

 private:
  void wait() {
    if (is_abandoned_) return;
    waiting_.push_back(fibers_.current());
    ++calls;
    fibers_.suspend();
  }
  void answer_one() {
    const auto place = below(random_, waiting_.size());
    base::Fiber* const fiber = waiting_[place];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(place));
    fibers_.resume(fiber);
  }
  void arm() {
    itimerspec once{};
    once.it_value.tv_nsec = 200'000;
    timerfd_settime(timer_.get(), 0, &once, nullptr);
  }

  base::Fibers& fibers_;
  std::mt19937_64 random_;
  base::Descriptor timer_;
  std::vector<base::Fiber*> waiting_;
  bool is_armed_ = false;
  bool is_abandoned_ = false;
};

}  // namespace weir::test
