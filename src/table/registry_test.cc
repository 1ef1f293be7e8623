// Limits by number: a limit has the same number in every process, and a dead writer's entry blocks no other.
#include "table/registry.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "table/file.h"

namespace weir::table::registry_test {
namespace {

constexpr std::uint64_t kFamily = 1;

Limit limit_of(std::int64_t permits) { return make_window(Algorithm::fixed_window, permits, 60'000'000).value(); }

TEST(Registry, KnowsALimitAgainInAnotherProcess) {
  const auto mapping = map_memory(100, 1 << 16);
  const Region& region = mapping->region();
  Registry one(region, {}), other(region, {});
  Limit calendar = limit_of(7);
  calendar.period_us = 0;
  calendar.calendar = std::make_shared<Calendar>(CalendarUnit::month, "Europe/Berlin", Zone{});
  for (const Limit& limit : {limit_of(5), make_bucket(Algorithm::leaky_bucket, 3, 1'000'000, 50).value(), calendar,
                             phased(limit_of(5), 1).value(), phased(limit_of(5), 59'999'999).value()}) {
    const std::uint32_t number = one.number_of(limit, 0, kFamily);
    ASSERT_NE(number, 0u);
    EXPECT_EQ(other.met(number), nullptr);
    ASSERT_NE(other.known(number), nullptr);
    EXPECT_TRUE(other.known(number)->limit == limit);
    EXPECT_EQ(other.number_of(limit, 1, kFamily), number);
  }
  EXPECT_EQ(one.size(), 5u);
  EXPECT_EQ(one.known(0), nullptr);
  EXPECT_EQ(one.known(4'000), nullptr) << "a number that nobody gave";
  EXPECT_EQ(one.known(kRequest), nullptr);
}

// A log in two counts has the same limit and family as other logs, but its own number. A program that does not know
// the form cannot mistake the number for another limit's.
TEST(Registry, TellsCompactLogsFromOthers) {
  const auto mapping = map_memory(100, 1 << 16);
  const Region& region = mapping->region();
  Registry one(region, {}), other(region, {});
  const Limit log = make_window(Algorithm::sliding_log, 5, 60'000'000).value();
  const std::uint32_t usual = one.number_of(log, 0, kFamily), compact = one.number_of(log, 0, kFamily, Form::compact);
  ASSERT_NE(compact, 0u);
  EXPECT_NE(compact, usual);
  EXPECT_EQ(other.number_of(log, 1, kFamily, Form::compact), compact);
  EXPECT_EQ(other.number_of(log, 1, kFamily), usual);
  Registry third(region, {});
  EXPECT_TRUE(third.known(compact)->limit == log);
  EXPECT_EQ(third.known(compact)->packing.kind, Kind::compact);
  EXPECT_EQ(third.known(usual)->packing.kind, Kind::log);
  EXPECT_EQ(third.known(compact)->floor_name, third.known(usual)->floor_name) << "one family";
  region.limit(compact).windows = kCompact + 1;  // as a later program might write
  EXPECT_EQ(Registry(region, {}).known(compact), nullptr);
  region.limit(compact).windows = kCompact;
  region.limit(compact).algorithm = static_cast<std::uint8_t>(Algorithm::sliding_window);
  EXPECT_EQ(Registry(region, {}).known(compact), nullptr) << "damaged";
}

TEST(Registry, KeepsHalfOfTheNumbersForRules) {
  const auto mapping = map_memory(100, 1 << 16);
  Registry registry(mapping->region(), {});
  std::set<std::uint32_t> numbers;
  for (std::int64_t i = 1; i <= 2 * kLimitsMax; ++i) {
    numbers.insert(registry.number_of(limit_of(i), 0, 0));
  }
  EXPECT_TRUE(numbers.contains(0)) << "none is left for requests";
  EXPECT_GT(numbers.size(), ad_hoc_max() * 3 / 4);
  EXPECT_LE(*numbers.rbegin(), ad_hoc_max());
  const std::uint32_t number = registry.number_of(limit_of(77), 0, 0);
  EXPECT_NE(number, 0u) << "those that are in stay known";
  EXPECT_EQ(registry.known(number)->limit.permits, 77);
  for (std::int64_t i = 1; i <= 1'000; ++i)
    EXPECT_GT(registry.number_of(limit_of(1'000'000 + i), 0, kFamily), ad_hoc_max());
}

TEST(Registry, PassesByTheEntryOfADeadWriter) {
  const auto mapping = map_memory(100, 1 << 16);
  const Region& region = mapping->region();
  Registry registry(region, {});
  const std::uint32_t number = registry.number_of(limit_of(5), 0, kFamily);
  region.limit(number).guard = {guard_tag(kWriting, 0), 9};  // participant 9 died while it wrote
  Registry another(region, {});
  EXPECT_EQ(another.known(number), nullptr);
  EXPECT_NE(another.number_of(limit_of(5), 0, kFamily), number);
  another.recover(9);
  EXPECT_EQ(state_of(load(region.limit(number).guard)), kWriting) << "its record says nothing of it";
  region.participant(9).writing = number;
  another.recover(9);
  EXPECT_EQ(load(region.limit(number).guard), Word{}) << "free for the next";
  region.limit(number).guard = {guard_tag(kWriting, 3), 9};
  another.recover_everywhere(9);
  EXPECT_EQ(load(region.limit(number).guard), (Word{guard_tag(kFree, 3), 0}));
}

// A reused entry still contains what was written there before.
TEST(Registry, TakesNoZoneForAPhase) {
  const auto mapping = map_memory(100, 1 << 16);
  const Region& region = mapping->region();
  Registry one(region, {});
  const std::uint32_t number = one.number_of(limit_of(5), 0, kFamily),
                      shifted = one.number_of(phased(limit_of(5), 7).value(), 0, kFamily);
  RegistryEntry& entry = region.limit(number);
  entry.calendar_unit = 3;
  entry.zone_bytes = 13;
  std::memcpy(entry.zone, "Europe/Berlin", 13);
  Registry other(region, {});
  EXPECT_EQ(other.number_of(limit_of(5), 0, kFamily), number);
  EXPECT_TRUE(Registry(region, {}).known(number)->limit == limit_of(5));
  std::memset(region.limit(shifted).zone, 0x7f, 8);  // a damaged file: no phase is that long
  EXPECT_EQ(other.known(shifted), nullptr);
  EXPECT_NE(other.number_of(phased(limit_of(5), 7).value(), 0, kFamily), shifted) << "the hash alone does not tell";
  region.limit(number).windows = 3;
  EXPECT_EQ(Registry(region, {}).known(number), nullptr);
}

TEST(Registry, NumbersALimitForManyThreadsAtOnce) {
  const auto mapping = map_memory(100, 1 << 16);
  Registry registry(mapping->region(), {});
  std::vector<std::thread> threads;
  for (std::uint64_t who = 0; who < 4; ++who) {
    threads.emplace_back([&, who] {
      for (std::int64_t i = 1; i <= 500; ++i) {
        const std::uint32_t number = registry.number_of(limit_of(i), who, kFamily);
        EXPECT_EQ(registry.known(number)->limit.permits, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace weir::table::registry_test
