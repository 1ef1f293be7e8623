// What the arithmetic of every algorithm gives back: pure values, no clock, no store.
//
// Each algorithm offers three functions over its state. `settle` corrects a state that is ahead of now (time ran
// backwards), which stays even if the request is denied. `step` decides; what it changes is kept only if the request is
// allowed and costs anything. `refund` takes back permits that were charged earlier: never more than the state would
// lack if they had not been charged at all.
//
// A state belongs to the limit that last admitted. A request under another version of it is decided on the state as it
// is; only if it is admitted may the state become one of the version that decided (`converts`).
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
  bool converts = false;  // `next` belongs to the limit that decided, not to the one that the state had
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
