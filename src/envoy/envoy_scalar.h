// What a scalar of YAML means to the reader that Envoy's reference service uses, YAML 1.1 as Go reads it: `yes` is
// true, `0x10` is 16, `08` and `1e3` are numbers with a fraction, and what is in quotes is a text.
//
// Needed because that service refuses fractions wherever they stand. Pure; any thread. Tested by envoy_scalar_test.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "policy/node.h"

namespace weir {

// A whole number of 64 bits; nothing for any other scalar.
std::optional<std::int64_t> envoy_whole(const Node& scalar);
std::optional<bool> envoy_boolean(const Node& scalar);

// A number that is none of the above: a fraction, an exponent, infinity, or beyond 64 bits.
bool is_envoy_fraction(const Node& scalar);

}  // namespace weir
