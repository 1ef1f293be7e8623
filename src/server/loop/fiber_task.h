// A task that runs on a fiber, the queue of tasks that wait for one, and the backend that fibers wait for.
//
// A request whose decision may have to wait is a task. start() fails if no fiber is free; the caller must then answer
// the request without a fiber. start_or_wait() is for a task that must run, such as the release of a permit whose
// client has left: it runs on the next fiber that finishes. Belongs to one loop and its thread. Tested by
// fiber_session_test.cc and fiber_loop_test.cc.
#pragma once

#include <utility>

#include "base/fiber.h"
#include "weir/result.h"

namespace weir::server::loop {

class FiberTask {
 public:
  // Runs on a fiber. It may destroy this object.
  virtual void run() noexcept = 0;

 protected:
  ~FiberTask() = default;

 private:
  friend class FiberTasks;
  FiberTask* next_ = nullptr;
};

class FiberTasks {
 public:
  explicit FiberTasks(base::Fibers& fibers) : fibers_(fibers) {}  // must outlive it
  FiberTasks(const FiberTasks&) = delete;
  FiberTasks& operator=(const FiberTasks&) = delete;

  // Runs it until it ends or waits. Returns false, without an effect, if no fiber is free.
  bool start(FiberTask& task) {
    return fibers_.start([this, &task] {
      task.run();
      serve();
    });
  }

  // The same, now or when another task has ended. If there is no memory for even one stack, runs it without a
  // fiber.
  void start_or_wait(FiberTask& task) {
    if (start(task)) return;
    if (fibers_.in_flight() == 0) return task.run();
    WEIR_ASSERT(last_ != &task);  // it waits already
    task.next_ = nullptr;
    (last_ == nullptr ? first_ : last_->next_) = &task;
    last_ = &task;
  }

  base::Fibers& fibers() const { return fibers_; }

 private:
  void serve() {
    while (first_ != nullptr) {
      FiberTask& next = *std::exchange(first_, first_->next_);
      if (first_ == nullptr) last_ = nullptr;
      next.run();
    }
  }

  base::Fibers& fibers_;
  FiberTask* first_ = nullptr;  // queue of tasks that wait for a fiber
  FiberTask* last_ = nullptr;
};

// A source of asynchronous answers, such as Redis. A call suspends its fiber. The loop watches a descriptor; when it
// is readable, the answers are read and their fibers resumed one by one, in the loop's own turn. Before the loop ends,
// every call in flight fails, and so does each later call, so that no fiber is left.
class AsyncBackend {
 public:
  virtual ~AsyncBackend() = default;

  // Becomes readable when there are answers; it stays the same descriptor.
  virtual int descriptor() const = 0;
  // Resumes the fibers whose answers have come.
  virtual void on_readable() = 0;
  // The loop is about to wait: send the requests of this turn.
  virtual void send() {}
  // Fails every call, now and from now on. When it returns, all waiting fibers were resumed.
  virtual void abandon() = 0;
};

}  // namespace weir::server::loop
