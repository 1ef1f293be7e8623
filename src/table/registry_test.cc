// Limits by number: a limit has the same number in every process, and a dead writer's entry blocks no other.
#include "table/registry.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "on_threads.h"
#include "table/file.h"

namespace weir::table::registry_test {
namespace {

constexpr std::uint64_t kFamily = 1;

Limit limit_of(std::int64_t permits) {
  return algorithm::make_window(Algorithm::fixed_window, permits, 60'000'000).value();
}

class Registries : public ::testing::Test {
 protected:
  const Mapping mapping_ = std::move(*map_memory(100, 1 << 16));
  const Region& region_ = mapping_.region();
};

TEST_F(Registries, RecognizesALimitOfAnotherProcess) {
  Registry one(region_, {}), other(region_, {});
  Limit calendar = limit_of(7);
  calendar.period_us = 0;
  calendar.calendar = std::make_shared<algorithm::Calendar>(CalendarUnit::month, "Europe/Berlin", algorithm::Zone{});
  for (const Limit& limit : {limit_of(5), algorithm::make_bucket(Algorithm::leaky_bucket, 3, 1'000'000, 50).value(),
                             calendar, phased(limit_of(5), 1).value(), phased(limit_of(5), 59'999'999).value()}) {
    const std::uint32_t number = one.number_of(limit, 0, kFamily);
    ASSERT_NE(number, 0u);
    EXPECT_EQ(other.met(number), nullptr);
    ASSERT_NE(other.known(number), nullptr);
    EXPECT_TRUE(other.known(number)->limit == limit);
    EXPECT_EQ(other.number_of(limit, 1, kFamily), number);
  }
  EXPECT_EQ(one.size(), 5u);
  EXPECT_EQ(one.known(0), nullptr);
  EXPECT_EQ(one.known(4'000), nullptr) << "a number that was never assigned";
  EXPECT_EQ(one.known(kRequest), nullptr);
}

// A log in two counts has the same limit and family as other logs, but its own number. A program that does not know
// the form cannot mistake the number for another limit's.
TEST_F(Registries, DistinguishesCompactLogsFromOthers) {
  Registry one(region_, {}), other(region_, {});
  const Limit log = algorithm::make_window(Algorithm::sliding_log, 5, 60'000'000).value();
  const std::uint32_t usual = one.number_of(log, 0, kFamily), compact = one.number_of(log, 0, kFamily, Form::compact);
  ASSERT_NE(compact, 0u);
  EXPECT_NE(compact, usual);
  EXPECT_EQ(other.number_of(log, 1, kFamily, Form::compact), compact);
  EXPECT_EQ(other.number_of(log, 1, kFamily), usual);
  Registry third(region_, {});
  EXPECT_TRUE(third.known(compact)->limit == log);
  EXPECT_EQ(third.known(compact)->packing.kind, Kind::compact);
  EXPECT_EQ(third.known(usual)->packing.kind, Kind::log);
  EXPECT_EQ(third.known(compact)->floor_name, third.known(usual)->floor_name) << "one family";
  region_.limit(compact).windows = kCompact + 1;  // as a later program might write
  EXPECT_EQ(Registry(region_, {}).known(compact), nullptr);
  region_.limit(compact).windows = kCompact;
  region_.limit(compact).algorithm = static_cast<std::uint8_t>(Algorithm::sliding_window);
  EXPECT_EQ(Registry(region_, {}).known(compact), nullptr) << "damaged";
}

TEST_F(Registries, KeepsHalfOfTheNumbersForRules) {
  Registry registry(region_, {});
  std::set<std::uint32_t> numbers;
  for (std::int64_t i = 1; i <= 2 * kLimitsMax; ++i) {
    numbers.insert(registry.number_of(limit_of(i), 0, 0));
  }
  EXPECT_TRUE(numbers.contains(0)) << "none is left for requests";
  EXPECT_GT(numbers.size(), ad_hoc_max() * 3 / 4);
  EXPECT_LE(*numbers.rbegin(), ad_hoc_max());
  const std::uint32_t number = registry.number_of(limit_of(77), 0, 0);
  EXPECT_NE(number, 0u) << "limits that have a number keep it";
  EXPECT_EQ(registry.known(number)->limit.permits, 77);
  for (std::int64_t i = 1; i <= 1'000; ++i)
    EXPECT_GT(registry.number_of(limit_of(1'000'000 + i), 0, kFamily), ad_hoc_max());
}

TEST_F(Registries, SkipsTheEntryOfADeadWriter) {
  Registry registry(region_, {});
  const std::uint32_t number = registry.number_of(limit_of(5), 0, kFamily);
  region_.limit(number).guard = {guard_tag(kWriting, 0), 9};  // participant 9 died while it wrote
  Registry another(region_, {});
  EXPECT_EQ(another.known(number), nullptr);
  EXPECT_NE(another.number_of(limit_of(5), 0, kFamily), number);
  another.recover(9);
  EXPECT_EQ(state_of(load(region_.limit(number).guard)), kWriting) << "its record says nothing of it";
  region_.participant(9).writing = number;
  another.recover(9);
  EXPECT_EQ(load(region_.limit(number).guard), Word{}) << "free for the next";
  region_.limit(number).guard = {guard_tag(kWriting, 3), 9};
  another.recover_everywhere(9);
  EXPECT_EQ(load(region_.limit(number).guard), (Word{guard_tag(kFree, 3), 0}));
}

// A reused entry still contains what was written there before.
TEST_F(Registries, DoesNotReadAZoneAsAPhase) {
  Registry one(region_, {});
  const std::uint32_t number = one.number_of(limit_of(5), 0, kFamily),
                      shifted = one.number_of(phased(limit_of(5), 7).value(), 0, kFamily);
  RegistryEntry& entry = region_.limit(number);
  entry.calendar_unit = 3;
  entry.zone_bytes = 13;
  std::memcpy(entry.zone, "Europe/Berlin", 13);
  Registry other(region_, {});
  EXPECT_EQ(other.number_of(limit_of(5), 0, kFamily), number);
  EXPECT_TRUE(Registry(region_, {}).known(number)->limit == limit_of(5));
  std::memset(region_.limit(shifted).zone, 0x7f, 8);  // a damaged file: no phase is that long
  EXPECT_EQ(other.known(shifted), nullptr);
  EXPECT_NE(other.number_of(phased(limit_of(5), 7).value(), 0, kFamily), shifted)
      << "the hash alone does not distinguish them";
  region_.limit(number).windows = 3;
  EXPECT_EQ(Registry(region_, {}).known(number), nullptr);
}

TEST_F(Registries, RecallsALimitOnlyWhileItsNumberIsReady) {
  Registry registry(region_, {});
  const Limit limit = limit_of(5), log = algorithm::make_window(Algorithm::sliding_log, 5, 60'000'000).value();
  EXPECT_EQ(registry.recall(limit, kFamily), nullptr);
  const std::uint32_t number = registry.number_of(limit, 0, kFamily);
  ASSERT_NE(registry.recall(limit, kFamily), nullptr);
  EXPECT_EQ(registry.recall(limit, kFamily)->number, number);
  EXPECT_EQ(registry.recall(limit, kFamily + 1), nullptr);
  EXPECT_EQ(registry.recall(phased(limit, 7).value(), kFamily), nullptr) << "in the same place";
  registry.number_of(log, 0, kFamily, Form::compact);
  EXPECT_EQ(registry.recall(log, kFamily), nullptr) << "its number is for counts only";

  Unit& guard = region_.limit(number).guard;
  const Word ready = load(guard);
  for (const Word& other : {Word{guard_tag(kClosing, generation_of(ready)), ready.state},
                            Word{guard_tag(kResting, generation_of(ready)), ready.state},
                            Word{guard_tag(kReady, generation_of(ready) + 1), ready.state}}) {
    ASSERT_TRUE(replace(guard, load(guard), other));
    EXPECT_EQ(registry.recall(limit, kFamily), nullptr) << other.tag;
  }
  ASSERT_TRUE(replace(guard, load(guard), ready));
  EXPECT_NE(registry.recall(limit, kFamily), nullptr);
}

TEST_F(Registries, NumbersALimitForManyThreadsAtOnce) {
  Registry registry(region_, {});
  test::on_threads(std::uint64_t{4}, [&](std::uint64_t who) {
    for (std::int64_t i = 1; i <= 500; ++i) {
      const std::uint32_t number = registry.number_of(limit_of(i), who, kFamily);
      EXPECT_EQ(registry.known(number)->limit.permits, i);
    }
  });
}

}  // namespace
}  // namespace weir::table::registry_test
