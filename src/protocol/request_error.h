// The errors that all request parsers share: invalid input, and a cost out of bounds.
//
// Pure; any thread may call it. Tested through the parsers, by throttle_test.cc, check_json_test.cc and
// weir_commands_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "weir/result.h"

namespace weir::protocol {

inline tl::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

// Integers up to this are exact in every client, including those that only have doubles.
inline constexpr std::int64_t kRequestCostMax = std::int64_t{1} << 53;

inline std::optional<Error> refuse_cost(std::int64_t cost) {
  if (cost >= -kRequestCostMax && cost <= kRequestCostMax) return std::nullopt;
  return Error{ErrorCode::out_of_range,
               "a cost of " + std::to_string(cost) + " is out of range; the range is -2^53 to 2^53 (9007199254740992)"};
}

}  // namespace weir::protocol
