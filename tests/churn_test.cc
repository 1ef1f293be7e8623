// A table much smaller than its keys: they come, lapse, push each other out, change their limits. Each decision is the
// oracle's, but for what was forgotten, and that is counted to the permit.
//
// The test knows which keys stand in the table by looking at all its slots. When a live one is gone its oracle forgets
// as well, and the counters must say so. Where keys have to share a counter, the table may only be stricter. And the
// flood: ten times as many new keys as there is room for, while the keys that were spent before admit nothing.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "algorithm/limit.h"
#include "processes.h"
#include "sanitized.h"
#include "store_fixture.h"
#include "trace.h"

namespace weir::test {
namespace {

// A store and the oracles of its keys, asked the same.
class Twins {
 public:
  explicit Twins(std::size_t keys) {
    clock_->set(Micros{kNow});
    store_ = MemoryStore::open({.keys = keys, .log_bytes = 1 << 20}, clock_).value();
  }

  struct Key {
    std::string name;
    Algorithm algorithm;
    std::unique_ptr<Engine> oracle;
    Limit limit;  // the last one it was asked under
    Limit widest;
    std::int64_t full_us = 0;  // when it has recovered, if it was charged
  };
  struct Pair {
    Decision store, oracle;
    bool has_room = true;
  };

  // `widest` is the version of the limit with the most permits: under it no key has used more than there is.
  std::size_t add(const std::string& name, const Limit& limit, const Limit& widest) {
    const table::Name hashed = store_->table().key_name(limit, name);
    places_[{store_->table().region().page_of(hashed.place, hashed.name), hashed.name}] = keys_.size();
    keys_.push_back({name, limit.algorithm, oracle_engine(limit), limit, widest, 0});
    return keys_.size() - 1;
  }
  std::size_t size() const { return keys_.size(); }
  Key& key(std::size_t i) { return keys_[i]; }
  MemoryStore& store() { return *store_; }
  std::int64_t now() const { return clock_->now().count(); }
  void advance(std::int64_t us) { clock_->advance(Micros{us}); }

  Pair check(std::size_t i, const Limit& limit, std::int64_t cost) {
    Key& key = keys_[i];
    const auto decision = store_->check({key.name, &limit, cost}, now());
    if (!decision) {
      EXPECT_EQ(decision.error().code, ErrorCode::exhausted) << decision.error().message;
      return {.has_room = false};
    }
    key.oracle->change(limit);
    const Decision expected = key.oracle->check(now(), cost);
    if (cost != 0) {
      key.limit = limit;
      key.full_us = expected.reset_after.count() > 0 ? now() + expected.reset_after.count() : 0;
    }
    return {*decision, expected};
  }

  // The keys that stand in the table.
  std::set<std::size_t> present() {
    std::set<std::size_t> found;
    const table::Region& region = store_->table().region();
    for (std::uint64_t page = 0; page < region.pages(); ++page) {
      for (const auto& line : region.page(page).slots) {
        for (const table::Unit& unit : line) {
          const auto place = places_.find({page, table::name_of(unit.tag)});
          if (unit.tag != 0 && place != places_.end()) found.insert(place->second);
        }
      }
    }
    return found;
  }

  // Live keys that are not there have been forgotten: their oracles forget as well. A key is live until whoever read
  // the clock a little before would find it full, too.
  struct Gone {
    std::uint64_t keys = 0, permits = 0;
  };
  Gone forget_those_gone() {
    const std::set<std::size_t> there = present();
    Gone gone;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      Key& key = keys_[i];
      if (there.count(i) > 0) continue;
      key.oracle->change(key.widest);
      const Decision peek = key.oracle->check(now(), 0);
      const bool is_live = peek.reset_after.count() > 0 || key.full_us > now() - table::kRecent_us;
      if (!is_live) continue;  // it was never charged, or has recovered
      key.oracle = oracle_engine(key.limit);
      key.full_us = 0;
      ++gone.keys;
      gone.permits += static_cast<std::uint64_t>(peek.limit - peek.remaining);
    }
    return gone;
  }

