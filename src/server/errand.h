// What is done on a fiber, and the fibers of a loop with those who wait for one.
//
// A request that may have to wait for its decision is an errand. Whoever can do without is told that no fiber is to be
// had (start()); whoever cannot, such as a client that has left and gives its place back, is served by the next fiber
// that comes to the end of its own errand (start_or_wait()). Belongs to one loop and its thread. Tested by
// fiber_session_test.cc.
#pragma once

#include <utility>

#include "fiber.h"

namespace weir {

class Errand {
 public:
  // On a fiber. It may be the end of this object.
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
  explicit Errands(Fibers& fibers) : fibers_(fibers) {}  // which outlive it
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // Runs it until it ends or waits. False, and nothing was done, if no fiber is to be had.
  bool start(Errand& errand) {
    return fibers_.start([this, &errand] {
      errand.run();
      serve();
    });
  }

  // The same, now or when another one has ended. If there is not even memory for a single stack, it has to do without.
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
  Errand* first_ = nullptr;  // of those that wait for a fiber
  Errand* last_ = nullptr;
};

}  // namespace weir
