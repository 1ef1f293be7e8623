// A full table stays bounded and uses every slot that becomes free, and the sweep frees slots. eviction_test.cc tests
// which keys it evicts, and what that means for them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "seed.h"
#include "store_fixture.h"

namespace weir::test {
namespace {

class FullTable : public StoreTest {};

TEST_F(FullTable, StaysBoundedUnderAFloodOfKeys) {
  for (const Algorithm algorithm : kChecked) {
    const auto store = make(100);
    const Limit limit = limit_of("5/hour", algorithm);
    EXPECT_TRUE(charge(*store, "victim", limit, 5).allowed);
    for (int i = 0; i < 5'000; ++i) {
      charge(*store, "flood" + std::to_string(i), limit, 1, kNow + i);
      EXPECT_FALSE(charge(*store, "victim", limit, 1, kNow + i).allowed);
    }
    EXPECT_LE(store->size(), store->capacity());
    EXPECT_GT(store->counters().evicted, 0u);
    // All of them recover in time, and their slots are used again.
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(charge(*store, "later" + std::to_string(i), limit, 1, kNow + 10'800'000'000).allowed);
    }
    EXPECT_LE(store->size(), store->capacity());
  }
}

// A page stores that it is full. A new key searches the page again before it evicts a key.
TEST_F(FullTable, FindsTheRoomThatAResetLeaves) {
  const auto store = make(1);
  const Limit day = limit_of("5/day", Algorithm::token_bucket), log = limit_of("5/day", Algorithm::sliding_log);
  const Limit wide = limit_of("100000/day", Algorithm::token_bucket);
  for (std::size_t i = 0; i < store->capacity(); ++i) charge(*store, "k" + std::to_string(i), day, 5);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(*store->reset("k" + std::to_string(i), kNow));
    EXPECT_TRUE(charge(*store, "new" + std::to_string(i), i % 2 == 0 ? log : wide, 1, kNow + i).allowed) << i;
    EXPECT_EQ(store->size(), store->capacity());
  }
  EXPECT_EQ(store->counters().evicted, 0u);
}

// When all keys have used their limits, a new key gets no more than one of them has left.
TEST_F(FullTable, AdmitsNobodyNewWhenAllKeysAreSpent) {
  for (const Algorithm algorithm : kChecked) {
    const auto store = make(1, 1 << 20);
    const Limit limit = limit_of("5/hour", algorithm);
    for (std::size_t i = 0; i < store->capacity(); ++i) {
      EXPECT_TRUE(charge(*store, "k" + std::to_string(i), limit, 5).allowed);
    }
    EXPECT_EQ(store->size(), store->capacity());
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(charge(*store, "new" + std::to_string(i), limit, 1).allowed) << i;
    EXPECT_EQ(store->counters().early, 100u);
    EXPECT_EQ(store->counters().evicted, 0u);
    for (std::size_t i = 0; i < store->capacity(); ++i) {
      EXPECT_FALSE(charge(*store, "k" + std::to_string(i), limit, 1).allowed);
    }
  }
}

// Permits in flight are never evicted: they take at most half of a page, and other keys the rest.
TEST_F(FullTable, PermitsInFlightHaveHalfOfAPage) {
  const auto store = make(1);
  const Limit flights = algorithm::make_window(Algorithm::concurrency, 5, 60'000'000).value();
  const Limit minute = limit_of("5/min", Algorithm::fixed_window);
  std::size_t held = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string key = "held" + std::to_string(i);
    const auto decision = store->acquire({.key = key, .limit = &flights, .cost = 1}, "id", kNow);
    ASSERT_TRUE(decision) << decision.error().message;
    held += decision->allowed ? 1u : 0u;
    if (decision->allowed) continue;
    EXPECT_EQ(decision->decided_by, DecidedBy::no_room);
    EXPECT_GT(decision->retry_after, Micros{0});
  }
  EXPECT_EQ(held, store->capacity() / 2);
  for (std::size_t i = 0; i < store->capacity(); ++i) {
    EXPECT_TRUE(charge(*store, "k" + std::to_string(i), minute, 1).allowed);
  }
  for (std::size_t i = 0; i < held; ++i) EXPECT_TRUE(*store->release("held" + std::to_string(i), "id", kNow)) << i;
}

// Permits in flight fill the arena to the last block. A release needs no block.
TEST_F(FullTable, ReleasesPermitsWhenNoBlockIsFree) {
  const auto store = make(1'000, std::uint64_t{64} << 10);
  const Limit flights = algorithm::make_window(Algorithm::concurrency, 1'000, 60'000'000).value();
  const Limit wide = limit_of("1000000000/year", Algorithm::token_bucket);
  const auto key = [](int i) { return "k" + std::to_string(i); };
  const auto acquire = [&](int i, const std::string& id, std::int64_t cost) {
    const auto decision = store->acquire({.key = key(i), .limit = &flights, .cost = cost}, id, kNow);
    EXPECT_TRUE(decision) << decision.error().message;
    return decision.value_or(Decision{});
  };
  std::vector<std::pair<int, std::string>> held;
  std::vector<std::int64_t> counts(1'000);
  const auto hold = [&](int i) {
    const std::string id = std::to_string(held.size());
    if (!acquire(i, id, 1).allowed) return false;
    held.emplace_back(i, id);
    ++counts[static_cast<std::size_t>(i)];
    return true;
  };
  for (int n = 0; n < 200; ++n) EXPECT_TRUE(hold(0));
  for (bool is_more = true; is_more;) {
    is_more = false;
    for (int i = 1; i < 1'000; ++i) is_more = hold(i) || is_more;
  }
  EXPECT_FALSE(acquire(0, "more", 1).allowed);
  std::mt19937_64 random = seeded();
  std::ranges::shuffle(held, random);
  for (const auto& [i, id] : held) {
    const auto released = store->release(key(i), id, kNow);
    ASSERT_TRUE(released) << released.error().message;
    EXPECT_TRUE(*released);
    EXPECT_FALSE(*store->release(key(i), id, kNow)) << "it was given back before";
    const std::int64_t left = --counts[static_cast<std::size_t>(i)];
    const Decision now = acquire(i, "", 0);
    EXPECT_EQ(now.remaining, 1'000 - left);
    EXPECT_EQ(now.reset_after, Micros{left > 0 ? 60'000'000 : 0});
  }
  EXPECT_EQ(store->size(), 0u);
  EXPECT_TRUE(charge(*store, "wide", wide, 1).allowed);
}

// A request over a key that has expired and new keys: to free a slot, it must not evict a key that it charges.
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
      ASSERT_TRUE(verdict);
      if (!verdict->allowed) continue;  // by now all have used as much as there is
      ASSERT_FALSE(charge(*store, lapsed, limit, 1, later).allowed) << lapsed << " was charged and forgotten";
    }
  }
}

// New keys reuse the slots of expired keys, and a sweep removes the rest. A new key in a page that was not swept looks
// at eight keys at least. One key in ten has not expired, so that all eight have not is rare.
TEST_F(FullTable, SweepsKeysThatHaveRecovered) {
  for (const Algorithm algorithm : kChecked) {
    const auto store = make(20'000);
    const Limit limit = limit_of("5/s", algorithm);
    for (int i = 0; i < 30'000; ++i) charge(*store, "k" + std::to_string(i), limit, 1, kNow + i * 1'000);
    EXPECT_LE(store->counters().evicted, 3u) << "at most 2,000 were alive at any time";
    const std::int64_t later = kNow + 30'000'000 + 2'000'000;
    charge(*store, "late", limit, 1, later);
    store->sweep(later);
    EXPECT_EQ(store->size(), 1u) << weir::to_string(algorithm) << ": all others are gone after two periods";
    EXPECT_EQ(charge(*store, "late", limit, 0, later).remaining, 4);
  }
}

// Sweeps a large table in slices, with the rests that the store asks for: each key is swept within two periods.
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
