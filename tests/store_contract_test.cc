// What any store promises, whatever it is made of. A new store is one more name in Stores.
//
// With a frozen clock and any number of threads, admitted == min(offered, limit), exactly: neither one too many nor one
// too few. With a moving clock, no interval holds more than burst + rate * its length. Runs under ThreadSanitizer too.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "algorithm/limit.h"
#include "seed.h"
#include "store/memory_store.h"
#include "trace.h"

namespace weir::test {
namespace {

constexpr std::int64_t kNow = 1'794'701'843'991'953;
constexpr Algorithm kChecked[] = {Algorithm::fixed_window, Algorithm::sliding_log,  Algorithm::sliding_window,
                                  Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::leaky_meter};

Limit limit_of(std::string_view quota, Algorithm algorithm) { return compile(quota, algorithm).value(); }

void on_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

template <class Store>
class StoreContract : public ::testing::Test {
 protected:
  std::unique_ptr<Store> make(std::size_t keys_max = 100'000) {
    clock_->set(Micros{kNow});
    return Store::open({.keys = keys_max}, clock_).value();
  }

  Decision charge(Store& store, std::string_view key, const Limit& limit, std::int64_t cost, std::int64_t now = kNow) {
    const Charge one{.key = key, .limit = &limit, .cost = cost};
    const auto verdict = store.charge({&one, 1}, now);
    EXPECT_TRUE(verdict) << verdict.error().message;
    return verdict ? verdict->decisions.front() : Decision{};
  }

  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
};

using Stores = ::testing::Types<MemoryStore>;
TYPED_TEST_SUITE(StoreContract, Stores);

TYPED_TEST(StoreContract, AdmitsExactlyTheLimitFromAnyNumberOfThreads) {
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("1000/minute", algorithm);
    for (const int threads : {1, 2, 4, 8, 16}) {
      for (const std::int64_t offered : {900, 1000, 3000}) {
        const auto store = this->make();
        std::atomic<std::int64_t> admitted{0};
        on_threads(threads, [&](int thread) {
          std::int64_t mine = 0;
          for (std::int64_t i = thread; i < offered; i += threads) mine += this->charge(*store, "k", limit, 1).allowed;
          admitted += mine;
        });
        EXPECT_EQ(admitted, std::min<std::int64_t>(offered, 1000)) << to_string(algorithm) << ", " << threads;
      }
    }
  }
}

TYPED_TEST(StoreContract, AdmitsExactlyTheLimitInBatchesOfOneKey) {
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("1000/minute", algorithm);
    for (const int threads : {1, 2, 4, 8}) {
      const auto store = this->make();
      const std::vector<Charge> batch(40, Charge{.key = "k", .limit = &limit, .cost = 1});
      std::atomic<std::int64_t> admitted{0};
      on_threads(threads, [&](int) {
        std::vector<Result<Decision>> answers(batch.size());
        std::int64_t mine = 0;
        for (int i = 0; i < 40; ++i) {
          store->check_many(batch, kNow, answers);
          for (const auto& answer : answers) mine += answer->allowed;
        }
        admitted += mine;
      });
      EXPECT_EQ(admitted, 1000) << to_string(algorithm) << ", " << threads;
    }
  }
}

// Runs of one key, refunds, peeks, denials in between, keys that come and go.
TYPED_TEST(StoreContract, DecidesManyAsOneByOne) {
  auto dice = seeded();
  const std::vector<Limit> limits = {
      limit_of("7/minute", Algorithm::fixed_window), limit_of("7/minute", Algorithm::sliding_window),
      limit_of("7/minute", Algorithm::token_bucket), limit_of("7/minute", Algorithm::sliding_log),
      limit_of("9/minute", Algorithm::token_bucket)};
  const std::vector<std::string> keys = {"a", "b", ""};
  for (int round = 0; round < 300; ++round) {
    const auto many = this->make(), single = this->make();
    for (int i = 0; i < 6; ++i) {
      std::vector<Charge> charges;
      while (charges.size() < 50) {
        Charge charge{keys[dice() % keys.size()], &limits[dice() % limits.size()]};
        for (std::uint64_t run = 1 + dice() % 8; run > 0; --run) {
          charge.cost = static_cast<std::int64_t>(dice() % 7) - 2;
          charges.push_back(charge);
        }
      }
      std::vector<Result<Decision>> answers(charges.size());
      const std::int64_t now = this->clock_->now().count();
      many->check_many(charges, now, answers);
      for (std::size_t k = 0; k < charges.size(); ++k) {
        ASSERT_EQ(*answers[k], *single->check(charges[k], now)) << "round " << round << ", request " << k;
      }
      this->clock_->advance(Micros{dice() % 3 == 0 ? 61'000'000 : 5'000'000});
    }
  }
}

