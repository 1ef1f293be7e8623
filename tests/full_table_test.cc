// What the table does when it has no room: whom it forgets, who shares a counter, what the sweep makes empty again.
//
// An attacker can make as many keys as they like; that must neither forgive a key that is spent nor take more memory.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "store_fixture.h"

namespace weir::test {
namespace {

class FullTable : public StoreTest<MemoryStore> {};

// An attacker's new keys never push out a key that is spent; they push out each other, and what that forgives is
// counted.
TEST_F(FullTable, StaysBoundedAndForgivesNoSpentKeyUnderAFloodOfKeys) {
  for (const Algorithm algorithm : kChecked) {
    const auto store = make(100);
    const Limit limit = limit_of("5/hour", algorithm);
    EXPECT_TRUE(charge(*store, "victim", limit, 5).allowed);
    for (int i = 0; i < 5'000; ++i) {
      const std::string key = "flood" + std::to_string(i);
      const Charge one{.key = key, .limit = &limit, .cost = 1};
      const auto verdict = store->charge({&one, 1}, kNow + i);
      EXPECT_TRUE(verdict || verdict.error().code == ErrorCode::exhausted);
      EXPECT_FALSE(charge(*store, "victim", limit, 1, kNow + i).allowed);
    }
    EXPECT_LE(store->size(), store->capacity());
    EXPECT_EQ(store->counters().forgiven, store->counters().evicted) << "each had spent 1";
    // All of them recover in time, and their room is used again.
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(charge(*store, "later" + std::to_string(i), limit, 1, kNow + 10'800'000'000).allowed);
    }
    EXPECT_LE(store->size(), store->capacity());
  }
}

// A page remembers that it is full; whoever would be refused looks again, and of those who share a counter each 32nd.
TEST_F(FullTable, FindsTheRoomThatAResetLeaves) {
  const auto store = make(1);
  const Limit day = limit_of("5/day", Algorithm::token_bucket), log = limit_of("5/day", Algorithm::sliding_log);
  for (std::size_t i = 0; i < store->capacity(); ++i) charge(*store, "k" + std::to_string(i), day, 5);
  const Charge none{.key = "none", .limit = &log, .cost = 1};
  EXPECT_FALSE(store->charge({&none, 1}, kNow)) << "there is no room";
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(*store->reset("k" + std::to_string(i), kNow));
    EXPECT_TRUE(charge(*store, "log" + std::to_string(i), log, 1).allowed) << i;
  }
  const Limit wide = limit_of("100000/day", Algorithm::token_bucket);
  EXPECT_EQ(charge(*store, "shares", wide, 1).remaining, 99'999);
  EXPECT_EQ(charge(*store, "shares too", wide, 1).remaining, 99'998);
  EXPECT_TRUE(*store->reset("k50", kNow));
  for (int i = 0; i < 1'000 && store->size() < store->capacity(); ++i) {
    charge(*store, "bucket" + std::to_string(i), wide, 1, kNow + i);
  }
  EXPECT_EQ(store->size(), store->capacity());
}

// A key of a fast limit must not make what was spent under a slow one drain at its pace.
TEST_F(FullTable, SharesNoCounterBetweenTwoLimits) {
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::fixed_window, Algorithm::sliding_window}) {
    const auto store = make(1);
    const Limit day = limit_of("5/day", algorithm), hour = limit_of("10/hour", algorithm);
    const Limit minute = limit_of("100/min", algorithm);
    for (std::size_t i = 0; i < store->capacity(); ++i) charge(*store, "k" + std::to_string(i), day, 5);
    EXPECT_TRUE(charge(*store, "slow", hour, 10).allowed);
    const Decision fast = charge(*store, "fast", minute, 1);
    EXPECT_FALSE(fast.allowed) << to_string(algorithm);
    EXPECT_GT(fast.retry_after, Micros{0});
    const std::int64_t later = kNow + 120'000'000;
    clock_->set(Micros{later});
    EXPECT_FALSE(charge(*store, "slow", hour, 9, later).allowed) << to_string(algorithm);
    EXPECT_EQ(charge(*store, "fast", minute, 0, later).remaining, 0);
  }
}

// When all are spent, nobody is forgotten: new keys share a counter, and once they get a place of their own they start
// from it.
TEST_F(FullTable, ForgivesNobodyWhenAllKeysAreSpent) {
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::fixed_window, Algorithm::sliding_window}) {
    const auto store = make(1);
    const Limit limit = limit_of("5/hour", algorithm), minute = limit_of("5/min", algorithm);
    for (std::size_t i = 0; i < store->capacity(); ++i) {
      const bool one_in_ten = i % 10 == 0;
      EXPECT_TRUE(charge(*store, "k" + std::to_string(i), one_in_ten ? minute : limit, 5).allowed);
    }
    EXPECT_EQ(store->size(), store->capacity());
    std::int64_t admitted = 0;
    for (int i = 0; i < 100; ++i) admitted += charge(*store, "new" + std::to_string(i), limit, 1).allowed ? 1 : 0;
    EXPECT_EQ(admitted, 5) << to_string(algorithm) << ": they share one counter";
    EXPECT_EQ(store->counters().evicted, 0u);
    for (std::size_t i = 0; i < store->capacity(); ++i) {
      const bool one_in_ten = i % 10 == 0;
      EXPECT_FALSE(charge(*store, "k" + std::to_string(i), one_in_ten ? minute : limit, 1).allowed);
    }
    const std::int64_t later = kNow + 180'000'000;
    clock_->set(Micros{later});
    EXPECT_FALSE(charge(*store, "new1", limit, 1, later).allowed) << "it had its share of what was spent";
  }
}

