// What the memory store promises.
//
// With a frozen clock and any number of threads, admitted == min(offered, limit), exactly. With a moving clock, no
// interval has more than burst + rate * its length. Runs under ThreadSanitizer too.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "seed.h"
#include "store_fixture.h"
#include "waiting_store.h"

namespace weir::test {
namespace {

class StoreContract : public StoreTest {};

TEST_F(StoreContract, AdmitsExactlyTheLimitFromAnyNumberOfThreads) {
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("1000/minute", algorithm);
    for (const int threads : {1, 2, 4, 8, 16}) {
      for (const std::int64_t offered : {900, 1000, 3000}) {
        const auto store = make();
        std::atomic<std::int64_t> admitted{0};
        on_threads(threads, [&](int thread) {
          std::int64_t mine = 0;
          for (std::int64_t i = thread; i < offered; i += threads) mine += charge(*store, "k", limit, 1).allowed;
          admitted += mine;
        });
        EXPECT_EQ(admitted, std::min<std::int64_t>(offered, 1000)) << weir::to_string(algorithm) << ", " << threads;
      }
    }
  }
}

TEST_F(StoreContract, AdmitsExactlyTheLimitInBatchesOfOneKey) {
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("1000/minute", algorithm);
    for (const int threads : {1, 2, 4, 8}) {
      const auto store = make();
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
      EXPECT_EQ(admitted, 1000) << weir::to_string(algorithm) << ", " << threads;
    }
  }
}

// Runs of one key, refunds, peeks, denials in between, keys that come and go.
TEST_F(StoreContract, DecidesManyAsOneByOne) {
  auto dice = seeded();
  const std::vector<Limit> limits = {
      limit_of("7/minute", Algorithm::fixed_window), limit_of("7/minute", Algorithm::sliding_window),
      limit_of("7/minute", Algorithm::token_bucket), limit_of("7/minute", Algorithm::sliding_log),
      limit_of("9/minute", Algorithm::token_bucket)};
  const std::vector<std::string> keys = {"a", "b", ""};
  for (int round = 0; round < 300; ++round) {
    const auto many = make(), single = make();
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
      const std::int64_t now = clock_->now().count();
      many->check_many(charges, now, answers);
      for (std::size_t k = 0; k < charges.size(); ++k) {
        ASSERT_EQ(*answers[k], *single->check(charges[k], now)) << "round " << round << ", request " << k;
      }
      clock_->advance(Micros{dice() % 3 == 0 ? 61'000'000 : 5'000'000});
    }
  }
}

// A batch has one time, although the clock goes on while the store decides it: no request is denied for that.
TEST_F(StoreContract, AdmitsTheWholeBurstOfANewKeyInOneBatchWhileTheClockMoves) {
  class Creeping : public Clock {
   public:
    Micros now() const override { return Micros{kNow + ++readings_}; }

   private:
    mutable std::int64_t readings_ = 0;
  };
  for (const Algorithm algorithm : kChecked) {
    const auto clock = std::make_shared<Creeping>();
    const auto store = store::MemoryStore::open({.keys = 100}, clock).value();
    const Limit limit = limit_of("20/hour", algorithm);
    const std::vector<Charge> charges(20, Charge{"k", &limit, 1});
    std::vector<Result<Decision>> answers(charges.size());
    store->check_many(charges, clock->now().count(), answers);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      EXPECT_TRUE(answers[i]->allowed) << weir::to_string(algorithm) << ", request " << i;
      EXPECT_EQ(answers[i]->remaining, 19 - static_cast<std::int64_t>(i)) << weir::to_string(algorithm);
    }
  }
}

