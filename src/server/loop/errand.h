// A task that runs on a fiber, and the fibers of a loop with the queue of tasks that wait for one.
//
// A request whose decision may have to wait is an errand. start() fails if no fiber is free; the caller must then do
// without. start_or_wait() is for a task that must run, such as the release of a permit whose client has left: it
// runs on the next fiber that finishes. Belongs to one loop and its thread. Tested by fiber_session_test.cc.
#pragma once

#include <utility>

#include "base/fiber.h"

namespace weir {

class Errand {
 public:
  // Runs on a fiber. It may destroy this object.
  virtual void run() noexcept = 0;

 protected:
  Errand() = default;
  ~Errand() = default;
  Errand(const Errand&) = default;
  Errand& operator=(const Errand&) = default;

 private:
  friend class Errands;
  Errand* next_ = nullptr;
};

class Errands {
 public:
  explicit Errands(Fibers& fibers) : fibers_(fibers) {}  // must outlive it
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // Runs it until it ends or waits. Returns false, without an effect, if no fiber is free.
  bool start(Errand& errand) {
    return fibers_.start([this, &errand] {
      errand.run();
      serve();
    });
  }

  // The same, now or when another errand has ended. If there is no memory for even one stack, runs it without a
  // fiber.
  void start_or_wait(Errand& errand) {
    if (start(errand)) return;
    if (fibers_.under_way() == 0) return errand.run();
    errand.next_ = nullptr;
    (last_ == nullptr ? first_ : last_->next_) = &errand;
    last_ = &errand;
  }

  Fibers& fibers() const { return fibers_; }

 private:
  void serve() {
    while (first_ != nullptr) {
      Errand& next = *std::exchange(first_, first_->next_);
      if (first_ == nullptr) last_ = nullptr;
      next.run();
    }
  }

  Fibers& fibers_;
  Errand* first_ = nullptr;  // queue of errands that wait for a fiber
  Errand* last_ = nullptr;
};

}  // namespace weir