TYPED_TEST(StoreContract, HoldsExactlyThePermitsInFlight) {
  const Limit limit = limit_of("100 concurrent", Algorithm::concurrency);
  for (const int threads : {1, 2, 4, 8, 16}) {
    for (const int offered : {30, 50, 160}) {
      const auto store = this->make();
      std::atomic<int> admitted{0}, released{0};
      const auto id = [](int i) { return "hold" + std::to_string(i); };
      on_threads(threads, [&](int thread) {
        const Charge one{.key = "k", .limit = &limit, .cost = 2};
        for (int i = thread; i < offered; i += threads) admitted += store->acquire(one, id(i), kNow)->allowed ? 1 : 0;
      });
      EXPECT_EQ(admitted, std::min(offered, 50)) << threads;
      on_threads(threads, [&](int thread) {  // all try to release all: each hold is given back once
        for (int i = 0; i < offered; ++i) released += *store->release("k", id((i + thread) % offered), kNow) ? 1 : 0;
      });
      EXPECT_EQ(released, admitted);
      const Charge all{.key = "k", .limit = &limit, .cost = 100};
      EXPECT_TRUE(store->acquire(all, "all", kNow)->allowed) << "nothing leaked";
    }
  }
}

// Threads charge overlapping sets of keys. Each key has been charged what the allowed verdicts took, not a permit more
// and not one less.
TYPED_TEST(StoreContract, ChargesSeveralKeysAllOrNone) {
  const std::uint64_t seed = base_seed();
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("200/minute", algorithm);
    const std::vector<std::string> keys{"a", "b", "c", "d", "e", "f"};
    const auto store = this->make();
    std::vector<std::atomic<std::int64_t>> taken(keys.size());
    on_threads(4, [&](int thread) {
      std::mt19937_64 dice(seed + static_cast<std::uint64_t>(thread));
      for (int i = 0; i < 400; ++i) {
        std::vector<Charge> charges;
        for (std::size_t k = 0; k < keys.size(); ++k) {
          if (dice() % 2 == 0) continue;
          charges.push_back({.key = keys[k], .limit = &limit, .cost = static_cast<std::int64_t>(dice() % 3 + 1)});
        }
        if (charges.empty()) continue;
        std::shuffle(charges.begin(), charges.end(), dice);
        const auto verdict = store->charge(charges, kNow);
        if (!verdict->allowed) continue;
        for (const Charge& charge : charges) {
          taken[static_cast<std::size_t>(charge.key[0] - 'a')] += charge.cost;
        }
      }
    });
    for (std::size_t k = 0; k < keys.size(); ++k) {
      EXPECT_EQ(this->charge(*store, keys[k], limit, 0).remaining, 200 - taken[k]) << to_string(algorithm) << keys[k];
      EXPECT_TRUE(this->charge(*store, keys[k], limit, 200 - taken[k]).allowed) << "cost 0 if nothing is left";
      EXPECT_FALSE(this->charge(*store, keys[k], limit, 1).allowed);
    }
  }
}

