// Division with an explicit rounding direction, and products that may exceed 64 bits on the way.
//
// Its twin is division.lua, where doubles represent whole numbers exactly only up to 2^53. Pure; any thread. Tested
// by division_test.cc.
#pragma once

#include <cstdint>

namespace weir::algorithm {

// Both for a >= 0, b > 0.
constexpr std::int64_t div_floor(std::int64_t a, std::int64_t b) { return a / b; }
constexpr std::int64_t div_ceil(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

__extension__ using Wide = __int128;

// a * b / c for a, b >= 0, c > 0. The quotient must fit.
constexpr std::int64_t mul_div_floor(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<std::int64_t>(Wide{a} * b / c);
}
constexpr std::int64_t mul_div_ceil(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<std::int64_t>((Wide{a} * b + c - 1) / c);
}

}  // namespace weir::algorithm
