// The bound on a request's cost, checked by every protocol before anything is charged.
//
// All protocols share the error text. Pure; any thread may call it. Tested by throttle_test.cc and
// check_json_test.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "weir/result.h"

namespace weir {

// Integers up to this are exact in every client, including those that only have doubles.
inline constexpr std::int64_t kRequestCostMax = std::int64_t{1} << 53;

std::optional<Error> refuse_cost(std::int64_t cost);

}  // namespace weir
