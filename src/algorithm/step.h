// What the arithmetic of every algorithm gives back: pure values, no clock, no store.
//
// Each algorithm offers three functions over its state. `settle` corrects a state that is ahead of now
// (time ran backwards); `convert` carries what was spent over to another limit; `step` decides. The first
// two stay even if the request is denied, the third only if it is allowed and costs anything.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/verdict.h"

namespace weir {

template <class State>
struct Settled {
  State state;
  bool moved = false;  // the state was ahead of now, and is not any more
};

template <class State>
struct Stepped {
  State next;
  Decision decision;
};

inline Decision granted(std::int64_t limit) { return Decision{.allowed = true, .limit = limit}; }

inline void refuse(Decision& decision, Micros retry_after) {
  decision.allowed = false;
  decision.retry_after = retry_after;
}

}  // namespace weir
