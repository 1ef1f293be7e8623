// What every protocol refuses in a request before anything is charged: an absurd cost.
//
// The text is one for all protocols. Pure; any thread. Tested by throttle_test.cc and check_json_test.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "weir/result.h"

namespace weir {

// Whole numbers up to here survive in every client, those that only have doubles included.
inline constexpr std::int64_t kRequestCostMax = std::int64_t{1} << 53;

std::optional<Error> refuse_cost(std::int64_t cost);

}  // namespace weir