 private:
  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::unique_ptr<MemoryStore> store_;
  std::vector<Key> keys_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> places_;
};

void churn(std::uint64_t seed, std::size_t pages, int steps) {
  std::mt19937_64 dice(seed);
  Twins twins(pages * table::kKeysInPage);
  std::map<Algorithm, std::vector<Limit>> limits;
  for (const Algorithm algorithm : kChecked) {
    for (const char* quota : {"40/5min", "90/5min", "200/5min", "1000000000/5min"}) {
      limits[algorithm].push_back(compile(quota, algorithm).value());
    }
    // Logs stay until they lapse: not so many that they fill the pages.
    const std::size_t count = (algorithm == Algorithm::sliding_log ? 15 : 120) * pages;
    for (std::size_t i = 0; i < count; ++i)
      twins.add("key" + std::to_string(i), limits[algorithm][0], limits[algorithm][3]);
  }
  std::uint64_t lenient = 0;
  table::Counters before = twins.store().counters();
  for (int step = 0; step < steps; ++step) {
    if (pick(dice, 0, 30) == 0) twins.advance(pick(dice, 0, 3'000'000) / static_cast<std::int64_t>(pages));
    const auto i = static_cast<std::size_t>(pick(dice, 0, static_cast<std::int64_t>(twins.size()) - 1));
    if (pick(dice, 0, 300) == 0) twins.store().sweep(twins.now());
    const auto& choice = limits[twins.key(i).algorithm];
    const Limit& limit =
        pick(dice, 0, 9) == 0 ? choice[static_cast<std::size_t>(pick(dice, 0, 3))] : twins.key(i).limit;
    // Sometimes all that is left: then the key is spent, and must not be pushed out.
    std::int64_t cost = pick(dice, -1, 4);
    if (pick(dice, 0, 60) == 0) cost = std::min<std::int64_t>(100, twins.check(i, limit, 0).store.remaining);
    const auto pair = twins.check(i, limit, cost);
    if (!pair.has_room) continue;
    ASSERT_EQ(pair.store, pair.oracle) << "seed " << seed << ", step " << step << ", " << twins.key(i).name << " "
                                       << to_string(limit.algorithm) << ", cost " << cost
                                       << "\n  store:  " << to_string(pair.store)
                                       << "\n  oracle: " << to_string(pair.oracle);
    const table::Counters after = twins.store().counters();
    if (after.evicted == before.evicted && step % 1'000 != 0) continue;
    const auto gone = twins.forget_those_gone();
    ASSERT_EQ(gone.keys, after.evicted - before.evicted) << "seed " << seed << ", step " << step;
    ASSERT_EQ(gone.permits, after.forgiven - before.forgiven) << "seed " << seed << ", step " << step;
    lenient += gone.keys;
    before = after;
  }
  EXPECT_GT(lenient, static_cast<std::uint64_t>(steps) / 500) << "keys were pushed out";
  EXPECT_EQ(faults_of(twins.store().table().region(), Rest::all_recovered), "");
}

TEST(Churn, DecidesAsTheOracleButForWhatWasForgottenAndCounted) {
  const std::uint64_t seed = base_seed();
  churn(seed, 1, kIsSanitized ? 4'000 : 12'000);
  churn(seed + 1, 2, kIsSanitized ? 2'000 : 6'000);
}

TEST(ChurnLong, DecidesAsTheOracleButForWhatWasForgottenAndCounted) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t i = 0; i < 40 && !HasFatalFailure(); ++i) churn(seed + i, 1 + i % 4, 30'000);
}

// All slots are spent and new keys share a counter. Whoever shares is never given more than its own limit allows.
TEST(Churn, IsOnlyEverStricterWhereKeysShareACounter) {
  const std::uint64_t seed = base_seed();
  std::mt19937_64 dice(seed);
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::token_bucket}) {
    Twins twins(1);
    const Limit hour = compile("10/hour", algorithm).value();
    const std::size_t slots = twins.store().capacity();
    for (std::size_t i = 0; i < slots; ++i) {
      const std::size_t key = twins.add("spent" + std::to_string(i), hour, hour);
      twins.check(key, hour, 10);
    }
    for (int i = 0; i < 30; ++i) twins.add("new" + std::to_string(i), hour, hour);
    std::uint64_t stricter = 0, admitted = 0;
    std::set<std::size_t> before = twins.present();
    for (int step = 0; step < (kIsSanitized ? 1'300 : 4'000); ++step) {
      if (pick(dice, 0, 3) == 0) twins.advance(pick(dice, 0, 60'000'000));
      const bool is_new = pick(dice, 0, 3) != 0;
      const auto i = static_cast<std::size_t>(is_new ? pick(dice, 0, 29) : pick(dice, 0, 251)) + (is_new ? slots : 0);
      const std::int64_t cost = pick(dice, 1, 3);
      const auto oracle = twins.key(i).oracle->clone();
      const auto pair = twins.check(i, hour, cost);
      ASSERT_TRUE(pair.oracle.allowed || !pair.store.allowed)
          << "seed " << seed << ", step " << step << ", " << to_string(algorithm) << " " << twins.key(i).name;
      stricter += pair.oracle.allowed && !pair.store.allowed ? 1u : 0u;
      admitted += pair.store.allowed ? 1u : 0u;
      if (!pair.store.allowed) twins.key(i).oracle = oracle->clone();
      std::set<std::size_t> after = twins.present();
      for (const std::size_t gone : before) {
        if (after.count(gone) == 0) twins.key(gone).oracle = oracle_engine(hour);
      }
      before = std::move(after);
    }
    EXPECT_GT(stricter, 0u);
    EXPECT_GT(admitted, 0u);
  }
}

