// Fibers: work that may wait, many pieces of it on one thread, each with a stack of its own.
//
//   Fibers fibers;
//   fibers.start([&call] { call.answer(); });     runs until it ends, or until something in it waits
//
//   if (Fibers* const fibers = Fibers::here()) {  deep within: whoever must wait for an answer
//     network.ask(question, fibers->current());
//     fibers->suspend();                          returns once the network has called resume()
//   }
//
// Code between the two stays as it is written for a thread. No lock may be held across suspend(): the next fiber of
// the thread that wants it would wait for ever; who cannot do without is Pinned. All is of one thread, the one that
// first calls start(). Stacks are kept when their work has ended, so that nothing is asked of the heap or the kernel
// later. Tested by fiber_test.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir {

struct FiberOptions {
  std::size_t stack_bytes = std::size_t{128} << 10;  // four times as much under a sanitizer, whose frames are larger
  std::size_t most = 1'024;                          // under way at once
};

struct Fiber;  // one that is under way, known by its place in memory

class Fibers {
 public:
  // Something small that is called once, such as a lambda that has caught some pointers.
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
  ~Fibers();  // none may be under way: whoever makes fibers wait ends that first
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Runs it until it ends or suspends. False, and nothing was run, if as many as may be are under way, or there is no
  // memory for a stack. What the work throws ends the program.
  bool start(Work work);

  // Those of this thread if the caller runs on one of its fibers, else null.
  static Fibers* here();
  // While it lives, the caller is on no fiber, as far as here() knows: who must wait makes the thread wait. For those
  // who hold a lock meanwhile.
  class Pinned {
   public:
    Pinned();
    ~Pinned();
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;

   private:
    Fibers* const before_;
  };
  // The one that runs; null: none does.
  Fiber* current() const { return current_; }
  // On a fiber: returns when somebody has resumed it.
  void suspend();
  // Goes on with one that is suspended, until it ends or suspends again. From the thread's own stack, or from another
  // fiber, which goes on afterwards.
  void resume(Fiber* fiber);

  // Whatever these fibers wait for, for those who find them by here().
  void set_companion(void* companion) { companion_ = companion; }
  void* companion() const { return companion_; }

  std::size_t under_way() const { return under_way_; }
  std::size_t most() const { return most_; }
  std::size_t stacks() const { return stacks_.size(); }  // that there are, in use or not

 private:
  Fiber* take();
  void enter(Fiber& fiber);

  const std::size_t stack_bytes_;
  const std::size_t most_;
  std::size_t under_way_ = 0;
  Fiber* current_ = nullptr;
  void* companion_ = nullptr;
  Fiber* free_ = nullptr;  // the one that was used last comes first: its stack is warm
  std::vector<void*> stacks_;
};

}  // namespace weir
