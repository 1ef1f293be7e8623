// A test hook that runs where a store over a network would wait.
//
// The limiter calls it before each call of a store, on the caller's thread. It is null in production, which costs one
// comparison. Set it before other threads run. Used by tests/slow_store.h and tests/far_store.h.
#pragma once

namespace weir {

[[gnu::visibility("hidden")]] extern void (*before_store)();

}  // namespace weir
