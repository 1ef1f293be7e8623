// A store far away: every call of a limiter from a fiber waits there until a test lets its answer come.
//
//   SlowStore store;                          while it lives, in this thread
//   store.answer_one(random);                 any of those who wait goes on
//
// Calls from outside of fibers do not wait. Belongs to the thread that made it. Used by the tests of sessions on
// fibers.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "base/fiber.h"
#include "limiter/limiter_hook.h"
#include "seed.h"
#include "weir/result.h"

namespace weir::test {

class SlowStore {
 public:
  SlowStore() {
    WEIR_ASSERT(here_ == nullptr);
    here_ = this;
    before_store = [] {
      if (here_ != nullptr && Fibers::here() != nullptr) here_->wait(*Fibers::here());
    };
  }
  SlowStore(const SlowStore&) = delete;
  SlowStore& operator=(const SlowStore&) = delete;
  ~SlowStore() { here_ = nullptr; }

  std::size_t waiting() const { return waiting_.size(); }
  std::size_t calls() const { return calls_; }  // that have waited
  // From now on no call waits.
  void hurry() { is_quick_ = true; }

  void answer(std::size_t place) {
    const Call call = waiting_[place];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(place));
    call.fibers->resume(call.fiber);
  }
  void answer_one(std::mt19937_64& random) {
    answer(static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(waiting_.size()) - 1)));
  }
  void answer_all() {
    while (!waiting_.empty()) answer(0);
  }

 private:
  struct Call {
    Fibers* fibers;
    Fiber* fiber;
  };

  void wait(Fibers& fibers) {
    if (is_quick_) return;
    ++calls_;
    waiting_.push_back({&fibers, fibers.current()});
    fibers.suspend();
  }

  static inline thread_local SlowStore* here_ = nullptr;
  std::vector<Call> waiting_{};
  std::size_t calls_ = 0;
  bool is_quick_ = false;
};

}  // namespace weir::test
