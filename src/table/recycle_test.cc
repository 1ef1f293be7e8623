// Numbers of limits are reused once no thread can mistake them for the old limits.
#include "table/recycle.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/folder_fixture.h"
#include "table/table.h"

namespace weir::table::recycle_test {
namespace {

constexpr std::int64_t kStart = 1'700'000'000'000'000;

Limit window_of(std::int64_t permits) {
  return algorithm::make_window(Algorithm::fixed_window, permits, 60'000'000).value();
}

struct Fixture {
  explicit Fixture(const std::string& file = {}, std::uint64_t keys = 1'000)
      : clock(std::make_shared<ManualClock>(Micros{kStart})),
        table(Table::open({.file = file, .keys = keys, .clock = clock}).value()) {}

  std::int64_t now() const { return clock->now().count(); }

  Result<Decision> check(const std::string& key, const Limit& limit, std::int64_t cost = 1, std::uint64_t family = 0) {
    Debit debit{.name = table->key_name(limit, key), .limit = &limit, .cost = cost, .family = family};
    if (table->charge_fast(debit, now())) return debit.decision;
    if (const auto ruling = table->charge({&debit, 1}, {}, now()); !ruling) return fail(ruling.error());
    return debit.decision;
  }

  void sweep(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      while (!table->sweep(now(), 128)) {
      }
    }
  }

  std::uint32_t taken() const { return Registry(table->region(), {}).size(); }

