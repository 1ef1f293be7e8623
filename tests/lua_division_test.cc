// The Lua division against 128-bit integers: exact for every a < 2^53, b <= c < 2^51, though doubles end at 2^53.
// At the edges of that range first, then at random; a failure prints its seed.

#include <gtest/gtest.h>

#include <lua.hpp>
#include <random>
#include <string>

#include "algorithm/division.h"
#include "read_file.h"
#include "trace.h"

namespace weir::test {
namespace {

class LuaDivision : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string source = read_file(WEIR_SOURCE_DIR "/src/algorithm/division.lua") +
                               "return {div_floor, div_ceil, mul_div_floor, mul_div_ceil}";
    luaL_openlibs(lua_);
    ASSERT_EQ(luaL_dostring(lua_, source.c_str()), 0) << lua_tostring(lua_, -1);
  }
  ~LuaDivision() override { lua_close(lua_); }

  std::int64_t call(int function, std::initializer_list<std::int64_t> arguments) {
    lua_rawgeti(lua_, -1, function);
    for (const std::int64_t argument : arguments) lua_pushnumber(lua_, static_cast<double>(argument));
    lua_call(lua_, static_cast<int>(arguments.size()), 1);
    const auto result = static_cast<std::int64_t>(lua_tonumber(lua_, -1));
    lua_pop(lua_, 1);
    return result;
  }

  void compare(std::int64_t a, std::int64_t b, std::int64_t c) {
    ASSERT_EQ(call(3, {a, b, c}), algorithm::mul_div_floor(a, b, c)) << a << " * " << b << " / " << c;
    ASSERT_EQ(call(4, {a, b, c}), algorithm::mul_div_ceil(a, b, c)) << a << " * " << b << " / " << c;
  }

  lua_State* lua_ = luaL_newstate();
};

constexpr std::int64_t kExact = std::int64_t{1} << 53;

TEST_F(LuaDivision, IsExactAtTheEdges) {
  const std::int64_t top_c = (std::int64_t{1} << 51) - 1;
  for (const std::int64_t a : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 40, kExact / 2, kExact - 1}) {
    for (const std::int64_t c :
         {std::int64_t{1}, std::int64_t{3}, std::int64_t{86'400'000'000}, std::int64_t{1} << 50, top_c}) {
      for (const std::int64_t b : {std::int64_t{0}, std::int64_t{1}, c / 2, c - 1, c}) compare(a, b, c);
    }
  }
}

TEST_F(LuaDivision, IsExactEverywhereElse) {
  const std::uint64_t seed = base_seed();
  std::mt19937_64 dice(seed);
  const auto below = [&](int bits) {
    return static_cast<std::int64_t>(dice() >> (64 - static_cast<int>(dice() % static_cast<unsigned>(bits)) - 1));
  };
  for (int i = 0; i < 300'000 && !HasFatalFailure(); ++i) {
    const std::int64_t c = below(51) + 1;
    compare(below(53), std::min(below(51), c), std::min(c, (std::int64_t{1} << 51) - 1));
    const std::int64_t a = below(52), b = below(52) + 1;
    ASSERT_EQ(call(1, {a, b}), algorithm::div_floor(a, b)) << a << " / " << b;
    ASSERT_EQ(call(2, {a, b}), algorithm::div_ceil(a, b)) << a << " / " << b;
  }
}

}  // namespace
}  // namespace weir::test