// A thread reads the clock and is stopped; meanwhile its key recovers and is removed. As of then it would be charged
// for nothing: all would have come back by now.
TEST(Churn, DoesNotBelieveAnOldReadingOfAKeyThatIsGone) {
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::leaky_meter, Algorithm::sliding_log}) {
    const auto clock = std::make_shared<ManualClock>(Micros{kNow});
    const auto store = MemoryStore::open({.keys = 100}, clock).value();
    const Limit limit = compile("10/s", algorithm).value();
    EXPECT_TRUE(store->check({"k", &limit, 10}, kNow)->allowed);
    clock->set(Micros{kNow + 2'000'000});
    store->sweep(kNow + 2'000'000);
    EXPECT_EQ(store->size(), 0u);
    EXPECT_TRUE(store->check({"k", &limit, 10}, kNow)->allowed);
    EXPECT_FALSE(store->check({"k", &limit, 1}, kNow + 2'000'000)->allowed) << to_string(algorithm);
  }
}

// The same, within the millisecond for which a reading of the clock is good: the key stays until even whoever read the
// clock before would find it full.
TEST(Churn, KeepsAKeyUntilAnOldReadingMayFindItGone) {
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::concurrency) continue;
    const auto clock = std::make_shared<ManualClock>(Micros{kNow});
    const auto store = MemoryStore::open({.keys = 100}, clock).value();
    const Limit limit = compile("10/s", algorithm).value();
    const auto charged = store->check({"k", &limit, 10}, kNow);
    ASSERT_TRUE(charged && charged->allowed);
    const std::int64_t full = kNow + charged->reset_after.count();
    store->sweep(full + 999);
    EXPECT_EQ(store->size(), 1u) << to_string(algorithm);
    store->sweep(full + 1'000);
    EXPECT_EQ(store->size(), 0u) << to_string(algorithm);
  }
}

// The arithmetic of every size of limit, in slots and in blocks.
TEST(Churn, AgreesWithTheOracleOnAnyLimit) {
  const std::uint64_t seed = base_seed();
  for (int i = 0; i < 240; ++i) {
    const std::uint64_t number = seed + static_cast<std::uint64_t>(i);
    const Trace trace = i % 8 == 7 ? random_calendar_trace(number, 150, Time::both_ways)
                                   : random_trace(kAlgorithms[i % 8], number, 150, Time::both_ways);
    bool is_kept = true;
    for (const Limit& limit : trace.limits) is_kept = is_kept && table::packing_of(limit).fits_block;
    if (!is_kept) continue;
    const auto clock = std::make_shared<ManualClock>();
    const auto store = MemoryStore::open({.keys = 100}, clock).value();
    const Limit* limit = &trace.limits.front();
    for (const Op& op : trace.ops) {
      clock->set(Micros{op.now});
      if (op.kind == Op::Kind::change) limit = &trace.limits[op.limit];
      if (op.kind == Op::Kind::check) {
        ASSERT_EQ(*store->check({"k", limit, op.cost}, op.now), op.answer) << number;
      } else if (op.kind == Op::Kind::refund) {
        const Charged charged = charged_at(*limit, op.at);
        table::Debit debit{.name = store->table().key_name(*limit, "k"),
                           .limit = limit,
                           .cost = -op.cost,
                           .act = table::Act::refund,
                           .charged = &charged};
        ASSERT_TRUE(store->table().charge({&debit, 1}, {}, op.now));
        ASSERT_EQ(debit.decision, op.answer) << number;
      } else if (op.kind == Op::Kind::acquire) {
        ASSERT_EQ(*store->acquire({"k", limit, op.cost}, op.id, op.now), op.answer) << number;
      } else if (op.kind == Op::Kind::release) {
        ASSERT_EQ(*store->release("k", op.id, op.now), op.answer.allowed) << number;
      }
    }
  }
}

