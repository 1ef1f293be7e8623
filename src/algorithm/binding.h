// Picks the limit of a request that the client is informed of. The stores and the rules both use it, so they agree.
//
// Pure; any thread. Tested by tests/store_contract_test.cc and tests/gate_calls_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "algorithm/division.h"
#include "weir/verdict.h"

namespace weir::algorithm {

// binding_of()
//
// Returns the index of the denial with the longest wait, else of the limit with the smallest part left. Of equals it
// takes the first; 0 if there are none. `allowed` says whether all decisions allow.
inline std::size_t binding_of(std::span<const Decision> decisions, bool allowed) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < decisions.size(); ++i) {
    const Decision &a = decisions[i], &b = decisions[best];
    const bool is_tighter =
        allowed ? Wide{a.remaining} * b.limit < Wide{b.remaining} * a.limit : a.retry_after > b.retry_after;
    if (is_tighter) best = i;
  }
  return best;
}

inline std::size_t binding_of(std::span<const Decision> decisions) {
  return binding_of(decisions, std::ranges::all_of(decisions, &Decision::allowed));
}

}  // namespace weir::algorithm