// Whenever an admission happened between `begin` and `end`, it counts for every interval that holds both.
TYPED_TEST(StoreContract, KeepsTheIntervalBoundWhileTheClockMoves) {
  const Limit limit = limit_of("1000/s burst 50", Algorithm::token_bucket);
  for (const int threads : {1, 2, 4, 8, 16}) {
    const auto store = this->make();
    struct Admission {
      std::int64_t begin, end, cost;
    };
    std::vector<std::vector<Admission>> logs(static_cast<std::size_t>(threads));
    on_threads(threads, [&](int thread) {
      for (int i = 0; i < 6'000 / threads; ++i) {
        const std::int64_t cost = 1 + i % 3;
        this->clock_->advance(Micros{37});
        const std::int64_t begin = this->clock_->now().count();
        if (i % 50 == 0) std::this_thread::yield();  // others run on, and `begin` becomes old
        const bool allowed = this->charge(*store, "k", limit, cost, begin).allowed;
        if (allowed) logs[static_cast<std::size_t>(thread)].push_back({begin, this->clock_->now().count(), cost});
      }
    });
    std::vector<Admission> all;
    for (const auto& log : logs) all.insert(all.end(), log.begin(), log.end());
    std::sort(all.begin(), all.end(), [](const Admission& a, const Admission& b) { return a.begin < b.begin; });
    // sum(i..j) * weight <= capacity * weight + rate * (end_j - begin_i): the largest excess over all i, in one pass.
    std::int64_t open = INT64_MIN / 2, sum = 0, latest = 0;
    for (const Admission& one : all) {
      open = std::max(open, one.begin * limit.rate - sum);
      sum += one.cost * limit.weight;
      latest = std::max(latest, one.end);
      EXPECT_LE(sum + open, limit.capacity * limit.weight + latest * limit.rate);
    }
    EXPECT_GT(all.size(), 100u);
  }
}

// A thread reads the clock, is kept from running while others spend, and then charges: were its old time believed, time
// would run backwards for the key, and what was spent would be corrected downwards.
TYPED_TEST(StoreContract, DoesNotBelieveAnOldReadingOfItsClock) {
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("10/s", algorithm);
    const auto store = this->make();
    this->clock_->set(Micros{kNow + 10'000'000});
    EXPECT_TRUE(this->charge(*store, "k", limit, 10, kNow + 10'000'000).allowed);
    EXPECT_FALSE(this->charge(*store, "k", limit, 1, kNow).allowed) << to_string(algorithm);
    EXPECT_FALSE(this->charge(*store, "k", limit, 1, kNow + 10'000'000).allowed) << to_string(algorithm);
  }
}

// A clock that was really set back locks nobody out for longer than a limit takes to recover.
TYPED_TEST(StoreContract, GoesOnWhenItsClockIsSetBack) {
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("10/s", algorithm);
    const auto store = this->make();
    EXPECT_TRUE(this->charge(*store, "k", limit, 10).allowed);
    const std::int64_t back = kNow - 3'600'000'000;
    this->clock_->set(Micros{back});
    const Decision denied = this->charge(*store, "k", limit, 1, back);
    EXPECT_FALSE(denied.allowed) << "what was spent stays spent";
    EXPECT_LE(denied.retry_after, Micros{2'000'000}) << to_string(algorithm);
    this->clock_->advance(denied.retry_after);
    EXPECT_TRUE(this->charge(*store, "k", limit, 1, this->clock_->now().count()).allowed) << to_string(algorithm);
  }
}

TYPED_TEST(StoreContract, MergesAKeyGivenTwiceAndRefusesItWithTwoLimits) {
  const auto store = this->make();
  const Limit five = limit_of("5/minute", Algorithm::fixed_window), six = limit_of("6/minute", Algorithm::fixed_window);
  const Charge twice[] = {{"k", &five, 2}, {"other", &six, 1}, {"k", &five, 2}};
  const auto verdict = store->charge(twice, kNow);
  ASSERT_TRUE(verdict);
  ASSERT_EQ(verdict->decisions.size(), 3u);
  EXPECT_EQ(verdict->decisions[0].remaining, 1);
  EXPECT_EQ(verdict->decisions[2], verdict->decisions[0]);
  EXPECT_EQ(verdict->decisions[1].remaining, 5);
  EXPECT_FALSE(store->charge(twice, kNow)->allowed);
  const Charge clash[] = {{"n", &five, 1}, {"n", &six, 1}};
  const auto refused = store->charge(clash, kNow);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("two limits need two keys"), std::string::npos);
  EXPECT_EQ(this->charge(*store, "n", five, 0).remaining, 5) << "an error charges nothing";
}