// The flood -----------------------------------------------------------------------------------------------------------

std::int64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long pages = 0, resident = 0;
  const int read = file == nullptr ? 0 : std::fscanf(file, "%ld %ld", &pages, &resident);
  if (file != nullptr) std::fclose(file);
  return read == 2 ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

void flood(std::size_t room, std::size_t keys) {
  const auto clock = std::make_shared<ManualClock>(Micros{kNow});
  const auto store = MemoryStore::open({.keys = room}, clock).value();
  const auto admits = [&](const std::string& key, const Limit& limit, std::int64_t cost) {
    return store->check({key, &limit, cost}, kNow)->allowed;
  };
  struct Spent {
    std::string key;
    Limit limit;
  };
  std::vector<Spent> spent;
  for (const Algorithm algorithm : kChecked) {
    for (int i = 0; i < 100; ++i) {
      spent.push_back(
          {"spent" + std::to_string(i), compile(i % 2 == 0 ? "5/hour" : "1000000000/day", algorithm).value()});
      EXPECT_TRUE(admits(spent.back().key, spent.back().limit, spent.back().limit.capacity));
    }
  }
  const Limit holds = compile("5 concurrent", Algorithm::concurrency).value();
  EXPECT_TRUE(store->acquire({"spent", &holds, 5}, "id", kNow)->allowed);
  const std::size_t at_start = store->size();
  const std::int64_t before = resident_bytes();
  std::int64_t broken = 0;
  for (std::size_t i = 0; i < keys; ++i) {
    // By turns of each algorithm that stays in its slot.
    const Limit& limit = spent[(i % 5 == 0 ? 0 : 200 + i % 4 * 100)].limit;
    EXPECT_TRUE(admits("flood" + std::to_string(i), limit, 1)) << i;
    const Spent& victim = spent[i * 7 % spent.size()];
    broken += admits(victim.key, victim.limit, 1) ? 1 : 0;
  }
  EXPECT_EQ(broken, 0) << "keys that were spent admitted during the flood";
  for (const Spent& victim : spent) EXPECT_FALSE(admits(victim.key, victim.limit, 1)) << victim.key;
  EXPECT_FALSE(store->acquire({"spent", &holds, 1}, "other", kNow)->allowed);
  EXPECT_EQ(store->counters().evicted, keys - (store->size() - at_start)) << "every live eviction is counted";
  EXPECT_EQ(store->counters().forgiven, store->counters().evicted) << "each had spent 1";
  const auto bytes = static_cast<std::int64_t>(store->table().region().bytes());
  EXPECT_LE(resident_bytes() - before, bytes + (8 << 20));
  std::cout << keys << " new keys into room for " << room << ": " << store->counters().evicted << " forgotten, "
            << ((resident_bytes() - before) >> 20) << " MiB more of " << (bytes >> 20) << "\n";
}

// Those who come take what is empty before they take from anybody, however little that one has spent.
TEST(Flood, TakesNothingFromAnybodyWhileThereIsRoom) {
  constexpr std::size_t kRoom = 50'000;
  const auto clock = std::make_shared<ManualClock>(Micros{kNow});
  const auto store = MemoryStore::open({.keys = kRoom}, clock).value();
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::fixed_window, Algorithm::sliding_window}) {
    const Limit limit = compile("1000/month", algorithm).value();
    for (std::size_t i = 0; i < kRoom / 4; ++i) {
      const std::string key = std::string(to_string(algorithm)) + std::to_string(i);
      ASSERT_TRUE(store->check({key, &limit, 1}, kNow)->allowed);
    }
  }
  EXPECT_EQ(store->counters().evicted, 0U);
  EXPECT_EQ(store->size(), kRoom / 4 * 3);
}

TEST(Flood, LeavesSpentKeysSpent) { kIsSanitized ? flood(20'000, 200'000) : flood(100'000, 1'000'000); }
TEST(FloodLong, LeavesSpentKeysSpent) { flood(1'000'000, 10'000'000); }

}  // namespace
}  // namespace weir::test
