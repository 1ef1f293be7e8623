// From one stack to another: all that a fiber needs of the processor.
//
// On x86-64 and aarch64 it is written by hand, since swapcontext() makes two system calls; elsewhere, or with
// WEIR_FIBERS_BY_UCONTEXT, it is swapcontext() all the same. What a function must keep for its caller is kept:
// registers and, on x86-64, the modes of floating point. One thread. Tested by fiber_test.cc.
#pragma once

#include <cstddef>

#if !defined(WEIR_FIBERS_BY_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define WEIR_FIBERS_BY_UCONTEXT
#endif
#ifdef WEIR_FIBERS_BY_UCONTEXT
#include <ucontext.h>
#endif

namespace weir {

// Where somebody stopped.
struct FiberPlace {
#ifdef WEIR_FIBERS_BY_UCONTEXT
  ucontext_t context{};
#else
  void* stack_pointer = nullptr;
#endif
};

// Whoever goes to this place for the first time calls `entry`, which never returns, on the stack that begins at
// `bottom`. For those who walk up the stack, be it for an exception or a report, it ends there.
void begin_at(FiberPlace& place, std::byte* bottom, std::size_t bytes, void (*entry)(void*), void* argument);

// Stops here, to be gone on with from `from`, and goes on at `to`.
void go_from(FiberPlace& from, FiberPlace& to);

}  // namespace weir