TYPED_TEST(StoreContract, NamesTheDenialWithTheLongestWait) {
  const auto store = this->make();
  const Limit second = limit_of("1/s burst 1", Algorithm::token_bucket);
  const Limit hour = limit_of("1/hour burst 1", Algorithm::token_bucket),
              wide = limit_of("9/s", Algorithm::sliding_log);
  const Charge charges[] = {{"wide", &wide, 1}, {"second", &second, 1}, {"hour", &hour, 1}};
  EXPECT_TRUE(store->charge(charges, kNow)->allowed);
  const auto verdict = store->charge(charges, kNow);
  EXPECT_EQ(verdict->binding, 2u);
  EXPECT_EQ(verdict->binding_decision().retry_after, Micros{3'600'000'000});
  EXPECT_TRUE(verdict->decisions[0].allowed);
  EXPECT_EQ(verdict->decisions[0].remaining, 8);
}

TYPED_TEST(StoreContract, KeepsAStateForEachAlgorithmOfAKey) {
  const auto store = this->make();
  for (const Algorithm algorithm : kChecked) {
    EXPECT_EQ(this->charge(*store, "k", limit_of("5/hour", algorithm), 3).remaining, 2) << to_string(algorithm);
  }
  EXPECT_EQ(store->size(), std::size(kChecked));
  EXPECT_TRUE(*store->reset("k", kNow));
  EXPECT_EQ(store->size(), 0u);
  EXPECT_FALSE(*store->reset("k", kNow));
  this->charge(*store, "k", limit_of("5/hour", Algorithm::sliding_log), 3);
  EXPECT_FALSE(*store->reset("k", kNow + 3'600'000'000)) << "it had recovered by itself";
  EXPECT_EQ(this->charge(*store, "k", limit_of("5/hour", Algorithm::sliding_log), 0).remaining, 5);
}

// An attacker's new keys never push out a key that is spent; they push out each other, and what that forgives is
// counted.
TYPED_TEST(StoreContract, StaysBoundedAndForgivesNoSpentKeyUnderAFloodOfKeys) {
  for (const Algorithm algorithm : kChecked) {
    const auto store = this->make(100);
    const Limit limit = limit_of("5/hour", algorithm);
    EXPECT_TRUE(this->charge(*store, "victim", limit, 5).allowed);
    for (int i = 0; i < 5'000; ++i) {
      const std::string key = "flood" + std::to_string(i);
      const Charge one{.key = key, .limit = &limit, .cost = 1};
      const auto verdict = store->charge({&one, 1}, kNow + i);
      EXPECT_TRUE(verdict || verdict.error().code == ErrorCode::exhausted);
      EXPECT_FALSE(this->charge(*store, "victim", limit, 1, kNow + i).allowed);
    }
    EXPECT_LE(store->size(), store->capacity());
    EXPECT_EQ(store->counters().forgiven, store->counters().evicted) << "each had spent 1";
    // All of them recover in time, and their room is used again.
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(this->charge(*store, "later" + std::to_string(i), limit, 1, kNow + 10'800'000'000).allowed);
    }
    EXPECT_LE(store->size(), store->capacity());
  }
}

// A page remembers that it is full; whoever would be refused looks again. Buckets may share a counter, but not for
// long.
TYPED_TEST(StoreContract, FindsTheRoomThatAResetLeavesInAFullTable) {
  const auto store = this->make(1);
  const Limit day = limit_of("5/day", Algorithm::token_bucket), log = limit_of("5/day", Algorithm::sliding_log);
  for (std::size_t i = 0; i < store->capacity(); ++i) this->charge(*store, "k" + std::to_string(i), day, 5);
  const Charge none{.key = "none", .limit = &log, .cost = 1};
  EXPECT_FALSE(store->charge({&none, 1}, kNow)) << "there is no room";
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(*store->reset("k" + std::to_string(i), kNow));
    EXPECT_TRUE(this->charge(*store, "log" + std::to_string(i), log, 1).allowed) << i;
  }
  EXPECT_TRUE(*store->reset("k50", kNow));
  for (int i = 0; i < 200 && store->size() < store->capacity(); ++i) {
    this->charge(*store, "bucket" + std::to_string(i), day, 1, kNow + i);
  }
  EXPECT_EQ(store->size(), store->capacity());
}

// A key of a fast limit must not make what was spent under a slow one drain at its pace.
TYPED_TEST(StoreContract, SharesNoCounterBetweenTwoLimits) {
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::fixed_window, Algorithm::sliding_window}) {
    const auto store = this->make(1);
    const Limit day = limit_of("5/day", algorithm), hour = limit_of("10/hour", algorithm);
    const Limit minute = limit_of("100/min", algorithm);
    for (std::size_t i = 0; i < store->capacity(); ++i) this->charge(*store, "k" + std::to_string(i), day, 5);
    EXPECT_TRUE(this->charge(*store, "slow", hour, 10).allowed);
    const Decision fast = this->charge(*store, "fast", minute, 1);
    EXPECT_FALSE(fast.allowed) << to_string(algorithm);
    EXPECT_GT(fast.retry_after, Micros{0});
    const std::int64_t later = kNow + 120'000'000;
    this->clock_->set(Micros{later});
    EXPECT_FALSE(this->charge(*store, "slow", hour, 9, later).allowed) << to_string(algorithm);
    EXPECT_EQ(this->charge(*store, "fast", minute, 0, later).remaining, 0);
  }
}

// When all are spent, nobody is forgotten: new keys share a counter, and once they get a place of their own they start
// from it.
TYPED_TEST(StoreContract, ForgivesNobodyWhenAllKeysAreSpent) {
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::fixed_window, Algorithm::sliding_window}) {
    const auto store = this->make(1);
    const Limit limit = limit_of("5/hour", algorithm), minute = limit_of("5/min", algorithm);
    for (std::size_t i = 0; i < store->capacity(); ++i) {
      const bool one_in_ten = i % 10 == 0;
      EXPECT_TRUE(this->charge(*store, "k" + std::to_string(i), one_in_ten ? minute : limit, 5).allowed);
    }
    EXPECT_EQ(store->size(), store->capacity());
    std::int64_t admitted = 0;
    for (int i = 0; i < 100; ++i) admitted += this->charge(*store, "new" + std::to_string(i), limit, 1).allowed ? 1 : 0;
    EXPECT_EQ(admitted, 5) << to_string(algorithm) << ": they share one counter";
    EXPECT_EQ(store->counters().evicted, 0u);
    for (std::size_t i = 0; i < store->capacity(); ++i) {
      const bool one_in_ten = i % 10 == 0;
      EXPECT_FALSE(this->charge(*store, "k" + std::to_string(i), one_in_ten ? minute : limit, 1).allowed);
    }
    const std::int64_t later = kNow + 180'000'000;
    this->clock_->set(Micros{later});
    EXPECT_FALSE(this->charge(*store, "new1", limit, 1, later).allowed) << "it had its share of what was spent";
  }
}

