// Switches from one stack to another: the only part of a fiber that depends on the processor.
//
// Why assembly: a switch takes about 16 ns, and one by ucontext's swapcontext() about 270 ns. swapcontext() also sets
// the signal mask by a system call: two calls for a switch to a fiber and back. The assembly is for x86-64 and aarch64.
// Elsewhere, or with WEIR_FIBERS_BY_UCONTEXT, the switch is swapcontext(). It preserves what a function must preserve
// for its caller: registers and, on x86-64, the floating-point modes. One thread. Tested by fiber_test.cc.
#pragma once

#include <cstddef>

#if !defined(WEIR_FIBERS_BY_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define WEIR_FIBERS_BY_UCONTEXT
#endif
#ifdef WEIR_FIBERS_BY_UCONTEXT
#include <ucontext.h>
#endif

namespace weir::base {

// Where a stack stopped.
struct FiberPlace {
#ifdef WEIR_FIBERS_BY_UCONTEXT
  ucontext_t context{};
#else
  void* stack_pointer = nullptr;
#endif
};

// Prepares `place`. The first switch to it calls `entry`, which never returns, on the stack that begins at `bottom`.
// An unwinder, for an exception or a stack trace, stops there.
void begin_at(FiberPlace& place, std::byte* bottom, std::size_t bytes, void (*entry)(void*), void* argument);

// Stops here, saving the position in `from`, and continues at `to`.
void go_from(FiberPlace& from, FiberPlace& to);

}  // namespace weir::base