TEST_F(StoreContract, HoldsExactlyThePermitsInFlight) {
  const Limit limit = limit_of("100 concurrent", Algorithm::concurrency);
  for (const int threads : {1, 2, 4, 8, 16}) {
    for (const int offered : {30, 50, 160}) {
      const auto store = make();
      std::atomic<int> admitted{0}, released{0};
      const auto id = [](int i) { return "hold" + std::to_string(i); };
      on_threads(threads, [&](int thread) {
        const Charge one{.key = "k", .limit = &limit, .cost = 2};
        for (int i = thread; i < offered; i += threads) admitted += store->acquire(one, id(i), kNow)->allowed ? 1 : 0;
      });
      EXPECT_EQ(admitted, std::min(offered, 50)) << threads;
      on_threads(threads, [&](int thread) {  // all try to release all: each hold is released once
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
TEST_F(StoreContract, ChargesSeveralKeysAllOrNone) {
  const std::uint64_t seed = base_seed();
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("200/minute", algorithm);
    const std::vector<std::string> keys{"a", "b", "c", "d", "e", "f"};
    const auto store = make();
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
      EXPECT_EQ(charge(*store, keys[k], limit, 0).remaining, 200 - taken[k]) << weir::to_string(algorithm) << keys[k];
      EXPECT_TRUE(charge(*store, keys[k], limit, 200 - taken[k]).allowed) << "cost 0 if nothing is left";
      EXPECT_FALSE(charge(*store, keys[k], limit, 1).allowed);
    }
  }
}

// Whenever an admission happened between `begin` and `end`, it counts for every interval that holds both.
TEST_F(StoreContract, KeepsTheIntervalBoundWhileTheClockMoves) {
  const Limit limit = limit_of("1000/s burst 50", Algorithm::token_bucket);
  for (const int threads : {1, 2, 4, 8, 16}) {
    const auto store = make();
    struct Admission {
      std::int64_t begin, end, cost;
    };
    std::vector<std::vector<Admission>> logs(static_cast<std::size_t>(threads));
    on_threads(threads, [&](int thread) {
      for (int i = 0; i < 6'000 / threads; ++i) {
        const std::int64_t cost = 1 + i % 3;
        clock_->advance(Micros{37});
        const std::int64_t begin = clock_->now().count();
        if (i % 50 == 0) std::this_thread::yield();  // others run on, and `begin` becomes old
        const bool allowed = charge(*store, "k", limit, cost, begin).allowed;
        if (allowed) logs[static_cast<std::size_t>(thread)].push_back({begin, clock_->now().count(), cost});
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

// A thread reads the clock, is stopped while others charge, and then charges. With its old time, time would run
// backwards for the key, and the store would reduce what is used.
TEST_F(StoreContract, DoesNotBelieveAnOldReadingOfItsClock) {
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("10/s", algorithm);
    const auto store = make();
    clock_->set(Micros{kNow + 10'000'000});
    EXPECT_TRUE(charge(*store, "k", limit, 10, kNow + 10'000'000).allowed);
    EXPECT_FALSE(charge(*store, "k", limit, 1, kNow).allowed) << weir::to_string(algorithm);
    EXPECT_FALSE(charge(*store, "k", limit, 1, kNow + 10'000'000).allowed) << weir::to_string(algorithm);
  }
}

// After a clock was set back, a client is denied no longer than its limit takes to recover.
TEST_F(StoreContract, GoesOnWhenItsClockIsSetBack) {
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("10/s", algorithm);
    const auto store = make();
    EXPECT_TRUE(charge(*store, "k", limit, 10).allowed);
    const std::int64_t back = kNow - 3'600'000'000;
    clock_->set(Micros{back});
    const Decision denied = charge(*store, "k", limit, 1, back);
    EXPECT_FALSE(denied.allowed) << "what was spent stays spent";
    EXPECT_LE(denied.retry_after, Micros{2'000'000}) << weir::to_string(algorithm);
    clock_->advance(denied.retry_after);
    EXPECT_TRUE(charge(*store, "k", limit, 1, clock_->now().count()).allowed) << weir::to_string(algorithm);
  }
}

TEST_F(StoreContract, MergesAKeyGivenTwiceAndRefusesItWithTwoLimits) {
  const auto store = make();
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
  EXPECT_EQ(charge(*store, "n", five, 0).remaining, 5) << "an error charges nothing";
}

TEST_F(StoreContract, NamesTheDenialWithTheLongestWait) {
  const auto store = make();
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

TEST_F(StoreContract, KeepsAStateForEachAlgorithmOfAKey) {
  const auto store = make();
  for (const Algorithm algorithm : kChecked) {
    EXPECT_EQ(charge(*store, "k", limit_of("5/hour", algorithm), 3).remaining, 2) << weir::to_string(algorithm);
  }
  EXPECT_EQ(store->size(), std::size(kChecked));
  EXPECT_TRUE(*store->reset("k", kNow));
  EXPECT_EQ(store->size(), 0u);
  EXPECT_FALSE(*store->reset("k", kNow));
  charge(*store, "k", limit_of("5/hour", Algorithm::sliding_log), 3);
  EXPECT_FALSE(*store->reset("k", kNow + 3'600'000'000)) << "it had recovered by itself";
  EXPECT_EQ(charge(*store, "k", limit_of("5/hour", Algorithm::sliding_log), 0).remaining, 5);
}

// A peek under another limit returns what that limit would leave, and changes nothing.
TEST_F(StoreContract, NeitherAPeekNorADenialUnderAnotherVersionChangesAnything) {
  for (const Algorithm algorithm : kChecked) {
    const auto store = make();
    const Limit ten = limit_of("10/hour", algorithm), three = limit_of("3/hour", algorithm);
    const Limit none = limit_of("0/hour", algorithm);
    charge(*store, "k", ten, 8);
    EXPECT_EQ(charge(*store, "k", three, 0).remaining, 0);
    EXPECT_EQ(charge(*store, "k", none, 0).remaining, 0);
    EXPECT_EQ(charge(*store, "k", ten, 0).remaining, 2) << weir::to_string(algorithm);
    EXPECT_FALSE(charge(*store, "k", three, 1).allowed);
    EXPECT_EQ(charge(*store, "k", ten, 0).remaining, 2) << weir::to_string(algorithm);
  }
}

// In a denied request, a refund is not the charge that denies.
TEST_F(StoreContract, MarksAGiftInADeniedVerdictAllowed) {
  const auto store = make();
  const std::int64_t start = kNow / 60'000'000 * 60'000'000;
  const Limit hundred = limit_of("100/min", Algorithm::sliding_window),
              fifty = limit_of("50/min", Algorithm::sliding_window);
  charge(*store, "k", hundred, 80, start);
  clock_->set(Micros{start + 60'000'000});
  charge(*store, "k", hundred, 20, start + 60'000'000);
  const Charge charges[] = {{"k", &fifty, -1}, {"full", &fifty, 51}};
  const auto verdict = store->charge(charges, start + 60'000'000);
  EXPECT_FALSE(verdict->allowed);
  EXPECT_TRUE(verdict->decisions[0].allowed);
  EXPECT_EQ(verdict->decisions[0].retry_after, Micros{0});
  EXPECT_EQ(verdict->binding, 1u);
}

// Random verdicts over many keys: every key as the oracle sees it on its own.
TEST_F(StoreContract, AgreesWithAnOracleForEachKey) {
  const std::uint64_t seed = base_seed();
  for (const Algorithm algorithm : kChecked) {
    std::mt19937_64 dice(seed);
    const auto store = make();
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
      std::vector<std::unique_ptr<Engine>*> asked;
      std::vector<std::int64_t> costs;
      for (const Charge& charge : charges) {
        auto& oracle = oracles[std::string(charge.key)];
        if (!oracle) oracle = oracle_engine(*charge.limit);
        oracle->change(*charge.limit);
        asked.push_back(&oracle);
        costs.push_back(charge.cost);
      }
      std::vector<Decision> expected;
      const bool allowed = charge_all(asked, costs, now, expected);
      const auto verdict = store->charge(charges, now);
      ASSERT_TRUE(verdict);
      ASSERT_EQ(verdict->allowed, allowed);
      for (std::size_t k = 0; k < charges.size(); ++k) {
        ASSERT_EQ(verdict->decisions[k], expected[k])
            << "seed " << seed << ", " << weir::to_string(algorithm) << ", verdict " << i
            << "\n  store:  " << to_string(verdict->decisions[k]) << "\n  oracle: " << to_string(expected[k]);
      }
    }
  }
}

// Denies every request, as a table does that has no slot left.
class FullStore final : public WaitingStore {
 public:
  FullStore() : WaitingStore([] {}) {}
  Result<table::Ruling> decide_all(const Request&, std::span<Decision>, std::span<std::int64_t>) override {
    return table::Ruling::denied;
  }
};

TEST(Store, DeniesNothingThatHasAlreadyHappened) {
  FullStore store;
  const Limit limit = limit_of("10/minute", Algorithm::token_bucket);
  const Charge charge{.key = "k", .limit = &limit};
  EXPECT_FALSE(store.charge({&charge, 1}, kNow)->allowed);
  EXPECT_FALSE(store.reserve({&charge, 1}, "id", Micros{1'000'000}, kNow)->allowed);
  EXPECT_TRUE(store.overdraw({&charge, 1}, kNow)->allowed);
  EXPECT_TRUE(store.commit({&charge, 1}, "id", kNow)->allowed);
}

}  // namespace
}  // namespace weir::test
