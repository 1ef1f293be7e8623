// Fibers: blocking work, many pieces of it on one thread, each with its own stack.
//
//   Fibers fibers;
//   fibers.start([&call] { call.answer(); });     runs until it ends, or until something in it waits
//
//   if (Fibers* const fibers = Fibers::here()) {  deep inside: code that must wait for a reply
//     network.ask(question, fibers->current());
//     fibers->suspend();                          returns once the network has called resume()
//   }
//
// The code between start() and suspend() is written as for a thread. Hold no lock across suspend(): the next fiber of
// this thread that wants the lock would wait forever. Code that must hold a lock uses Pinned. All members belong to
// one thread, the first that calls start(). Stacks are kept when their work ends, so later work needs no allocation
// and no system call. Tested by fiber_test.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir::base {

struct FiberOptions {
  std::size_t stack_bytes = std::size_t{128} << 10;  // four times as much under a sanitizer, whose frames are larger
  std::size_t most = 1'024;                          // fibers in flight at once
};

struct Fiber;  // a fiber in flight, identified by its address

class Fibers {
 public:
  // A small callable that runs once, such as a lambda that captures some pointers.
  class Work {
   public:
    static constexpr std::size_t kBytesMax = 32;

    Work() = default;
    template <class F>
    requires(!std::is_same_v<std::decay_t<F>, Work>) Work(F call)  // implicit, so that start() takes a lambda
        : call_([](void* bytes) { (*std::launder(static_cast<F*>(bytes)))(); }) {
      static_assert(sizeof(F) <= kBytesMax && alignof(F) <= alignof(std::max_align_t));
      static_assert(std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F>);
      new (bytes_) F(std::move(call));
    }
    void operator()() { call_(bytes_); }

   private:
    alignas(std::max_align_t) std::byte bytes_[kBytesMax] = {};
    void (*call_)(void*) = nullptr;
  };

  explicit Fibers(const FiberOptions& options = {});
  ~Fibers();  // no fiber may be in flight: the owner ends them first
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Runs `work` until it ends or suspends. Returns false, and runs nothing, if `most` fibers are in flight or there
  // is no memory for a stack. An exception from `work` ends the program.
  bool start(Work work);

  // The Fibers of this thread if the caller runs on one of its fibers, else null.
  static Fibers* here();
  // While a Pinned lives, here() returns null, so code that must wait blocks the thread. For callers that hold a
  // lock.
  class Pinned {
   public:
    Pinned();
    ~Pinned();
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;

   private:
    Fibers* const before_;
  };
  // The running fiber; null if none runs.
  Fiber* current() const { return current_; }
  // Called on a fiber. Returns when resume() is called for that fiber.
  void suspend();
  // Runs a suspended fiber until it ends or suspends again. Call it from the thread's own stack or from another
  // fiber, which continues afterwards.
  void resume(Fiber* fiber);

  // A pointer to what these fibers wait for, for code that finds them through here().
  void set_companion(void* companion) { companion_ = companion; }
  void* companion() const { return companion_; }

  std::size_t in_flight() const { return in_flight_; }
  std::size_t most() const { return most_; }
  std::size_t stacks() const { return stacks_.size(); }  // in use or not

 private:
  Fiber* take();
  void enter(Fiber& fiber);

  const std::size_t stack_bytes_;
  const std::size_t most_;
  std::size_t in_flight_ = 0;
  Fiber* current_ = nullptr;
  void* companion_ = nullptr;
  Fiber* free_ = nullptr;  // last used first: its stack is still in the cache
  std::vector<void*> stacks_;
};

}  // namespace weir::base