TYPED_TEST(StoreContract, ChargesNothingWhenThereIsNoRoomForAllKeys) {
  const auto store = this->make(1);
  const Limit limit = limit_of("5/hour", Algorithm::sliding_log);
  for (std::size_t i = 0; i + 1 < store->capacity(); ++i) this->charge(*store, "k" + std::to_string(i), limit, 1);
  const std::size_t before = store->size();
  const Charge charges[] = {{"k0", &limit, 1}, {"b", &limit, 1}, {"c", &limit, 1}};
  const auto refused = store->charge(charges, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::exhausted);
  EXPECT_EQ(store->size(), before);
  EXPECT_EQ(this->charge(*store, "k0", limit, 0).remaining, 4);
}

// A verdict over a key that has lapsed and keys that are new: making room must not take what is being charged.
TYPED_TEST(StoreContract, KeepsALapsedKeyWhileItIsCharged) {
  const Limit limit = limit_of("5/s", Algorithm::token_bucket);
  for (const std::size_t keys_max : {std::size_t{2}, std::size_t{1'000'000}}) {
    const auto store = this->make(keys_max);
    const int filled = keys_max == 2 ? 2 : 20'000;
    for (int i = 0; i < filled; ++i) this->charge(*store, "k" + std::to_string(i), limit, 5);
    const std::int64_t later = kNow + 2'000'000;
    this->clock_->set(Micros{later});
    for (int i = 0; i < filled; ++i) {
      const std::string lapsed = "k" + std::to_string(i), fresh = "n" + std::to_string(i);
      const Charge charges[] = {{lapsed, &limit, 5}, {fresh, &limit, 5}};
      const auto verdict = store->charge(charges, later);
      if (!verdict) continue;  // no room any more
      ASSERT_TRUE(verdict->allowed);
      ASSERT_FALSE(this->charge(*store, lapsed, limit, 1, later).allowed) << lapsed << " was charged and forgotten";
    }
  }
}

