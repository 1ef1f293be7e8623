// A store far away: every call of its limiters from a fiber waits until a test releases it.
//
//   SlowStore store;
//   Limiter limiter({.shared = store.store()});
//   store.answer_one(random);                 one of the waiting calls goes on
//
// Calls from outside of fibers do not wait. One thread. Used by the tests of sessions on fibers.
#pragma once

#include <cstddef>
#include <memory>
#include <random>
#include <vector>

#include "base/fiber.h"
#include "seed.h"
#include "waiting_store.h"

namespace weir::test {

class SlowStore {
 public:
  // For LimiterOptions::shared.
  std::shared_ptr<store::Store> store() {
    return std::make_shared<WaitingStore>([this] {
      if (base::Fibers::here() != nullptr) wait(*base::Fibers::here());
    });
  }

  std::size_t waiting() const { return waiting_.size(); }
  std::size_t calls() const { return calls_; }  // how many calls have waited
  // From now on no call waits.
  void hurry() { is_quick_ = true; }

  void answer(std::size_t place) {
    const Call call = waiting_[place];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(place));
    call.fibers->resume(call.fiber);
  }
  void answer_one(std::mt19937_64& random) { answer(below(random, waiting_.size())); }
  void answer_all() {
    while (!waiting_.empty()) answer(0);
  }

 private:
  struct Call {
    base::Fibers* fibers;
    base::Fiber* fiber;
  };

  void wait(base::Fibers& fibers) {
    if (is_quick_) return;
    ++calls_;
    waiting_.push_back({&fibers, fibers.current()});
    fibers.suspend();
  }

  std::vector<Call> waiting_{};
  std::size_t calls_ = 0;
  bool is_quick_ = false;
};

}  // namespace weir::test
