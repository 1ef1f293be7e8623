// The stacks of fibers, and the switches between them. See fiber.h.
//
// A stack is mapped once, with an inaccessible guard below it; the Fiber object lies at its upper end. The entry
// function never returns: it runs one piece of work after another, and switches back to the caller after each. Every
// switch is reported to the sanitizers. Exceptions that a fiber has caught but not finished handling stay its own.
// One thread.
#include "base/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/fiber_switch.h"
#include "weir/result.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace weir::base {
namespace {

// More than a page: a function with large arrays may step over one.
constexpr std::size_t kGuardBytes = std::size_t{64} << 10;
constexpr std::size_t kPageBytes = std::size_t{64} << 10;  // at least the page size of any machine; ours have 4 KiB
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kTimes = 4;
#else
constexpr std::size_t kTimes = 1;
#endif

thread_local Fibers* fibers_here = nullptr;

// The C++ runtime's record of exceptions in flight on this thread: two words that the ABI defines.
struct Exceptions {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

void exchange(Exceptions& with) {
  void* const thread = abi::__cxa_get_globals();
  Exceptions before;
  std::memcpy(&before, thread, sizeof before);
  std::memcpy(thread, &with, sizeof with);
  with = before;
}

}  // namespace

struct Fiber {
  enum class State : std::uint8_t { free, runs, suspended };

  Fibers::Work work{};
  FiberPlace place{};       // where the fiber stopped
  FiberPlace returns_to{};  // where the code that runs it continues
  Exceptions exceptions{};  // while it runs, those of the code that runs it
  State state = State::free;
  Fiber* next_free = nullptr;
  std::byte* bottom = nullptr;
  std::size_t bytes = 0;

#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  const void* outer_bottom = nullptr;
  std::size_t outer_bytes = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* thread = __tsan_create_fiber(0);
  void* outer_thread = nullptr;
#endif

  // Called by the code that runs the fiber.
  void enter() {
    exchange(exceptions);
#if defined(__SANITIZE_ADDRESS__)
    void* own_fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&own_fake_stack, bottom, bytes);
#endif
#if defined(__SANITIZE_THREAD__)
    outer_thread = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(thread, 0);
#endif
    go_from(returns_to, place);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(own_fake_stack, nullptr, nullptr);
#endif
    exchange(exceptions);
  }

  // Called by the fiber itself. Returns when the fiber is entered again.
  void leave(State as) {
    state = as;
#if defined(__SANITIZE_ADDRESS__)
    const bool has_ended = as == State::free;
    __sanitizer_start_switch_fiber(has_ended ? nullptr : &fake_stack, outer_bottom, outer_bytes);
    if (has_ended) fake_stack = nullptr;
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(outer_thread, 0);
#endif
    go_from(place, returns_to);
    arrive();
  }

  void arrive() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, &outer_bottom, &outer_bytes);
#endif
  }
};

namespace {

// The bottom frame of every stack. No exception may pass through it.
void run_works(void* argument) noexcept {
  Fiber& fiber = *static_cast<Fiber*>(argument);
  fiber.arrive();
  while (true) {
    fiber.work();
    fiber.leave(Fiber::State::free);
  }
}

std::size_t in_pages(std::size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace

Fibers::Fibers(const FiberOptions& options)
    : stack_bytes_(in_pages(std::max<std::size_t>(options.stack_bytes, 1) * kTimes)), most_(options.most) {}

Fibers::~Fibers() {
  WEIR_ASSERT(in_flight_ == 0);
#if defined(__SANITIZE_THREAD__)
  for (Fiber* fiber = free_; fiber != nullptr; fiber = fiber->next_free) __tsan_destroy_fiber(fiber->thread);
#endif
  for (void* const stack : stacks_) {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stack, kGuardBytes + stack_bytes_);
#endif
    munmap(stack, kGuardBytes + stack_bytes_);
  }
}

Fibers* Fibers::here() { return fibers_here; }
Fibers::Pinned::Pinned() : before_(std::exchange(fibers_here, nullptr)) {}
Fibers::Pinned::~Pinned() { fibers_here = before_; }

// Returns null if `most` fibers are in flight, or there is no memory.
Fiber* Fibers::take() {
  if (in_flight_ >= most_) return nullptr;
  if (free_ != nullptr) return std::exchange(free_, free_->next_free);
  try {
    if (stacks_.size() == stacks_.capacity()) stacks_.reserve(2 * stacks_.size() + 16);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  const std::size_t bytes = kGuardBytes + stack_bytes_;
  void* const stack =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return nullptr;
  if (mprotect(stack, kGuardBytes, PROT_NONE) != 0) {
    munmap(stack, bytes);
    return nullptr;
  }
  stacks_.push_back(stack);
  constexpr std::size_t kAtTop = (sizeof(Fiber) + 63) / 64 * 64;
  auto* const fiber = new (static_cast<std::byte*>(stack) + bytes - kAtTop) Fiber;
  fiber->bottom = static_cast<std::byte*>(stack) + kGuardBytes;
  fiber->bytes = stack_bytes_ - kAtTop;
  begin_at(fiber->place, fiber->bottom, fiber->bytes, run_works, fiber);
  return fiber;
}

bool Fibers::start(Work work) {
  Fiber* const fiber = take();
  if (fiber == nullptr) return false;
  fiber->work = work;
  ++in_flight_;
  enter(*fiber);
  return true;
}

void Fibers::resume(Fiber* fiber) {
  WEIR_ASSERT(fiber->state == Fiber::State::suspended);
  enter(*fiber);
}

void Fibers::suspend() {
  WEIR_ASSERT(fibers_here == this);
  current_->leave(Fiber::State::suspended);
}

void Fibers::enter(Fiber& fiber) {
  Fibers* const outer = std::exchange(fibers_here, this);
  Fiber* const before = std::exchange(current_, &fiber);
  fiber.state = Fiber::State::runs;
  fiber.enter();
  current_ = before;
  fibers_here = outer;
  if (fiber.state != Fiber::State::free) return;
  --in_flight_;
  fiber.next_free = std::exchange(free_, &fiber);
}

}  // namespace weir::base
