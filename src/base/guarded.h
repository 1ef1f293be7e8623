// Turns exceptions into errors, at the border of the library: no exception reaches a caller.
//
// Any thread. Tested by tests/out_of_memory_test.cc.
#pragma once

#include <exception>
#include <new>

#include "weir/result.h"

namespace weir::base {

// What the call returns, a Result. If memory runs out, an error.
template <class F>
auto guarded(F call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::exhausted, "out of memory");
  } catch (const std::exception&) {
    return fail(ErrorCode::unavailable, "internal error");  // short enough to need no memory
  }
}

}  // namespace weir::base
