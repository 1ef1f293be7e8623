// A table with capacity for few of its keys: keys come, expire, evict each other and change their limits. Each decision
// must equal the oracle's. For evicted keys, and for new keys in their place, the table may only be stricter.
//
// The test looks at all slots to know which keys are in the table. The flood: ten times as many new keys as fit, while
// keys that were used up before admit nothing.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "processes.h"
#include "sanitized.h"
#include "store_fixture.h"
#include "table_engine.h"

namespace weir::test {
namespace {

// A store and an oracle for each of its keys. Both get the same requests.
class Twins {
 public:
  explicit Twins(std::size_t keys) {
    clock_->set(Micros{kNow});
    store_ = store::MemoryStore::open({.keys = keys, .log_bytes = 1 << 20}, clock_).value();
  }

  struct Key {
    std::string name;
    Algorithm algorithm;
    std::unique_ptr<Engine> oracle;
    Limit limit;  // the last one it was asked under
    Limit widest;
    bool is_exact = true;  // it was never evicted, and no key was evicted before it came
  };
  struct Pair {
    Decision store, oracle;
  };

  // `widest` is the version of the limit with the most permits: no key has used more than that.
  std::size_t add(const std::string& name, const Limit& limit, const Limit& widest) {
    keys_.push_back({name, limit.algorithm, oracle_engine(limit), limit, widest});
    return keys_.size() - 1;
  }
  std::size_t size() const { return keys_.size(); }
  Key& key(std::size_t i) { return keys_[i]; }
  store::MemoryStore& store() { return *store_; }
  std::int64_t now() const { return clock_->now().count(); }
  void advance(std::int64_t us) { clock_->advance(Micros{us}); }

  Pair check(std::size_t i, const Limit& limit, std::int64_t cost) {
    Key& key = keys_[i];
    const std::uint64_t family = static_cast<std::uint64_t>(key.algorithm) + 1;
    const auto decision = store_->check({.key = key.name, .limit = &limit, .cost = cost, .family = family}, now());
    EXPECT_TRUE(decision) << decision.error().message;
    if (!decision) return {};
    key.oracle->change(limit);
    const auto before = key.oracle->clone();
    const Decision expected = key.oracle->check(now(), cost);
    if (expected.allowed && !decision->allowed) key.oracle = before->clone();
    if (cost != 0) key.limit = limit;
    return {*decision, expected};
  }

  // Whether the key stands in the table.
  bool is_present(std::size_t i) const {
    const table::Name name = store_->table().key_name(keys_[i].limit, keys_[i].name);
    const table::Region& region = store_->table().region();
    for (const auto& line : region.page(region.page_of(name.place, name.name)).slots) {
      for (const table::Unit& unit : line) {
        if (unit.tag != 0 && table::name_of(unit.tag) == name.name) return true;
      }
    }
    return false;
  }