// A peek under another limit is told what would become of the key, and changes nothing.
TYPED_TEST(StoreContract, PeeksWithoutConverting) {
  for (const Algorithm algorithm : kChecked) {
    const auto store = this->make();
    const Limit ten = limit_of("10/hour", algorithm), three = limit_of("3/hour", algorithm);
    const Limit none = limit_of("0/hour", algorithm);
    this->charge(*store, "k", ten, 8);
    EXPECT_EQ(this->charge(*store, "k", three, 0).remaining, 0);
    EXPECT_EQ(this->charge(*store, "k", none, 0).remaining, 0);
    EXPECT_EQ(this->charge(*store, "k", ten, 0).remaining, 2) << to_string(algorithm);
    EXPECT_FALSE(this->charge(*store, "k", three, 1).allowed);
    EXPECT_EQ(this->charge(*store, "k", ten, 0).remaining, 7) << "a request did convert";
  }
}

// In a denied verdict, who gives back is not the one who denies.
TYPED_TEST(StoreContract, MarksAGiftInADeniedVerdictAllowed) {
  const auto store = this->make();
  const std::int64_t start = kNow / 60'000'000 * 60'000'000;
  const Limit hundred = limit_of("100/min", Algorithm::sliding_window),
              fifty = limit_of("50/min", Algorithm::sliding_window);
  this->charge(*store, "k", hundred, 80, start);
  this->clock_->set(Micros{start + 60'000'000});
  this->charge(*store, "k", hundred, 20, start + 60'000'000);
  const Charge charges[] = {{"k", &fifty, -1}, {"full", &fifty, 51}};
  const auto verdict = store->charge(charges, start + 60'000'000);
  EXPECT_FALSE(verdict->allowed);
  EXPECT_TRUE(verdict->decisions[0].allowed);
  EXPECT_EQ(verdict->decisions[0].retry_after, Micros{0});
  EXPECT_EQ(verdict->binding, 1u);
}

