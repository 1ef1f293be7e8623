// The result types of every algorithm: pure values, no clock, no store. Any thread.
//
// Each algorithm has three functions over its state. `settle` corrects a state that is ahead of now because time ran
// backwards; the correction stays even if the request is denied. `step` decides; its change is kept only if the
// request is allowed and its cost is not 0. `refund` returns permits that were charged earlier: never more than the
// charge still contributes to the state.
//
// A state belongs to the limit that last admitted a request. A request under another version of that limit is decided
// on the state as it is. Only if the request is admitted may the state become one of the version that decided
// (`converts`).
#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/verdict.h"

namespace weir::algorithm {

template <class State>
struct Settled {
  State state;
  bool moved = false;  // the state was ahead of now and was corrected
};

template <class State>
struct Stepped {
  State next;
  Decision decision;
  bool converts = false;  // `next` belongs to the limit that decided, not to the state's previous one
};

// When the permits to refund were charged, and how fast the bucket drained then.
struct Charged {
  std::int64_t at_us = 0;
  std::int64_t rate = 0, weight = 0;  // of a bucket's limit
};

inline Charged charged_at(const Limit& limit, std::int64_t at_us) { return {at_us, limit.rate, limit.weight}; }

inline Decision granted(std::int64_t limit) { return Decision{.allowed = true, .limit = limit}; }

// Allowed without a wait, also where a lowered limit would deny even a peek.
inline void admit(Decision& decision) {
  decision.allowed = true;
  decision.retry_after = Micros{0};
}

inline void refuse(Decision& decision, Micros retry_after) {
  decision.allowed = false;
  decision.retry_after = retry_after;
}

}  // namespace weir::algorithm
