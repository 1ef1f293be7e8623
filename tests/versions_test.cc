// Versions of one limit on one key, and limits of other periods, in the table as in the oracle.
//
// In a rollout, with an old plan in a cache, or with two processes on one state file, requests have different versions
// of a limit.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "algorithm/limit.h"
#include "sanitized.h"
#include "table_engine.h"

namespace weir::test {
namespace {

constexpr std::int64_t kNow = 1'700'000'000'000'000, kSecond = 1'000'000, kDay = 86'400 * kSecond;

class TableVersions : public ::testing::TestWithParam<Algorithm> {};

// Limits that change, of one period and of several, through slots, blocks and the arena.
TEST_P(TableVersions, AgreeWithTheOracle) {
  const std::uint64_t seed = base_seed();
  int replayed = 0;
  for (std::uint64_t i = 0; i < 2'000 && replayed < (kIsSanitized ? 20 : 300); ++i) {
    Trace trace = random_trace(GetParam(), seed + i, 200, i % 2 == 0 ? Time::forward : Time::both_ways);
    if (GetParam() == Algorithm::sliding_log) {
      for (Limit& limit : trace.limits) limit.events_max = std::min<std::int64_t>(limit.events_max, 64);
      Trace again{.seed = trace.seed, .limits = trace.limits};
      const auto oracle = oracle_engine(again.limits.front());
      for (Op op : trace.ops) {
        op.answer = ask(*oracle, again, op);
        again.ops.push_back(op);
      }
      trace = std::move(again);
    }
    if (!fits_blocks(trace)) continue;
    ++replayed;
    TableEngine engine(trace.limits.front());
    const auto wrong = replay(trace, engine);
    ASSERT_FALSE(wrong) << *wrong;
  }
  EXPECT_GT(replayed, kIsSanitized ? 10 : 100);
}

INSTANTIATE_TEST_SUITE_P(Of, TableVersions, ::testing::ValuesIn(kAlgorithms), algorithm_name);

class VersionsInStore : public ::testing::Test {
 protected:
  std::int64_t admitted(const Limit& limit, int tries, std::int64_t now, const char* key = "k") {
    std::int64_t sum = 0;
    for (int i = 0; i < tries; ++i) {
      const auto decision = store_->check({.key = key, .limit = &limit, .cost = 1}, now);
      sum += decision && decision->allowed ? 1 : 0;
    }
    return sum;
  }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{kNow});
  std::unique_ptr<store::MemoryStore> store_ = store::MemoryStore::open({.keys = 10'000}, clock_).value();
};

// 1000/day on one server and 100/day on another: 9,100 were admitted once.
TEST_F(VersionsInStore, ARolloutAdmitsTheHigherLimit) {
  for (const Algorithm algorithm : kChecked) {
    const Limit high = *compile("1000/day", algorithm), low = *compile("100/day", algorithm);
    std::int64_t sum = 0;
    for (int round = 0; round < 100; ++round) {
      sum += admitted(high, 100, kNow, "rollout");
      sum += admitted(low, 1, kNow, "rollout");
    }
    EXPECT_EQ(sum, 1'000) << weir::to_string(algorithm);
  }
}

// A plan that is lowered and raised again: 39,700 of 10,000 were admitted once.
TEST_F(VersionsInStore, APlanThatGoesDownAndUpFreesNothing) {
  for (const Algorithm algorithm : kChecked) {
    const Limit pro = *compile("10000/day", algorithm), free = *compile("100/day", algorithm);
    std::int64_t sum = 0;
    for (int round = 0; round < 4; ++round)
      sum += admitted(pro, 10'000, kNow, "plan") + admitted(free, 3, kNow, "plan");
    EXPECT_EQ(sum, 10'000) << weir::to_string(algorithm);
  }
}

TEST_F(VersionsInStore, OtherPeriodsAreOtherStates) {
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::sliding_log}) {
    const Limit minute = *compile("10/minute", algorithm), hour = *compile("30/hour", algorithm);
    EXPECT_EQ(admitted(minute, 7, kNow), 7);
    EXPECT_EQ(admitted(hour, 40, kNow), 30);
    EXPECT_EQ(admitted(minute, 40, kNow), 3) << weir::to_string(algorithm);
    EXPECT_EQ(store_->check({.key = "k", .limit = &hour, .cost = 0}, kNow)->remaining, 0);
    EXPECT_TRUE(*store_->forget(algorithm, "k", kNow)) << "all periods";
    EXPECT_EQ(store_->check({.key = "k", .limit = &hour, .cost = 0}, kNow)->remaining, 30);
    EXPECT_EQ(store_->check({.key = "k", .limit = &minute, .cost = 0}, kNow)->remaining, 10);
    EXPECT_FALSE(*store_->forget(algorithm, "k", kNow));
  }
}

// Under a lowered limit, keys stay in their slots: no key moves into the arena.
TEST_F(VersionsInStore, ALoweredRuleMovesNoKeyIntoTheArena) {
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::token_bucket}) {
    const Limit high = *compile("100000/minute", algorithm), low = *compile("3/minute", algorithm);
    const auto store =
        store::MemoryStore::open({.keys = 2'000, .log_bytes = 1}, clock_).value();  // capacity: 1,024 blocks
    for (const std::int64_t now : {kNow, kNow + 60 * kSecond, kNow + 100 * kSecond, kNow + 150 * kSecond}) {
      for (int i = 0; i < 1'500; ++i) {
        const std::string key = "key" + std::to_string(i);
        const bool is_first = now == kNow;
        const auto decision =
            store->check({.key = key, .limit = is_first ? &high : &low, .cost = is_first ? 90'000 : 1}, now);
        ASSERT_TRUE(decision) << decision.error().message;
      }
    }
    EXPECT_EQ(limits_in_blocks(*store), 0);
  }
}

TEST_F(VersionsInStore, ADeniedAcquireNeitherCutsNorDropsHolds) {
  const Limit long_ = *compile("3 concurrent for 1h"), brief = *compile("1 concurrent for 1s");
  ASSERT_TRUE(store_->acquire({.key = "c", .limit = &long_, .cost = 1}, "a", kNow)->allowed);
  ASSERT_TRUE(store_->acquire({.key = "c", .limit = &long_, .cost = 1}, "b", kNow)->allowed);
  EXPECT_FALSE(store_->acquire({.key = "c", .limit = &brief, .cost = 1}, "x", kNow)->allowed);
  const std::int64_t later = kNow + 1'800 * kSecond;
  clock_->set(Micros{later});
  EXPECT_EQ(store_->acquire({.key = "c", .limit = &long_, .cost = 0}, "", later)->remaining, 1);
  const Limit wide = *compile("5 concurrent for 1s");
  EXPECT_TRUE(store_->acquire({.key = "c", .limit = &wide, .cost = 1}, "y", later)->allowed);
  EXPECT_EQ(store_->acquire({.key = "c", .limit = &long_, .cost = 0}, "", later + 2 * kSecond)->remaining, 1);
}

// Two periods of one key must not share a slot, so the prints of usual periods differ.
TEST(PeriodPrint, DiffersBetweenPeriodsThatPeopleWrite) {
  std::set<std::uint64_t> prints;
  std::set<std::int64_t> periods;  // 1000 ms is 1 s, and so on: equal periods have one print
  for (const std::int64_t unit : {std::int64_t{1'000}, kSecond, 60 * kSecond, 3'600 * kSecond, kDay}) {
    for (std::int64_t n = 1; n <= 1'000; ++n) {
      const auto limit = algorithm::make_window(Algorithm::fixed_window, 1, n * unit);
      prints.insert(algorithm::period_print(*limit) & table::kHomeMask);
      periods.insert(n * unit);
    }
  }
  for (const char* zone : {"UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo"}) {
    for (const char* name : {"day", "week", "month", "year"}) {
      prints.insert(algorithm::period_print(*compile("1/calendar_" + std::string(name) + " " + zone)) &
                    table::kHomeMask);
    }
  }
  EXPECT_EQ(prints.size(), periods.size() + 16);
}

}  // namespace
}  // namespace weir::test