// Stale keys leave: their room is used again, and a sweep removes the rest.
TYPED_TEST(StoreContract, SweepsKeysThatHaveRecovered) {
  for (const Algorithm algorithm : kChecked) {
    const auto store = this->make(20'000);
    const Limit limit = limit_of("5/s", algorithm);
    for (int i = 0; i < 30'000; ++i) this->charge(*store, "k" + std::to_string(i), limit, 1, kNow + i * 1'000);
    EXPECT_EQ(store->counters().evicted, 0u) << "at most 2,000 were alive at any time";
    const std::int64_t later = kNow + 30'000'000 + 2'000'000;
    this->charge(*store, "late", limit, 1, later);
    store->sweep(later);
    EXPECT_EQ(store->size(), 1u) << to_string(algorithm) << ": all others are gone after two periods";
    EXPECT_EQ(this->charge(*store, "late", limit, 0, later).remaining, 4);
  }
}

// Slices of a large table, with the rests that the store asks for: never more than two periods pass, or two seconds.
TYPED_TEST(StoreContract, SweepsALargeTableInTime) {
  for (const char* quota : {"5/s", "5/3s", "5/min"}) {
    const auto store = this->make(2'000'000);
    const Limit limit = limit_of(quota, Algorithm::token_bucket);
    for (int i = 0; i < 100; ++i) this->charge(*store, "k" + std::to_string(i), limit, 5, kNow);
    int rounds = 0;
    std::int64_t now = kNow;
    for (; now < kNow + 2 * limit.period_us; now += store->sweep_rest().count()) rounds += store->sweep(now) ? 1 : 0;
    EXPECT_EQ(store->size(), 0u) << quota;
    EXPECT_GE(rounds, 1) << quota;
    EXPECT_LE(rounds, 1 + limit.period_us * 2 / 1'000'000) << quota << ": no more work than it takes";
  }
}

// Random verdicts over many keys: every key as the oracle sees it on its own.
TYPED_TEST(StoreContract, AgreesWithAnOracleForEachKey) {
  const std::uint64_t seed = base_seed();
  for (const Algorithm algorithm : kChecked) {
    std::mt19937_64 dice(seed);
    const auto store = this->make();
    const Limit limits[] = {limit_of("5/s", algorithm), limit_of("9/s", algorithm), limit_of("7/min", algorithm)};
    std::map<std::string, std::unique_ptr<Engine>> oracles;
    std::int64_t now = kNow;
    for (int i = 0; i < 5'000; ++i) {
      now += static_cast<std::int64_t>(dice() % 200'000);
      std::vector<std::string> keys{"a", "b", "c", "d", "e"};
      std::shuffle(keys.begin(), keys.end(), dice);
      keys.resize(dice() % 3 + 1);
      std::vector<Charge> charges;
      for (const std::string& key : keys) {
        const Limit& limit = limits[dice() % 10 == 0 ? dice() % 3 : 0];
        charges.push_back({.key = key, .limit = &limit, .cost = static_cast<std::int64_t>(dice() % 5) - 1});
      }
      bool allowed = true;
      std::vector<Decision> expected;
      std::vector<std::unique_ptr<Engine>> after;
      for (const Charge& charge : charges) {
        auto& oracle = oracles[std::string(charge.key)];
        if (!oracle) oracle = oracle_engine(*charge.limit);
        oracle->change(*charge.limit);
        after.push_back(oracle->clone());
        expected.push_back(after.back()->check(now, charge.cost));
        allowed = allowed && expected.back().allowed;
      }
      for (std::size_t k = 0; k < charges.size(); ++k) {
        auto& oracle = oracles[std::string(charges[k].key)];
        if (allowed) {
          oracle = std::move(after[k]);
          continue;
        }
        // The conversion stays; a request that can never pass makes it and spends nothing.
        if (charges[k].cost != 0) oracle->check(now, INT64_MAX);
        if (!expected[k].allowed || charges[k].cost == 0) continue;
        expected[k] = oracle->check(now, 0);
        expected[k].allowed = true;
        expected[k].retry_after = Micros{0};
      }
      const auto verdict = store->charge(charges, now);
      ASSERT_TRUE(verdict);
      ASSERT_EQ(verdict->allowed, allowed);
      for (std::size_t k = 0; k < charges.size(); ++k) {
        ASSERT_EQ(verdict->decisions[k], expected[k])
            << "seed " << seed << ", " << to_string(algorithm) << ", verdict " << i
            << "\n  store:  " << to_string(verdict->decisions[k]) << "\n  oracle: " << to_string(expected[k]);
      }
    }
  }
}

}  // namespace
}  // namespace weir::test