 private:
  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::unique_ptr<store::MemoryStore> store_;
  std::vector<Key> keys_;
};

// Counts in `stricter` the requests that the table denied and the oracle of the key would have allowed.
void churn(std::uint64_t seed, std::size_t pages, int steps, std::uint64_t& stricter) {
  std::mt19937_64 dice(seed);
  Twins twins(pages * table::kKeysInPage);
  std::map<Algorithm, std::vector<Limit>> limits;
  for (const Algorithm algorithm : kChecked) {
    for (const char* quota : {"40/5min", "90/5min", "200/5min", "1000000000/5min"}) {
      limits[algorithm].push_back(compile(quota, algorithm).value());
    }
    // Logs stay until they expire, so there are too few to fill the pages.
    const std::size_t count = (algorithm == Algorithm::sliding_log ? 15 : 120) * pages;
    for (std::size_t i = 0; i < count; ++i)
      twins.add("key" + std::to_string(i), limits[algorithm][0], limits[algorithm][3]);
  }
  std::uint64_t exact = 0;
  bool is_full = false;
  for (int step = 0; step < steps; ++step) {
    if (pick(dice, 0, 30) == 0) twins.advance(pick(dice, 0, 3'000'000) / static_cast<std::int64_t>(pages));
    const auto i = below(dice, twins.size());
    if (pick(dice, 0, 300) == 0) twins.store().sweep(twins.now());
    const auto& choice = limits[twins.key(i).algorithm];
    const Limit& limit =
        pick(dice, 0, 9) == 0 ? choice[static_cast<std::size_t>(pick(dice, 0, 3))] : twins.key(i).limit;
    std::int64_t cost = pick(dice, -1, 4);
    // Once a page has been full, a key that is not there may start from what others had used.
    if (is_full && !twins.is_present(i)) twins.key(i).is_exact = false;
    if (pick(dice, 0, 60) == 0) cost = std::min<std::int64_t>(100, twins.check(i, limit, 0).store.remaining);
    const auto pair = twins.check(i, limit, cost);
    const std::string what = "seed " + std::to_string(seed) + ", step " + std::to_string(step) + ", " +
                             twins.key(i).name + " " + std::string(weir::to_string(limit.algorithm)) + ", cost " +
                             std::to_string(cost) + "\n  store:  " + to_string(pair.store) +
                             "\n  oracle: " + to_string(pair.oracle);
    if (twins.key(i).is_exact) {
      ++exact;
      ASSERT_EQ(pair.store, pair.oracle) << what;
    } else {
      stricter += pair.oracle.allowed && !pair.store.allowed ? 1u : 0u;
      ASSERT_TRUE(pair.oracle.allowed || !pair.store.allowed) << what;
      ASSERT_LE(pair.store.remaining, pair.oracle.remaining + (pair.oracle.allowed && !pair.store.allowed ? cost : 0))
          << what;
    }
    is_full = is_full || twins.store().size() > twins.store().capacity() / 2;  // one of the pages may be
  }
  EXPECT_GT(exact, static_cast<std::uint64_t>(steps) / 40);
  EXPECT_GT(twins.store().counters().evicted, static_cast<std::uint64_t>(steps) / 500) << "keys were pushed out";
  EXPECT_EQ(faults_of(twins.store().table().region(), Rest::all_recovered), "");
}

TEST(Churn, DecidesAsTheOracleOrStricterWhereKeysWerePushedOut) {
  const std::uint64_t seed = base_seed();
  std::uint64_t stricter = 0;
  churn(seed, 1, kIsSanitized ? 4'000 : 12'000, stricter);
  churn(seed + 1, 2, kIsSanitized ? 2'000 : 6'000, stricter);
  EXPECT_TRUE(stricter > 0 || kIsSanitized) << "a short run may meet no such key, a long one must";
}

TEST(ChurnLong, DecidesAsTheOracleOrStricterWhereKeysWerePushedOut) {
  const std::uint64_t seed = base_seed();
  std::uint64_t stricter = 0;
  for (std::uint64_t i = 0; i < 40 && !HasFatalFailure(); ++i) churn(seed + i, 1 + i % 4, 30'000, stricter);
  EXPECT_GT(stricter, 0u);
}

// A thread reads the clock and is stopped; meanwhile its key recovers and is removed. A charge with the old time would
// cost nothing, since by now it would have expired.
TEST(Churn, DoesNotBelieveAnOldReadingOfAKeyThatIsGone) {
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::leaky_meter, Algorithm::sliding_log}) {
    const auto clock = std::make_shared<ManualClock>(Micros{kNow});
    const auto store = store::MemoryStore::open({.keys = 100}, clock).value();
    const Limit limit = compile("10/s", algorithm).value();
    EXPECT_TRUE(store->check({"k", &limit, 10}, kNow)->allowed);
    clock->set(Micros{kNow + 2'000'000});
    store->sweep(kNow + 2'000'000);
    EXPECT_EQ(store->size(), 0u);
    EXPECT_TRUE(store->check({"k", &limit, 10}, kNow)->allowed);
    EXPECT_FALSE(store->check({"k", &limit, 1}, kNow + 2'000'000)->allowed) << weir::to_string(algorithm);
  }
}

// The same, within the millisecond for which a reading of the clock is used: the key stays until its limit is also full
// for a thread that read the clock a millisecond before.
TEST(Churn, KeepsAKeyUntilAnOldReadingMayFindItGone) {
  for (const Algorithm algorithm : kChecked) {
    const auto clock = std::make_shared<ManualClock>(Micros{kNow});
    const auto store = store::MemoryStore::open({.keys = 100}, clock).value();
    const Limit limit = compile("10/s", algorithm).value();
    const auto charged = store->check({"k", &limit, 10}, kNow);
    ASSERT_TRUE(charged && charged->allowed);
    const std::int64_t full = kNow + charged->reset_after.count();
    store->sweep(full + 999);
    EXPECT_EQ(store->size(), 1u) << weir::to_string(algorithm);
    store->sweep(full + 1'000);
    EXPECT_EQ(store->size(), 0u) << weir::to_string(algorithm);
  }
}

// The arithmetic of every size of limit, in slots and in blocks.
TEST(Churn, AgreesWithTheOracleOnAnyLimit) {
  const std::uint64_t seed = base_seed();
  for (int i = 0; i < 240; ++i) {
    const std::uint64_t number = seed + static_cast<std::uint64_t>(i);
    const Trace trace = i % 8 == 7 ? random_calendar_trace(number, 150, Time::both_ways)
                                   : random_trace(kAlgorithms[i % 8], number, 150, Time::both_ways);
    if (!fits_blocks(trace)) continue;
    TableEngine engine(trace.limits.front());
    const auto wrong = replay(trace, engine);
    ASSERT_FALSE(wrong) << *wrong;
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
  const auto store = store::MemoryStore::open({.keys = room}, clock).value();
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
  std::size_t admitted = 0;
  for (std::size_t i = 0; i < keys; ++i) {
    // The algorithms whose state stays in a slot, by turns.
    const Limit& limit = spent[(i % 5 == 0 ? 0 : 200 + i % 4 * 100)].limit;
    admitted += admits("flood" + std::to_string(i), limit, 1) ? 1u : 0u;
    const Spent& victim = spent[i * 7 % spent.size()];
    broken += admits(victim.key, victim.limit, 1) ? 1 : 0;
  }
  EXPECT_EQ(broken, 0) << "keys without permits admitted requests during the flood";
  for (const Spent& victim : spent) EXPECT_FALSE(admits(victim.key, victim.limit, 1)) << victim.key;
  EXPECT_FALSE(store->acquire({"spent", &holds, 1}, "other", kNow)->allowed);
  EXPECT_GE(store->counters().evicted, admitted - (store->size() - at_start)) << "every eviction is counted";
  EXPECT_GT(admitted, room);
  const auto bytes = static_cast<std::int64_t>(store->table().region().bytes());
  EXPECT_LE(resident_bytes() - before, bytes + (8 << 20));
  std::cout << keys << " new keys into room for " << room << ": " << store->counters().evicted << " evicted, "
            << ((resident_bytes() - before) >> 20) << " MiB more of " << (bytes >> 20) << "\n";
}

// New keys use empty slots before they evict a key, however little that key has used.
TEST(Flood, TakesNothingFromAnybodyWhileThereIsRoom) {
  constexpr std::size_t kRoom = 50'000;
  const auto clock = std::make_shared<ManualClock>(Micros{kNow});
  const auto store = store::MemoryStore::open({.keys = kRoom}, clock).value();
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::fixed_window, Algorithm::sliding_window}) {
    const Limit limit = compile("1000/month", algorithm).value();
    for (std::size_t i = 0; i < kRoom / 4; ++i) {
      const std::string key = std::string(weir::to_string(algorithm)) + std::to_string(i);
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
