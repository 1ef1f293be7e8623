// Division in its two directions, and products beyond 64 bits. tests/lua_division_test.cc compares the Lua twin with
// these.

#include "algorithm/division.h"

#include <gtest/gtest.h>

namespace weir::algorithm::division_test {
namespace {

TEST(Division, RoundsInTheNamedDirection) {
  EXPECT_EQ(div_floor(7, 2), 3);
  EXPECT_EQ(div_ceil(7, 2), 4);
  EXPECT_EQ(div_ceil(8, 2), 4);
  EXPECT_EQ(div_ceil(0, 5), 0);
  EXPECT_EQ(div_ceil(INT64_MAX, 1), INT64_MAX);
  EXPECT_EQ(div_ceil(INT64_MAX, 2), INT64_MAX / 2 + 1);
}

TEST(Division, HandlesProductsBeyond64Bits) {
  constexpr std::int64_t kPermits = std::int64_t{1} << 40, kTenYears = 315'576'000'000'000;
  EXPECT_EQ(mul_div_floor(kPermits, kTenYears, kTenYears), kPermits);
  EXPECT_EQ(mul_div_floor(kPermits, kTenYears - 1, kTenYears), kPermits - 1);
  EXPECT_EQ(mul_div_ceil(kPermits, kTenYears - 1, kTenYears), kPermits);
  EXPECT_EQ(mul_div_ceil(3, 5, 15), 1);
  EXPECT_EQ(mul_div_floor(0, 5, 15), 0);
}

}  // namespace
}  // namespace weir::algorithm::division_test
