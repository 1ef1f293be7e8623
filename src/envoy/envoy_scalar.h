// Interprets a YAML scalar as the YAML reader of Envoy's reference service does: YAML 1.1 as implemented in Go. `yes`
// is true, `0x10` is 16, `08` and `1e3` are fractions, and a quoted scalar is text.
//
// We need this because that service refuses fractions wherever they appear. Pure; any thread may call it. Tested by
// envoy_scalar_test.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "policy/node.h"

namespace weir {

// Returns a 64-bit integer, or nothing for any other scalar.
std::optional<std::int64_t> envoy_whole(const Node& scalar);
std::optional<bool> envoy_boolean(const Node& scalar);

// Whether the scalar is any other number: a fraction, an exponent, infinity, NaN, or an integer beyond 64 bits.
bool is_envoy_fraction(const Node& scalar);

}  // namespace weir