  std::shared_ptr<ManualClock> clock;
  std::unique_ptr<Table> table;
};

constexpr int kCycle = 4;  // rounds of the sweep until unused numbers are free, if no thread is at work

// As if limits changed for years.
TEST(Recycle, ATableNeverRunsOutOfNumbers) {
  Fixture fixture;
  std::int64_t permits = 0;
  for (int era = 0; era < 20; ++era) {
    for (int i = 0; i < 1'500; ++i) {
      const Limit limit = window_of(++permits);
      const auto decision = fixture.check("key " + std::to_string(i % 10), limit, 1, 1);
      ASSERT_TRUE(decision) << decision.error().message;
      EXPECT_EQ(decision->limit, permits);
    }
    fixture.sweep(kCycle);
    EXPECT_LT(fixture.taken(), 1'600u) << era;
  }
}

// A check never fails for lack of a number: a limit without one is stored in a block, even a calendar's.
TEST(Recycle, LimitsWithoutANumberAreKeptInBlocks) {
  Fixture fixture({}, 50'000);
  const Region& region = fixture.table->region();
  for (std::uint32_t i = 1; i <= kLimitsMax; ++i)
    region.limit(i).guard = {guard_tag(kWriting, 0), 200};  // none is free
  Limit berlin{.algorithm = Algorithm::fixed_window, .permits = 50, .capacity = 50};
  berlin.calendar = std::make_shared<const algorithm::Calendar>(CalendarUnit::day, "Europe/Berlin", algorithm::Zone{});
  Limit far = berlin;
  far.calendar = std::make_shared<const algorithm::Calendar>(CalendarUnit::month, "America/Argentina/ComodRivadavia",
                                                             algorithm::Zone{});
  for (const Limit& limit : {window_of(50), berlin, far, phased(window_of(50), 7).value(),
                             algorithm::make_bucket(Algorithm::token_bucket, 50, 3'600'000'000, 50).value(),
                             algorithm::make_window(Algorithm::sliding_log, 50, 60'000'000).value()}) {
    const std::string key = std::to_string(static_cast<int>(limit.algorithm)) + std::to_string(limit.phase_us) +
                            (limit.calendar ? limit.calendar->zone_name() : "");
    for (int i = 1; i <= 20; ++i) {
      const auto decision = fixture.check(key, limit, 2, 1);
      ASSERT_TRUE(decision) << decision.error().message;
      EXPECT_EQ(decision->remaining, 50 - 2 * i) << key;
    }
    EXPECT_FALSE(fixture.check(key, limit, 11)->allowed);
  }
  fixture.sweep(2);
  EXPECT_EQ(fixture.table->size(), 6u) << "no key has expired";
  fixture.clock->advance(Micros{40LL * 86'400'000'000});
  fixture.sweep(2);
  EXPECT_EQ(fixture.table->size(), 0u);
}

// Each key keeps what it used, even if the numbers of other limits are reused.
TEST(Recycle, KeysThatAreInUseKeepTheirLimit) {
  Fixture fixture;
  const Limit day = algorithm::make_window(Algorithm::fixed_window, 1'000, 86'400'000'000).value();
  const Limit bucket = algorithm::make_bucket(Algorithm::token_bucket, 100, 3'600'000'000, 100).value();
  ASSERT_TRUE(fixture.check("tenant", day, 600));
  ASSERT_TRUE(fixture.check("user", bucket, 60));
  std::int64_t permits = 10'000;
  for (int era = 0; era < 5; ++era) {
    for (int i = 0; i < 2'000; ++i) ASSERT_TRUE(fixture.check("key " + std::to_string(i % 10), window_of(++permits)));
    fixture.sweep(kCycle);
    EXPECT_EQ(fixture.check("tenant", day, 0)->remaining, 400);
    EXPECT_EQ(fixture.check("user", bucket, 0)->remaining, 40);
  }
}

// The transaction may be about to insert a key under its number, or to act on a slot that it read.
TEST(Recycle, WaitsForATransactionInFlight) {
  Fixture fixture;
  const Region& region = fixture.table->region();
  for (std::int64_t i = 1; i <= 1'500; ++i) ASSERT_TRUE(fixture.check("key", window_of(i)));
  const std::uint32_t before = fixture.taken();
  Participant& stopped = region.participant(100);
  stopped.active = active_word(7, load(region.header().limits_epoch));
  // In a file, its lock would be held. In memory every lock succeeds, so the table's own sweep would consider this
  // participant dead. So the test drives the rounds itself.
  Registry registry(region, {});
  Recycler recycler(region, registry);
  const auto round = [&] {
    NumberSet used;
    const bool is_scanning = recycler.is_scanning();
    for (std::uint64_t i = 0; i < region.pages(); ++i) {
      for (const Unit& unit : slots_of(region.page(i))) note_numbers(load(unit), used);
    }
    if (is_scanning) recycler.note(used);
    recycler.end_round(kParticipants, -1);
  };
  for (int i = 0; i < 10; ++i) round();
  EXPECT_EQ(fixture.taken(), before);
  stopped.active = idle_word(7);
  for (int i = 0; i < kCycle; ++i) round();
  EXPECT_LT(fixture.taken(), 3u);
  ASSERT_TRUE(fixture.check("key", window_of(1'500))) << "the table continues with the new generation";
}

// Two openings of a file behave like two processes: each remembers what the numbers mean.
TEST(Recycle, AProcessDropsWhatItRemembersOfANumber) {
  const base::TestFolder folder;
  constexpr std::uint64_t kKeys = 4'000;  // no page is ever full, where a request could be denied
  Fixture one(folder.at("state"), kKeys), other(folder.at("state"), kKeys);
  std::int64_t permits = 1'000;
  for (int era = 0; era < 10; ++era) {
    // The other process meets all of them, and remembers them.
    for (int i = 0; i < 1'200; ++i) {
      const Limit limit = window_of(++permits);
      const std::string key = "key " + std::to_string(i % 7);
      ASSERT_TRUE(one.check(key, limit));
      ASSERT_EQ(other.check(key, limit, 0)->limit, permits);
    }
    one.sweep(kCycle);
    // The same numbers now mean other limits. Each key is new, so that its count shows which limit it is read by.
    for (int i = 0; i < 1'200; ++i) {
      const Limit limit = window_of(++permits);
      const std::string key = std::to_string(era) + " new " + std::to_string(i);
      ASSERT_EQ(one.check(key, limit, 3)->remaining, permits - 3);
      ASSERT_EQ(other.check(key, limit, 2)->remaining, permits - 5);
    }
    one.clock->advance(Micros{120'000'000});
    other.clock->advance(Micros{120'000'000});
  }
}

// The fast path reads a slot, is suspended while the number gets another meaning, and continues.
TEST(Recycle, ThreadsReadNoNumberAsItsOldLimit) {
  Fixture fixture;
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::int64_t used = 0, permits = 1'000'000 * (t + 1);
      const std::string key = "thread " + std::to_string(t);
      while (!is_over) {
        // One key under many limits of one period, known only to this thread: every permit is accounted for.
        const Limit limit = window_of(++permits);
        const auto decision = fixture.check(key, limit, 1);
        ASSERT_TRUE(decision);
        ASSERT_EQ(decision->remaining, permits - ++used);
        ASSERT_EQ(fixture.check(key, limit, 0)->remaining, permits - used);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    fixture.sweep(1);
    std::this_thread::yield();
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(load(fixture.table->region().header().limits_epoch), 0u);
}

}  // namespace
}  // namespace weir::table::recycle_test
