// The arena is full while the table has slots: every client of a sliding_log rule has its own state. It is never
// admitted more than its limit in any period, and never denied while it uses at most half of it.
//
// The reference is a list of all that each client was admitted. algorithm/compact_log_test.cc tests the arithmetic
// alone.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/folder_fixture.h"
#include "sanitized.h"
#include "seed.h"
#include "store_fixture.h"
#include "table/resize.h"

namespace weir::test {
namespace {

constexpr std::int64_t kSecond = 1'000'000, kMinute = 60 * kSecond;
constexpr std::size_t kLittle = 64 << 10;  // bytes of blocks: 1,024 logs

class FullArena : public ::testing::Test {
 protected:
  void open(store::StoreOptions options) { store_ = store::MemoryStore::open(std::move(options), clock_).value(); }
  void open(std::size_t keys) { open({.keys = keys, .log_bytes = kLittle}); }

  std::int64_t now() const { return clock_->now().count(); }
  void advance(std::int64_t us) { clock_->advance(Micros{us}); }

  Decision check(const std::string& key, const Limit& limit, std::int64_t cost = 1) {
    const auto decision = store_->check({.key = key, .limit = &limit, .cost = cost, .family = 7}, now());
    EXPECT_TRUE(decision) << decision.error().message;
    return decision.value_or(Decision{});
  }
  // Distinct clients; how many of them are denied.
  int flood(const Limit& limit, int clients) {
    int denied = 0;
    for (int i = 0; i < clients; ++i) denied += check("flood" + std::to_string(++flooded_), limit).allowed ? 0 : 1;
    return denied;
  }

  // Whether a client is kept as two counts.
  bool is_compact(const std::string& key, const Limit& limit) {
    const table::Region& region = store_->table().region();
    const std::uint64_t name = store_->table().key_name(limit, key).name;
    for (std::uint64_t i = 0; i < region.pages(); ++i) {
      for (const auto& line : region.page(i).slots) {
        for (const table::Unit& unit : line) {
          if (unit.tag == 0 || table::name_of(unit.tag) != name || table::limit_of(unit.tag) > table::kLimitsMax)
            continue;
          return region.limit(table::limit_of(unit.tag)).windows == table::kCompact;
        }
      }
    }
    return false;
  }
  // Takes all free blocks of the arena, as other requests would; give_arena() returns them.
  static constexpr std::uint32_t kOthers = 64;
  void take_arena() {
    take_what_is_free();
    ASSERT_EQ(table::free_lines(store_->table().region()), 0u);
  }
  void take_what_is_free() {
    const table::Region& region = store_->table().region();
    unsigned block_class = table::kClasses - 1;
    for (std::uint32_t i = 0; i < kOthers * table::kPendings;) {
      table::Actor other(region, table::kParticipants - 1 - i / table::kPendings);
      if (table::take_block(other, i % table::kPendings, block_class)) {
        ++i;
      } else if (block_class-- == 0) {
        return;
      }
    }
  }
  void give_arena() {
    for (std::uint32_t i = 0; i < kOthers; ++i) {
      table::Actor other(store_->table().region(), table::kParticipants - 1 - i);
      table::give_all_blocks(other);
    }
  }

