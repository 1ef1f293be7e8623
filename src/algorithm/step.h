// What the arithmetic of every algorithm gives back: pure values, no clock, no store.
//
// Each algorithm offers four functions over its state. `settle` corrects a state that is ahead of now
// (time ran backwards); `convert` carries what was spent over to another limit; `step` decides. The first
// two stay even if the request is denied, the third only if it is allowed and costs anything. `refund` takes back
// permits that were charged earlier: never more than the state would lack if they had not been charged at all.
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

// When permits were charged that are refunded now, and how fast a bucket drained then.
struct Charged {
  std::int64_t at_us = 0;
  std::int64_t rate = 0, weight = 0;  // of a bucket's limit
};

inline Charged charged_at(const Limit& limit, std::int64_t at_us) { return {at_us, limit.rate, limit.weight}; }

inline Decision granted(std::int64_t limit) { return Decision{.allowed = true, .limit = limit}; }

inline void refuse(Decision& decision, Micros retry_after) {
  decision.allowed = false;
  decision.retry_after = retry_after;
}

}  // namespace weir
