// The heart of the test suite: the oracle, the C++ and the Lua give the same answers, bit for bit.
//
// Every sequence of up to five requests over a small alphabet, and a million random steps an algorithm, with limits
// that change and time that runs both ways. A failure prints its seed; WEIR_SEED=n runs the same again.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "fleet/redis_script.h"
#include "lua_redis.h"
#include "sanitized.h"
#include "trace.h"

namespace weir::test {
namespace {

constexpr std::uint64_t kScale = kIsSanitized ? 50 : 1;
constexpr std::size_t kTraceOps = 200;

class Differential : public ::testing::TestWithParam<Algorithm> {
 protected:
  std::shared_ptr<LuaRedis> redis_ = std::make_shared<LuaRedis>(redis_script());

  void compare(const Trace& trace) {
    const Limit& limit = trace.limits.front();
    for (auto make : {+[](const std::shared_ptr<LuaRedis>&, const Limit&l) { return cell_engine(l); },
                      +[](const std::shared_ptr<LuaRedis>&r, const Limit&l) { return lua_engine(r, l); }}) {
      const auto engine = make(redis_, limit);
      const auto wrong = replay(trace, *engine);
      ASSERT_FALSE(wrong) << *wrong;
    }
  }
};

// The script is assembled anew for each call, so it is held to sequences of four here, and to longer ones below.
TEST_P(Differential, AllAgreeOnEverySmallSequence) {
  const int length = kScale == 1 ? 5 : 4;
  std::uint64_t walked = 0, walked_by_lua = 0;
  for (const auto& limits : small_limits(GetParam())) {
    std::vector<std::unique_ptr<Engine>> engines, with_lua;
    engines.push_back(oracle_engine(limits.front()));
    engines.push_back(cell_engine(limits.front()));
    with_lua.push_back(oracle_engine(limits.front()));
    with_lua.push_back(lua_engine(redis_, limits.front()));
    const auto wrong = walk_small_traces(limits, length, std::move(engines), walked);
    ASSERT_FALSE(wrong) << *wrong;
    const auto wrong_by_lua = walk_small_traces(limits, length - 1, std::move(with_lua), walked_by_lua);
    ASSERT_FALSE(wrong_by_lua) << *wrong_by_lua;
  }
  EXPECT_GT(walked, kScale == 1 ? 1'000'000u : 50'000u);
  EXPECT_GT(walked_by_lua, kScale == 1 ? 50'000u : 2'000u);
}

TEST_P(Differential, AllAgreeOnRandomSteps) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t i = 0; i < 400'000 / kTraceOps / kScale && !HasFatalFailure(); ++i) {
    compare(random_trace(GetParam(), seed + i, kTraceOps, i % 2 == 0 ? Time::forward : Time::both_ways));
  }
}

// The ends of every range, all with all: nothing overflows, nothing is off by one.
TEST_P(Differential, AllAgreeAtTheBoundaries) {
  const auto edges = boundary_traces(GetParam());
  EXPECT_GT(edges.size(), 50u);
  for (const Trace& trace : edges) {
    compare(trace);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Differential, ::testing::ValuesIn(kAlgorithms),
                         [](const auto& param) { return std::string(to_string(param.param)); });

// Behind --long: ten times as much, and every sequence of six.
class DifferentialLong : public Differential {};

TEST_P(DifferentialLong, AllAgreeOnTenMillionRandomSteps) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t i = 0; i < 10'000'000 / kTraceOps / kScale && !HasFatalFailure(); ++i) {
    compare(random_trace(GetParam(), seed + i, kTraceOps, i % 2 == 0 ? Time::forward : Time::both_ways));
  }
}

TEST_P(DifferentialLong, TheScriptAgreesOnEverySequenceOfFive) {
  std::uint64_t walked = 0;
  for (const auto& limits : small_limits(GetParam())) {
    std::vector<std::unique_ptr<Engine>> engines;
    engines.push_back(oracle_engine(limits.front()));
    engines.push_back(lua_engine(redis_, limits.front()));
    const auto wrong = walk_small_traces(limits, 5, std::move(engines), walked);
    ASSERT_FALSE(wrong) << *wrong;
  }
}

TEST_P(DifferentialLong, TheCppAgreesOnEverySequenceOfSix) {
  std::uint64_t walked = 0;
  for (const auto& limits : small_limits(GetParam())) {
    std::vector<std::unique_ptr<Engine>> engines;
    engines.push_back(oracle_engine(limits.front()));
    engines.push_back(cell_engine(limits.front()));
    const auto wrong = walk_small_traces(limits, 6, std::move(engines), walked);
    ASSERT_FALSE(wrong) << *wrong;
  }
  EXPECT_GT(walked, 10'000'000u);
}

INSTANTIATE_TEST_SUITE_P(Of, DifferentialLong, ::testing::ValuesIn(kAlgorithms),
                         [](const auto& param) { return std::string(to_string(param.param)); });

class CalendarDifferential : public Differential {};
class LogDifferential : public Differential {};

TEST_P(LogDifferential, AllAgreeOnALogThatCountsPastTheEndOfDoubles) { compare(long_log_trace()); }

INSTANTIATE_TEST_SUITE_P(Of, LogDifferential, ::testing::Values(Algorithm::sliding_log),
                         [](const auto& param) { return std::string(to_string(param.param)); });

TEST_P(CalendarDifferential, AllAgreeOnCalendarWindows) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t i = 0; i < 40'000 / kTraceOps / kScale && !HasFatalFailure(); ++i) {
    compare(random_calendar_trace(seed + i, kTraceOps, i % 2 == 0 ? Time::forward : Time::both_ways));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, CalendarDifferential, ::testing::Values(Algorithm::fixed_window),
                         [](const auto& param) { return std::string(to_string(param.param)); });

}  // namespace
}  // namespace weir::test