  const Limit limit_ = limit_of("10/min", Algorithm::sliding_log);
  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{kNow});
  std::unique_ptr<store::MemoryStore> store_;
  int flooded_ = 0;
};

TEST_F(FullArena, AdmitsEveryNewClientWhileThereAreSlots) {
  open(20'000);
  EXPECT_EQ(flood(limit_, 10'000), 0);
  EXPECT_GT(store_->counters().compacted, 0u);
  EXPECT_EQ(store_->counters().no_room, 0u);
  EXPECT_EQ(store_->counters().evicted, 0u) << "nobody shares while there are slots";
  EXPECT_EQ(store_->size(), 10'000u);
  // A new client has its whole limit, and then waits for a time that is exact.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(check("new", limit_).remaining, 9 - i);
  const Decision denied = check("new", limit_);
  ASSERT_FALSE(denied.allowed);
  EXPECT_EQ(denied.decided_by, Decision{}.decided_by) << "its limit denies it, not the table";
  advance(denied.retry_after.count() - 1);
  EXPECT_FALSE(check("new", limit_).allowed);
  advance(1);
  EXPECT_TRUE(check("new", limit_).allowed);
}

TEST_F(FullArena, NeverDeniesHalfOfTheLimit) {
  open(20'000);
  constexpr int kClients = 5'000;
  int denied = 0;
  for (int minute = 0; minute < 4; ++minute) {
    for (int request = 0; request < 5; ++request) {
      clock_->set(Micros{(kNow / kMinute + minute + 1) * kMinute + request * 11 * kSecond});
      for (int i = 0; i < kClients; ++i) denied += check("c" + std::to_string(i), limit_).allowed ? 0 : 1;
      store_->sweep(now());
    }
  }
  EXPECT_EQ(denied, 0);
  EXPECT_EQ(store_->counters().evicted, 0u);
  EXPECT_GT(store_->counters().compacted, static_cast<std::uint64_t>(kClients / 2)) << "most of them have no log";
}

// A few clients among a flood that fills and frees the arena again and again: versions of the limit by turns,
// reservations that are settled later, all costs. Some requests have read the clock up to `late_us` ago, as if their
// thread had been stopped. Such a charge was made at some moment between its time and now.
class FullArenaAtRandom : public FullArena {
 protected:
  struct Admitted {
    std::int64_t begin, end, cost;
  };
  struct Client {
    std::vector<Admitted> admitted{};
    std::size_t open = SIZE_MAX;  // the charge of its reservation
    int id = 0;
  };

  std::int64_t pick(std::int64_t most) {
    return static_cast<std::int64_t>(dice_() % static_cast<std::uint64_t>(most + 1));
  }
  // What was certainly admitted in the period that ends now.
  std::int64_t used(const Client& client) const {
    std::int64_t sum = 0;
    for (const Admitted& one : client.admitted) sum += one.begin > now() - kMinute ? one.cost : 0;
    return sum;
  }

  void commit(Client& client, const std::string& key, const std::string& id, const Limit& limit, std::int64_t at) {
    Admitted& open = client.admitted[client.open];
    const Charge actual{.key = key, .limit = &limit, .cost = pick(open.cost), .family = 7};
    store::MemoryStore::Returned returned[1];
    const auto verdict = store_->commit({&actual, 1}, id, at, returned);
    ASSERT_TRUE(verdict) << verdict.error().message;
    ASSERT_LE(returned[0].permits, open.cost - actual.cost);
    open.cost -= returned[0].permits;
    returned_ += returned[0].permits;
    client.open = SIZE_MAX;
    ++client.id;
  }

  void act(std::size_t which, std::int64_t late_us) {
    Client& client = clients_[which];
    const std::string key = "client" + std::to_string(which), id = key + "/" + std::to_string(client.id);
    const Limit& limit = versions_[static_cast<std::size_t>(pick(2))];
    const Charge charge{.key = key, .limit = &limit, .cost = pick(9) == 0 ? pick(6) + 1 : 1, .family = 7};
    const std::int64_t at = now() - (late_us > 0 && pick(2) == 0 ? pick(late_us) : 0);
    if (client.open != SIZE_MAX && pick(3) == 0) return commit(client, key, id, limit, at);
    const bool reserves = client.open == SIZE_MAX && pick(5) == 0;
    Decision decision;
    if (reserves) {
      const auto verdict = store_->reserve({&charge, 1}, id, Micros{86'400 * kSecond}, at);
      ASSERT_TRUE(verdict) << verdict.error().message;
      decision.allowed = verdict->allowed;
      if (decision.allowed) client.open = client.admitted.size();
    } else {
      const auto checked = store_->check(charge, at);
      ASSERT_TRUE(checked) << checked.error().message;
      decision = *checked;
    }
    if (decision.allowed) client.admitted.push_back({at, now(), charge.cost});
    if (decision.allowed || reserves || late_us > 0 || pick(9) != 0) return;
    ASSERT_NE(decision.decided_by, DecidedBy::no_room);
    advance(decision.retry_after.count() - 1);
    ASSERT_FALSE(store_->preview(charge, now())->allowed);
    advance(1);
    ASSERT_TRUE(store_->preview(charge, now())->allowed);
  }

  void play(int rounds, std::int64_t late_us) {
    for (int round = 0; round < rounds; ++round) {
      SCOPED_TRACE("seed " + std::to_string(seed_) + ", round " + std::to_string(round));
      open(20'000);
      clients_.assign(12, {});
      bool is_taken = false;
      for (int step = 0; step < (kIsSanitized ? 3'000 : 6'000); ++step) {
        advance(pick(3) == 0 ? pick(2 * kSecond) : pick(kSecond / 20));
        if (step % 1'500 < 300) flood(versions_[0], 10);
        if (step % 100 == 0) store_->sweep(now());
        if (pick(30) == 0) {
          is_taken = !is_taken;
          is_taken ? take_arena() : give_arena();
        }
        const auto which = static_cast<std::size_t>(pick(11));
        ASSERT_NO_FATAL_FAILURE(act(which, late_us)) << "step " << step;
        ASSERT_LE(used(clients_[which]), 12) << "client" << which << " in step " << step;
      }
      EXPECT_GT(store_->counters().compacted, 0u);
    }
    EXPECT_GT(returned_, 0);
  }

  const std::vector<Limit> versions_{limit_of("12/min", Algorithm::sliding_log),
                                     limit_of("7/min", Algorithm::sliding_log),
                                     limit_of("12/min", Algorithm::sliding_log)};
  const std::uint64_t seed_ = base_seed();
  std::mt19937_64 dice_{seed_};
  std::vector<Client> clients_;
  std::int64_t returned_ = 0;
};

TEST_F(FullArenaAtRandom, AdmitsNoMoreThanTheLogInAnyPeriod) { play(kIsSanitized ? 1 : 3, 0); }
TEST_F(FullArenaAtRandom, AdmitsNoMoreToRequestsThatReadTheClockSecondsAgo) {
  play(kIsSanitized ? 2 : 6, 20 * kSecond);
}
TEST_F(FullArenaAtRandom, AdmitsNoMoreToRequestsThatReadTheClockJustBefore) { play(kIsSanitized ? 1 : 3, 2'000); }

// Threads charge the same clients, some of them several at once, while logs become counts and logs again.
TEST_F(FullArena, AdmitsEachPermitOnceToManyThreads) {
  constexpr int kThreads = 4, kClients = 60;
  open(1);
  clock_->set(Micros{(kNow / kMinute + 1) * kMinute});  // all happens in one window
  const std::uint64_t seed = base_seed();
  std::vector<std::atomic<std::int64_t>> admitted(kClients);
  take_arena();
  on_threads(kThreads, [&](int thread) {
    std::mt19937_64 dice(seed + static_cast<std::uint64_t>(thread));
    for (int i = 0; i < 3'000; ++i) {
      const auto first = static_cast<std::size_t>(dice() % kClients), second = (first + 1 + dice() % 7) % kClients;
      const std::string names[] = {"c" + std::to_string(first), "c" + std::to_string(second)};
      const Charge charges[] = {{.key = names[0], .limit = &limit_, .cost = 1, .family = 7},
                                {.key = names[1], .limit = &limit_, .cost = 1, .family = 7}};
      const std::size_t many = dice() % 2 + 1;
      const auto verdict = store_->charge({charges, many}, now());
      ASSERT_TRUE(verdict) << verdict.error().message;
      if (verdict->allowed) ++admitted[first];
      if (verdict->allowed && many > 1) ++admitted[second];
      if (thread == 0 && i % 20 == 0) i % 40 == 0 ? give_arena() : take_what_is_free();
      if (i % 50 == 0) advance(1);
    }
  });
  EXPECT_GT(store_->counters().compacted, 0u);
  EXPECT_EQ(store_->counters().evicted, 0u);
  for (std::size_t i = 0; i < kClients; ++i) {
    EXPECT_EQ(admitted[i] + check("c" + std::to_string(i), limit_, 0).remaining, 10) << "client " << i << ", " << seed;
  }
}

// A client that has a log is not worse off than a new one.
TEST_F(FullArena, KeepsALogThatCannotGrowAsCounts) {
  open(20'000);
  const Limit many = limit_of("100/min", Algorithm::sliding_log);
  clock_->set(Micros{(kNow / kMinute + 1) * kMinute});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(check("old", many).allowed);
  const Limit other = limit_of("5/hour", Algorithm::sliding_log);
  for (int i = 0; i < 3'000; ++i) {
    store_->check({.key = "o" + std::to_string(i), .limit = &other, .cost = 1, .family = 8}, now());
  }
  for (int i = 3; i < 100; ++i) {
    advance(1'000);
    EXPECT_EQ(check("old", many).remaining, 99 - i);
  }
  EXPECT_FALSE(check("old", many).allowed);
}

TEST_F(FullArena, MakesLogsOfCountsOnceThereAreBlocks) {
  open(20'000);
  flood(limit_, 10'000);
  const std::uint64_t before = table::free_lines(store_->table().region());
  advance(3 * kMinute);
  while (!store_->sweep(now())) {
  }
  EXPECT_GT(table::free_lines(store_->table().region()), before) << "the blocks of the flood are free again";
  EXPECT_EQ(store_->size(), 0u);
  // A client that stays is kept as counts until the flood is over. Then it has a log, whose first event leaves in time.
  const std::uint64_t all = table::free_lines(store_->table().region());
  flood(limit_, 10'000);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(check("stays", limit_).allowed);
  flood(limit_, 3'000);
  advance(70 * kSecond);
  EXPECT_TRUE(check("stays", limit_).allowed);
  advance(55 * kSecond);
  while (!store_->sweep(now())) {
  }
  EXPECT_EQ(store_->size(), 1u);
  const std::int64_t first = now();
  EXPECT_TRUE(check("stays", limit_).allowed);
  EXPECT_LT(table::free_lines(store_->table().region()), all) << "a log";
  while (check("stays", limit_).allowed) advance(kSecond);
  EXPECT_LE(now() + check("stays", limit_).retry_after.count(), first + kMinute);
}

// A request reads the clock, and its thread is stopped while another request charges the counts. The counts become a
// log whose events leave no sooner than if the log had recorded the charges.
TEST_F(FullArena, MakesALogThatForgivesNothingForARequestWithAnOldTime) {
  open(1);
  const std::int64_t start = (kNow / kMinute + 1) * kMinute;
  clock_->set(Micros{start + 10 * kSecond});
  take_arena();
  EXPECT_TRUE(check("k", limit_, 8).allowed);
  EXPECT_TRUE(is_compact("k", limit_));
  give_arena();
  clock_->set(Micros{start + 11 * kSecond});
  const Charge late{.key = "k", .limit = &limit_, .cost = 2, .family = 7};
  ASSERT_TRUE(store_->reserve({&late, 1}, "id", Micros{kMinute}, start + 5 * kSecond)->allowed);
  EXPECT_FALSE(is_compact("k", limit_));
  clock_->set(Micros{start + kMinute + 6 * kSecond});
  EXPECT_FALSE(check("k", limit_, 9).allowed) << "8 were charged less than a minute ago";
  // What was reserved can be found, and comes back.
  const Charge nothing{.key = "k", .limit = &limit_, .cost = 0, .family = 7};
  store::MemoryStore::Returned returned[1];
  ASSERT_TRUE(store_->commit({&nothing, 1}, "id", now(), returned));
  EXPECT_EQ(returned[0].permits, 2);
  EXPECT_EQ(check("k", limit_, 0).remaining, 2);
  clock_->set(Micros{start + kMinute + 11 * kSecond});
  EXPECT_TRUE(check("k", limit_, 10).allowed);
}

// A settlement reads the clock before its charge leaves the log, and is decided after the log became counts without
// that charge. It must not free what others have used.
TEST_F(FullArena, RefundsNothingThatWasDroppedMeanwhile) {
  open(1);
  const std::int64_t start = (kNow / kMinute + 1) * kMinute;
  const Charge first{.key = "k", .limit = &limit_, .cost = 3, .family = 7};
  const Charge nothing{.key = "k", .limit = &limit_, .cost = 0, .family = 7};
  clock_->set(Micros{start + 30 * kSecond});
  ASSERT_TRUE(store_->reserve({&first, 1}, "id", Micros{kMinute * 10}, now())->allowed);
  clock_->set(Micros{start + 40 * kSecond});
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(check("k", limit_).allowed);
    advance(1);
  }
  ASSERT_FALSE(is_compact("k", limit_));
  clock_->set(Micros{start + kMinute + 31 * kSecond});
  take_arena();
  const Limit other = limit_of("11/min", Algorithm::sliding_log);
  for (int i = 0; i < 3 && !is_compact("k", limit_); ++i) {  // one that needs a block takes that of the log
    EXPECT_TRUE(check("new" + std::to_string(i), other).allowed);
  }
  ASSERT_TRUE(is_compact("k", limit_));
  EXPECT_EQ(check("k", limit_, 0).remaining, 6);
  store::MemoryStore::Returned returned[1];
  ASSERT_TRUE(store_->commit({&nothing, 1}, "id", start + kMinute + 29 * kSecond, returned));
  EXPECT_EQ(returned[0].permits, 0);
  EXPECT_EQ(check("k", limit_, 0).remaining, 6);
}

// A log has just recovered, and its block is reused. For a request that read the clock half a millisecond earlier, the
// log has not recovered.
TEST_F(FullArena, KeepsWhatCountsForARequestThatReadTheClockJustBefore) {
  open(1);
  EXPECT_TRUE(check("k", limit_, 10).allowed);
  const std::int64_t charged = now();
  advance(kMinute);
  take_arena();
  EXPECT_TRUE(check("new", limit_).allowed);
  const auto late = store_->check({.key = "k", .limit = &limit_, .cost = 1, .family = 7}, charged + kMinute - 500);
  ASSERT_TRUE(late);
  EXPECT_FALSE(late->allowed);
}

// The period of a rule changes, and a reservation from before is settled: its log is rewritten, and becomes counts.
// When that client is evicted later, it is covered by a floor of its own rule.
TEST_F(FullArena, KeepsTheRuleOfALogThatASettlementRewrites) {
  constexpr int kClients = 150;
  open(1);
  const Limit by_hour = limit_of("10/hour", Algorithm::sliding_log);
  for (int i = 0; i < kClients; ++i) {
    const std::string key = "k" + std::to_string(i);
    const Charge first{.key = key, .limit = &limit_, .cost = 1, .family = 7};
    const Charge nothing{.key = key, .limit = &by_hour, .cost = 0, .family = 7};
    ASSERT_TRUE(store_->reserve({&first, 1}, "id", Micros{kMinute}, now())->allowed);
    advance(1'000);
    EXPECT_TRUE(check(key, limit_, 9).allowed);
    take_arena();
    ASSERT_TRUE(store_->commit({&nothing, 1}, "id", now()));
    EXPECT_TRUE(is_compact(key, limit_));
    EXPECT_EQ(check(key, limit_, 0).remaining, 1);
    give_arena();
  }
  flood(limit_, 120);
  EXPECT_GT(store_->counters().evicted, 0u);
  for (int i = 0; i < kClients; ++i) EXPECT_LE(check("k" + std::to_string(i), limit_, 0).remaining, 1) << i;
}

// Permits in flight need a block, so they are denied, with a wait.
TEST_F(FullArena, DeniesPermitsInFlight) {
  open(20'000);
  const Limit flights = compile("3 concurrent", Algorithm::concurrency).value();
  int denied = 0;
  for (int i = 0; i < 2'000; ++i) {
    const auto decision = store_->acquire({"f" + std::to_string(i), &flights, 1}, "id", now());
    ASSERT_TRUE(decision) << decision.error().message;
    if (decision->allowed) continue;
    ++denied;
    EXPECT_EQ(decision->decided_by, DecidedBy::no_room);
    EXPECT_GT(decision->retry_after, Micros{0});
  }
  EXPECT_GT(denied, 0);
  EXPECT_EQ(flood(limit_, 1'000), 0) << "a rule is not turned off by them";
}

// A release needs no block for the permits that stay in flight.
TEST_F(FullArena, ReleasesPermitsInFlight) {
  open(1);
  const Limit flights = compile("3 concurrent", Algorithm::concurrency).value();
  for (const char* id : {"a", "b"}) ASSERT_TRUE(store_->acquire({"f", &flights, 1}, id, now())->allowed);
  flood(limit_, 10);
  take_arena();
  const auto released = store_->release("f", "a", now());
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_TRUE(*released);
  EXPECT_EQ(store_->acquire({"f", &flights, 0}, "c", now())->remaining, 2);
}

// Neither counts nor its block can store this log: the request is denied, and does not fail.
TEST_F(FullArena, DeniesWhatNeitherABlockNorASlotCanKeep) {
  open(1);
  EXPECT_TRUE(check("k", limit_of("1000000/min", Algorithm::sliding_log)).allowed);
  take_arena();
  const Decision decision = check("k", limit_of("5000000000/min", Algorithm::sliding_log));
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.decided_by, DecidedBy::no_room);
}

// Clients share counts only if there are no slots. Also then, no used permit is freed.
TEST_F(FullArena, ForgivesNothingWithoutSlotsEither) {
  open({.keys = 200, .log_bytes = kLittle / 16});
  std::vector<std::int64_t> used(20, 0);
  for (int round = 0; round < 100; ++round) {
    advance(kSecond / 10);
    flood(limit_, 30);
    for (std::size_t i = 0; i < used.size(); ++i) used[i] += check("v" + std::to_string(i), limit_).allowed ? 1 : 0;
  }
  EXPECT_GT(store_->counters().evicted, 0u);
  for (const std::int64_t one : used) EXPECT_LE(one, 10) << "within ten seconds";
}

// Counts in a state file survive a restart, a resize and another size of the arena.
TEST_F(FullArena, SurvivesARestartAndAResize) {
  const Limit limit = limit_of("10/hour", Algorithm::sliding_log);
  const base::TestFolder folder;
  const std::string file = folder.at("state");
  clock_->set(Micros{read_clocks().wall_us});  // which the resize asks, too
  open({.keys = 20'000, .log_bytes = kLittle, .file = file});
  flood(limit, 5'000);
  for (int i = 0; i < 10; ++i) check("spent", limit);
  EXPECT_FALSE(check("spent", limit).allowed);
  const std::size_t size = store_->size();
  for (const bool resizes : {false, true}) {
    store_.reset();
    if (resizes) {
      const auto resized = table::resize({.path = file, .keys = 40'000});
      ASSERT_TRUE(resized) << resized.error().message;
    }
    store_ = store::MemoryStore::open({.file = file}, clock_).value();
    EXPECT_EQ(store_->size(), size);
    EXPECT_FALSE(check("spent", limit).allowed);
    for (int i = 1; i <= 5'000; i += 37) {
      EXPECT_EQ(check("flood" + std::to_string(i), limit, 0).remaining, 9) << i;
    }
  }
  store_.reset();
}

}  // namespace
}  // namespace weir::test