TEST_F(FullTable, ChargesNothingWhenThereIsNoRoomForAllKeys) {
  const auto store = make(1);
  const Limit limit = limit_of("5/hour", Algorithm::sliding_log);
  for (std::size_t i = 0; i + 1 < store->capacity(); ++i) charge(*store, "k" + std::to_string(i), limit, 1);
  const std::size_t before = store->size();
  const Charge charges[] = {{"k0", &limit, 1}, {"b", &limit, 1}, {"c", &limit, 1}};
  const auto refused = store->charge(charges, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::exhausted);
  EXPECT_EQ(store->size(), before);
  EXPECT_EQ(charge(*store, "k0", limit, 0).remaining, 4);
}

// A verdict over a key that has lapsed and keys that are new: making room must not take what is being charged.
TEST_F(FullTable, KeepsALapsedKeyWhileItIsCharged) {
  const Limit limit = limit_of("5/s", Algorithm::token_bucket);
  for (const std::size_t keys_max : {std::size_t{2}, std::size_t{1'000'000}}) {
    const auto store = make(keys_max);
    const int filled = keys_max == 2 ? 2 : 20'000;
    for (int i = 0; i < filled; ++i) charge(*store, "k" + std::to_string(i), limit, 5);
    const std::int64_t later = kNow + 2'000'000;
    clock_->set(Micros{later});
    for (int i = 0; i < filled; ++i) {
      const std::string lapsed = "k" + std::to_string(i), fresh = "n" + std::to_string(i);
      const Charge charges[] = {{lapsed, &limit, 5}, {fresh, &limit, 5}};
      const auto verdict = store->charge(charges, later);
      if (!verdict) continue;  // no room any more
      ASSERT_TRUE(verdict->allowed);
      ASSERT_FALSE(charge(*store, lapsed, limit, 1, later).allowed) << lapsed << " was charged and forgotten";
    }
  }
}

// Stale keys leave: their room is used again, and a sweep removes the rest. Whoever needs room in a page that nobody
// has swept looks at eight others at least; that all are of the one in ten who are alive is met once in millions.
TEST_F(FullTable, SweepsKeysThatHaveRecovered) {
  for (const Algorithm algorithm : kChecked) {
    const auto store = make(20'000);
    const Limit limit = limit_of("5/s", algorithm);
    for (int i = 0; i < 30'000; ++i) charge(*store, "k" + std::to_string(i), limit, 1, kNow + i * 1'000);
    EXPECT_LE(store->counters().evicted, 3u) << "at most 2,000 were alive at any time";
    const std::int64_t later = kNow + 30'000'000 + 2'000'000;
    charge(*store, "late", limit, 1, later);
    store->sweep(later);
    EXPECT_EQ(store->size(), 1u) << to_string(algorithm) << ": all others are gone after two periods";
    EXPECT_EQ(charge(*store, "late", limit, 0, later).remaining, 4);
  }
}

// Slices of a large table, with the rests that the store asks for: never more than two periods pass, or two seconds.
TEST_F(FullTable, SweepsALargeTableInTime) {
  for (const char* quota : {"5/s", "5/3s", "5/min"}) {
    const auto store = make(2'000'000);
    const Limit limit = limit_of(quota, Algorithm::token_bucket);
    for (int i = 0; i < 100; ++i) charge(*store, "k" + std::to_string(i), limit, 5, kNow);
    int rounds = 0;
    std::int64_t now = kNow;
    for (; now < kNow + 2 * limit.period_us; now += store->sweep_rest().count()) rounds += store->sweep(now) ? 1 : 0;
    EXPECT_EQ(store->size(), 0u) << quota;
    EXPECT_GE(rounds, 1) << quota;
    EXPECT_LE(rounds, 1 + limit.period_us * 2 / 1'000'000) << quota << ": no more work than it takes";
  }
}

}  // namespace
}  // namespace weir::test
