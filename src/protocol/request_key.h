// What every protocol refuses in a request before anything is charged: an impossible key, an absurd cost.
//
// The texts are one for all protocols. Pure; any thread. Tested by throttle_test.cc and check_json_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/result.h"

namespace weir {

// The limiter's own bound, which the server holds to be the same when it is compiled.
inline constexpr std::size_t kRequestKeyBytesMax = 4096;
// Whole numbers up to here survive in every client, those that only have doubles included.
inline constexpr std::int64_t kRequestCostMax = std::int64_t{1} << 53;

std::optional<Error> refuse_key(std::string_view key);
std::optional<Error> refuse_cost(std::int64_t cost);

}  // namespace weir
