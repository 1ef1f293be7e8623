// States that do not fit a slot: logs, large limits, limits without a number. In blocks they decide as the oracle does,
// through every change of limit, and a full arena is reported.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "algorithm/limit.h"
#include "base/folder_fixture.h"
#include "store_fixture.h"
#include "table_engine.h"

namespace weir::test {
namespace {

class Blocks : public StoreTest {};

Decision check(store::MemoryStore& store, const Limit& limit, std::int64_t cost, std::int64_t now,
               std::string_view key = "k") {
  const auto decision = store.check({key, &limit, cost}, now);
  EXPECT_TRUE(decision) << decision.error().message;
  return decision.value_or(Decision{});
}

// Small and large limits, short and long periods: slots, blocks, logs of both formats, and changes between them.
TEST_F(Blocks, DecideAsTheOracleWhateverTheLimitBecomes) {
  const std::uint64_t seed = base_seed();
  for (const Algorithm algorithm : {Algorithm::sliding_log, Algorithm::sliding_window, Algorithm::fixed_window,
                                    Algorithm::token_bucket, Algorithm::leaky_bucket}) {
    std::mt19937_64 dice(seed);
    const auto store = make(1'000, 1 << 20);
    const std::vector<std::int64_t> seconds{1, 60, 1'800, 1'801, 86'400},
        permits{3, 90, 4'000, 3'000'000, 5'000'000'000};
    std::vector<Limit> limits;
    for (const std::int64_t second : seconds) {
      for (const std::int64_t permit : permits) {
        const auto limit = algorithm::is_bucket(algorithm)
                               ? algorithm::make_bucket(algorithm, permit, second * 1'000'000, permit)
                               : algorithm::make_window(algorithm, permit, second * 1'000'000);
        if (limit) limits.push_back(*limit);
      }
    }
    std::size_t current = 0;
    auto oracle = oracle_engine(limits[0]);
    std::int64_t now = kNow;
    for (int i = 0; i < 3'000; ++i) {
      if (dice() % 40 == 0) current = dice() % limits.size();
      const Limit& limit = limits[current];
      now += static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(limit.period_us / 20 + 1));
      clock_->set(Micros{now});
      const std::int64_t most = dice() % 4 == 0 ? limit.permits : std::min<std::int64_t>(limit.permits, 5);
      const std::int64_t cost = static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(most + 2)) - 1;
      oracle->change(limit);
      const Decision expected = oracle->check(now, cost), decision = check(*store, limit, cost, now);
      ASSERT_EQ(decision, expected) << "seed " << seed << ", " << weir::to_string(algorithm) << ", step " << i
                                    << "\n  store:  " << to_string(decision) << "\n  oracle: " << to_string(expected);
    }
  }
}

// More limits than the registry has numbers for: the others are in the blocks of their keys.
TEST_F(Blocks, HoldLimitsThatHaveNoNumber) {
  const auto store = make(60'000, 8 << 20);
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::sliding_window, Algorithm::sliding_log}) {
    for (std::int64_t i = 1; i <= 6'000; ++i) {
      const Limit limit = compile(std::to_string(i) + "/hour", algorithm).value();
      const std::string key = std::to_string(i);
      EXPECT_TRUE(check(*store, limit, i, kNow, key).allowed) << i;
      EXPECT_FALSE(check(*store, limit, 1, kNow, key).allowed) << i;
      EXPECT_EQ(check(*store, limit, -1, kNow, key).remaining, 1) << i;
    }
  }
}

// Fixed windows, each limit with its own phase: a limit without a number keeps its phase, too.
TEST_F(Blocks, HoldPhasesThatHaveNoNumber) {
  const auto store = make(60'000, 8 << 20);
  const Limit hour = compile("9/hour", Algorithm::fixed_window).value();
  for (std::int64_t i = 0; i < 5'000; ++i) {
    const Limit limit = phased(hour, i * 700'000).value();
    const std::string key = std::to_string(i);
    const Decision spent = check(*store, limit, 9, kNow, key);
    EXPECT_TRUE(spent.allowed) << i;
    EXPECT_EQ((kNow + spent.reset_after.count() - limit.phase_us) % hour.period_us, 0) << i;
    EXPECT_EQ(check(*store, limit, 1, kNow, key).retry_after, spent.reset_after) << i;
  }
  EXPECT_EQ(limits_in_blocks(*store), 5'000 - table::ad_hoc_max());
}

// When the table is opened, numbers of limits that no key uses are free for new limits.
TEST_F(Blocks, AreNotNeededForeverOnceNumbersRanOut) {
  const base::TestFolder folder;
  const std::string file = folder.at("state");
  const auto hourly = [](std::int64_t i) {
    return compile(std::to_string(i) + "/hour", Algorithm::token_bucket).value();
  };
  clock_->set(Micros{kNow});
  auto store = store::MemoryStore::open({.keys = 20'000, .log_bytes = 8 << 20, .file = file}, clock_).value();
  for (std::int64_t i = 1; i <= 5'000; ++i) check(*store, hourly(i), 1, kNow, std::to_string(i));
  EXPECT_EQ(limits_in_blocks(*store), 5'000 - table::ad_hoc_max());
  const std::int64_t later = kNow + 3'000'000'000;  // all but the smallest limits have recovered
  clock_->set(Micros{later});
  for (int i = 0; i < 10; ++i) store->sweep(later);
  check(*store, hourly(4'000), 3'999, later, "spent");
  EXPECT_EQ(check(*store, hourly(1), 1, later, "1").allowed, false);
  store.reset();

  store = store::MemoryStore::open({.file = file}, clock_).value();
  EXPECT_EQ(check(*store, hourly(4'000), 0, later, "spent").remaining, 1);
  EXPECT_EQ(check(*store, hourly(1), 1, later, "1").allowed, false) << "its number was in use";
  for (std::int64_t i = 10'001; i <= 11'000; ++i) check(*store, hourly(i), 1, later, std::to_string(i));
  for (std::int64_t i = 10'001; i <= 11'000; ++i) {
    ASSERT_EQ(check(*store, hourly(i), 0, later, std::to_string(i)).remaining, i - 1);
  }
  EXPECT_EQ(limits_in_blocks(*store), 0);
}

// A log keeps 65,536 events, in blocks that grow. The next event is denied until the first one leaves.
TEST_F(Blocks, RememberAsManyEventsAsALogMayHave) {
  for (const char* quota : {"1000000/30min", "1000000/day"}) {
    const auto store = make(100, 8 << 20);
    const Limit limit = compile(quota, Algorithm::sliding_log).value();
    for (std::int64_t i = 0; i < limit.events_max; ++i) ASSERT_TRUE(check(*store, limit, 2, kNow + i).allowed) << i;
    const Decision full = check(*store, limit, 1, kNow + limit.events_max);
    EXPECT_FALSE(full.allowed);
    EXPECT_EQ(full.retry_after, Micros{limit.period_us - limit.events_max}) << "when the first event leaves";
    EXPECT_EQ(full.remaining, 0);
    EXPECT_TRUE(check(*store, limit, 1, kNow + limit.period_us).allowed);
  }
}

TEST_F(Blocks, DenyNewLogsInAFullArena) {
  const auto store = make(1'000, 64 << 10);
  const Limit limit = compile("1000000/min", Algorithm::sliding_log).value();
  std::int64_t events = 0;
  while (check(*store, limit, 1, kNow + events).allowed) ++events;
  EXPECT_GT(events, 2'000) << "a good part of 64 KiB";
  const Decision crowded = check(*store, limit, 1, kNow + events);
  EXPECT_EQ(crowded.retry_after, Micros{60'000'000 - events}) << "when its oldest event leaves";
  // Small logs use the rest of the arena. Then they evict each other, or are denied where they cannot.
  for (int others = 0; others < 2'000; ++others) {
    const auto one = store->check({"o" + std::to_string(others), &limit, 1}, kNow + events);
    ASSERT_TRUE(one) << one.error().message;
    if (one->allowed) continue;
    EXPECT_EQ(one->decided_by, DecidedBy::no_room);
    EXPECT_GT(one->retry_after, Micros{0});
  }
  EXPECT_GT(store->counters().evicted, 0u);
  EXPECT_EQ(check(*store, limit, 1, kNow + events).retry_after, Micros{60'000'000 - events}) << "it is still there";
  // A minute later all logs have expired, and their blocks are used again without any sweep.
  const std::int64_t later = kNow + 61'000'000;
  clock_->set(Micros{later});
  EXPECT_TRUE(check(*store, limit, 1, later).allowed);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(check(*store, limit, 1, later, "new" + std::to_string(i)).allowed);
}

// After a flood of keys with small blocks, a key can have a large block again.
TEST_F(Blocks, AreNotInCrumbsAfterAFlood) {
  const auto store = make(20'000, 1 << 20);
  const Limit small = compile("5/minute", Algorithm::sliding_log).value();
  const Limit large = compile("5000/hour", Algorithm::sliding_log).value();
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(store->check({"small" + std::to_string(i), &small, 1}, kNow));
  EXPECT_GT(table::free_lines(store->table().region()), 0u);
  EXPECT_EQ(store->counters().evicted, 0u) << "the arena is full, and logs stay as counts";
  const std::int64_t later = kNow + 120'000'000;
  clock_->set(Micros{later});
  store->sweep(later);
  for (std::int64_t i = 0; i < 5'000; ++i) {
    ASSERT_TRUE(check(*store, large, 1, later + i, "large").allowed) << i;
  }
  EXPECT_FALSE(check(*store, large, 1, later + 5'000, "large").allowed);
}

// A key that is refunded, reset or expired leaves no block behind.
TEST_F(Blocks, GoBackToTheArena) {
  const auto store = make(1'000, 256 << 10);
  const std::uint64_t free = table::free_lines(store->table().region());
  const Limit log = compile("5000/min", Algorithm::sliding_log).value();
  const Limit held = compile("50 concurrent").value();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 300; ++i) check(*store, log, 1, kNow + i);
    for (int i = 0; i < 50; ++i) EXPECT_TRUE(store->acquire({"k", &held, 1}, "id" + std::to_string(i), kNow)->allowed);
    EXPECT_LT(table::free_lines(store->table().region()), free);
    if (round == 0) {
      check(*store, log, -5'000, kNow + 300);
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(*store->release("k", "id" + std::to_string(i), kNow));
    } else if (round == 1) {
      EXPECT_TRUE(*store->reset("k", kNow + 300));
    } else {
      store->sweep(kNow + 120'000'000);
    }
    EXPECT_EQ(table::free_lines(store->table().region()), free) << round;
    EXPECT_EQ(store->size(), 0u);
  }
}

}  // namespace
}  // namespace weir::test
