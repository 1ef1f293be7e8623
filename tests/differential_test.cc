// The oracle, the C++ and the Lua give the same answers, bit for bit.
//
// Every sequence of up to five requests over a small alphabet, and 400,000 random steps for each algorithm, with limits
// that change and time that runs both ways. A failure prints its seed; WEIR_SEED=n runs the same again.

#include <gtest/gtest.h>

#include <memory>

#include "fleet/redis_script.h"
#include "lua_redis.h"
#include "sanitized.h"
#include "trace.h"

namespace weir::test {
namespace {

constexpr std::uint64_t kScale = kIsSanitized ? 50 : 1;
constexpr std::size_t kTraceOps = 200;

class EngineComparison : public ::testing::Test {
 protected:
  std::shared_ptr<LuaRedis> redis_ = std::make_shared<LuaRedis>(fleet::redis_script());

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

class Differential : public EngineComparison, public ::testing::WithParamInterface<Algorithm> {
 protected:
  void compare_random_traces(std::uint64_t steps) {
    const std::uint64_t seed = base_seed();
    for (std::uint64_t i = 0; i < steps / kTraceOps / kScale && !HasFatalFailure(); ++i) {
      compare(random_trace(GetParam(), seed + i, kTraceOps, i % 2 == 0 ? Time::forward : Time::both_ways));
    }
  }

  // Every sequence of this length, on the oracle and on the engine that `make` returns for a limit.
  template <class Make>
  void compare_small_sequences(int length, std::uint64_t least, Make make) {
    std::uint64_t walked = 0;
    for (const auto& limits : small_limits(GetParam())) {
      std::vector<std::unique_ptr<Engine>> engines;
      engines.push_back(oracle_engine(limits.front()));
      engines.push_back(make(limits.front()));
      const auto wrong = walk_small_traces(limits, length, std::move(engines), walked);
      ASSERT_FALSE(wrong) << *wrong;
    }
    EXPECT_GT(walked, least);
  }
  void compare_small_sequences_in_lua(int length, std::uint64_t least) {
    compare_small_sequences(length, least, [this](const Limit& limit) { return lua_engine(redis_, limit); });
  }
};

// A call of the script takes far longer than the C++, so its sequences are one request shorter here. The long test has
// longer ones.
TEST_P(Differential, AllAgreeOnEverySmallSequence) {
  const int length = kScale == 1 ? 5 : 4;
  compare_small_sequences(length, kScale == 1 ? 1'000'000u : 50'000u, cell_engine);
  compare_small_sequences_in_lua(length - 1, kScale == 1 ? 50'000u : 2'000u);
}

TEST_P(Differential, AllAgreeOnRandomSteps) { compare_random_traces(400'000); }

// The ends of every range, all with all: nothing overflows, nothing is off by one.
TEST_P(Differential, AllAgreeAtTheBoundaries) {
  const auto edges = boundary_traces(GetParam());
  EXPECT_GT(edges.size(), 50u);
  for (const Trace& trace : edges) {
    compare(trace);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Differential, ::testing::ValuesIn(kAlgorithms), algorithm_name);

// With --long: ten million random steps, and every sequence of six.
class DifferentialLong : public Differential {};

TEST_P(DifferentialLong, AllAgreeOnTenMillionRandomSteps) { compare_random_traces(10'000'000); }
TEST_P(DifferentialLong, TheScriptAgreesOnEverySequenceOfFive) { compare_small_sequences_in_lua(5, 0); }
TEST_P(DifferentialLong, TheCppAgreesOnEverySequenceOfSix) { compare_small_sequences(6, 10'000'000, cell_engine); }

INSTANTIATE_TEST_SUITE_P(Of, DifferentialLong, ::testing::ValuesIn(kAlgorithms), algorithm_name);

TEST_F(EngineComparison, AllAgreeOnALogThatCountsPastTheEndOfDoubles) { compare(long_log_trace()); }

TEST_F(EngineComparison, AllAgreeOnCalendarWindows) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t i = 0; i < 40'000 / kTraceOps / kScale && !HasFatalFailure(); ++i) {
    compare(random_calendar_trace(seed + i, kTraceOps, i % 2 == 0 ? Time::forward : Time::both_ways));
  }
}

}  // namespace
}  // namespace weir::test
