// Where a store over a network would make a call wait: what tests put there.
//
// Called before each call of a store, by whoever calls the limiter, on any thread; null, as it is, costs a look at it.
// Set before any thread runs. Used by tests/slow_store.h and tests/far_store.h.
#pragma once

namespace weir {

[[gnu::visibility("hidden")]] extern void (*before_store)();

}  // namespace weir
