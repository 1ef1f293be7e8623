// Charges that are unsynced after Redis was down.

#include "fleet/unsynced_charges.h"

#include <gtest/gtest.h>

#include <thread>

namespace weir::fleet {
namespace {

// A key with its own mark; valid until the next call.
KnownKey key(const std::string& name) {
  static thread_local std::string kept;
  kept = name;
  return {kept, KeyMark{std::hash<std::string>{}(name)}};
}

class UnsyncedChargesTest : public ::testing::Test {
 protected:
  std::int64_t cost_of(const std::string& name, Micros now = Micros{0}) {
    return unsynced_.cost_of(key(name), limit_, now);
  }

  const Limit limit_ = compile("100/minute").value();
  UnsyncedCharges unsynced_{10'000};
};

TEST_F(UnsyncedChargesTest, AddsUpByKeyAndReturnsEachKeyOnce) {
  unsynced_.add(key("a"), limit_, 2, Micros{5});
  unsynced_.add(key("a"), limit_, 1, Micros{9});
  unsynced_.add(key("b"), limit_, 1, Micros{5});
  EXPECT_EQ(unsynced_.size(), 2u);
  EXPECT_EQ(cost_of("a", Micros{8}), 3);
  EXPECT_EQ(cost_of("a", Micros{9}), 0);
  EXPECT_EQ(cost_of("c", Micros{8}), 0);
  std::int64_t sum = 0;
  for (const UnsyncedCharge& charge : unsynced_.take(10)) {
    sum += charge.cost;
    if (charge.name != "a") continue;
    EXPECT_EQ(charge.cost, 3);
    EXPECT_EQ(charge.until, Micros{9});
  }
  EXPECT_EQ(sum, 4);
  EXPECT_EQ(unsynced_.size(), 0u);
}

// Two limits with one name: each has its own state, in Redis too. Versions of one limit share a state.
TEST_F(UnsyncedChargesTest, KeepsPeriodsApart) {
  const Limit hour = compile("5/hour", Algorithm::fixed_window).value();
  const Limit day = compile("50/day", Algorithm::fixed_window).value();
  const Limit more = compile("9/hour", Algorithm::fixed_window).value();
  unsynced_.add(key("fa"), hour, 2, Micros{5});
  unsynced_.add(key("fa"), day, 7, Micros{5});
  unsynced_.add(key("fa"), more, 1, Micros{5});
  EXPECT_EQ(unsynced_.cost_of(key("fa"), hour, Micros{0}), 3);
  EXPECT_EQ(unsynced_.cost_of(key("fa"), day, Micros{0}), 7);
  bool is_elsewhere = false;
  const auto of_day = unsynced_.take_one(key("fa"), day, is_elsewhere);
  ASSERT_TRUE(of_day && !is_elsewhere);
  EXPECT_TRUE(of_day->limit == day);
  const auto of_hour = unsynced_.take_one(key("fa"), hour, is_elsewhere);
  ASSERT_TRUE(of_hour && !is_elsewhere) << "the charge in flight is of the other limit";
  EXPECT_EQ(of_hour->cost, 3);
  unsynced_.settle(*of_day, true);
  EXPECT_EQ(unsynced_.cost_of(key("fa"), day, Micros{0}), 0);
  EXPECT_EQ(unsynced_.cost_of(key("fa"), hour, Micros{0}), 3);
  unsynced_.forget(key("fa").mark);
  EXPECT_TRUE(unsynced_.is_synced());
}

TEST_F(UnsyncedChargesTest, IsNoMoreThanIsStillUsed) {
  for (int i = 0; i < 9; ++i) unsynced_.add(key("a"), limit_, 1, Micros{5}, {.most = 3});
  EXPECT_EQ(cost_of("a"), 3) << "the other charges have recovered";
  unsynced_.add(key("a"), limit_, -2, Micros{5});
  EXPECT_EQ(cost_of("a"), 1);
  unsynced_.add(key("a"), limit_, -2, Micros{5});
  EXPECT_EQ(cost_of("a"), 0);
  unsynced_.add(key("b"), limit_, -2, Micros{5});
  EXPECT_EQ(cost_of("b"), 0) << "nothing is unsynced";
  EXPECT_EQ(unsynced_.dropped_permits(), 0u);
  unsynced_.add(key("a"), limit_, 4, Micros{5});
  unsynced_.forget(key("a").mark);
  unsynced_.forget(key("a").mark);
  EXPECT_EQ(cost_of("a"), 0);
}

// Two threads report how much is used, and the earlier report is entered last. The first thread reads the clock,
// another overtakes it, and the first one's charge arrives last. It must not be lost.
TEST_F(UnsyncedChargesTest, LosesNoChargeOfThreadsThatOvertakeEachOther) {
  unsynced_.add(key("a"), limit_, 1, Micros{50}, {.most = 1, .at = Micros{7}});
  unsynced_.add(key("a"), limit_, 1, Micros{50}, {.most = 2, .at = Micros{5}});
  EXPECT_EQ(cost_of("a", Micros{8}), 2);
  std::thread([&] { unsynced_.add(key("a"), limit_, 1, Micros{50}, {.most = 3, .at = Micros{3}}); }).join();
  EXPECT_EQ(cost_of("a", Micros{8}), 3);
}

TEST_F(UnsyncedChargesTest, UsesTheLatestCount) {
  std::thread([&] {
    for (int i = 1; i < 10; i += 2) unsynced_.add(key("a"), limit_, 1, Micros{50}, {.most = i, .at = Micros{i}});
  }).join();
  for (int i = 2; i <= 10; i += 2) unsynced_.add(key("a"), limit_, 1, Micros{50}, {.most = i, .at = Micros{i}});
  EXPECT_EQ(cost_of("a", Micros{11}), 10);
  unsynced_.add(key("a"), limit_, 1, Micros{50}, {.most = 2, .at = Micros{1'000'000}});
  EXPECT_EQ(cost_of("a", Micros{11}), 2);
  unsynced_.add(key("a"), limit_, 3, Micros{50});
  EXPECT_EQ(cost_of("a", Micros{11}), 5) << "charges that the share does not count are added";
}

// A refund counts, in whatever order the lines are entered, also if the list was full in between.
TEST_F(UnsyncedChargesTest, CountsRefundsInAnyOrder) {
  const auto on_a_thread = [&](std::int64_t cost, LocalUsage local_usage) {
    std::thread([&] { unsynced_.add(key("a"), limit_, cost, Micros{50}, local_usage); }).join();
  };
  for (int i = 0; i < 8; ++i) {
    unsynced_.forget(key("a").mark);
    on_a_thread(10, {.most = 10, .at = Micros{1}});
    unsynced_.add(key("a"), limit_, -8, Micros{50}, {.most = 2, .at = Micros{2}});
    EXPECT_EQ(cost_of("a", Micros{11}), 2);
  }
  unsynced_.add(key("b"), limit_, 10, Micros{50}, {.most = 10, .at = Micros{1}});
  for (int i = 0; i < 1'500; ++i) unsynced_.add(key("x" + std::to_string(i)), limit_, 1, Micros{50});
  unsynced_.add(key("b"), limit_, -8, Micros{50}, {.most = 2, .at = Micros{2}});
  EXPECT_EQ(cost_of("b", Micros{11}), 2);
  for (const std::int64_t cost : {5, -10, 5}) unsynced_.add(key("c"), limit_, cost, Micros{50});
  EXPECT_EQ(cost_of("c", Micros{11}), 5) << "no refund exceeds what was unsynced";
}

TEST_F(UnsyncedChargesTest, LosesNoChargeOfManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 20'000; ++k) unsynced_.add(key("k" + std::to_string(k % (100 + i))), limit_, 1, Micros{50});
    });
  }
  std::int64_t sum = 0;
  const auto take = [&] {
    for (const UnsyncedCharge& charge : unsynced_.take(40)) sum += charge.cost;
  };
  for (int i = 0; i < 100; ++i) take();
  for (std::thread& thread : threads) thread.join();
  while (!unsynced_.is_empty()) take();
  EXPECT_EQ(sum, 80'000);
  EXPECT_EQ(unsynced_.dropped_permits(), 0u);
}

// Charges that the share did not count, before charges that it did count. What the share has used says nothing about
// the former.
TEST_F(UnsyncedChargesTest, AddsChargesThatTheShareDidNotCount) {
  unsynced_.add(key("a"), limit_, 12, Micros{5});
  bool is_elsewhere = false;
  auto sent = unsynced_.take_one(key("a"), limit_, is_elsewhere);
  ASSERT_TRUE(sent);
  unsynced_.add(key("a"), limit_, 3, Micros{5}, {3, Micros{1}});
  EXPECT_EQ(cost_of("a", Micros{2}), 15);
  unsynced_.settle(*sent, false);
  unsynced_.add(key("a"), limit_, 5, Micros{5}, {8, Micros{2}});
  EXPECT_EQ(cost_of("a", Micros{3}), 20);
  unsynced_.add(key("a"), limit_, -4, Micros{5});
  EXPECT_EQ(cost_of("a", Micros{3}), 16);
}

// A refund lowers what was charged at its time: what waits, or what is in flight and comes back. It never lowers a
// later charge.
TEST_F(UnsyncedChargesTest, ARefundLowersNoLaterCharge) {
  const auto unsynced_cost = [&](UnsyncedCharges& unsynced) { return unsynced.cost_of(key("a"), limit_, Micros{0}); };
  const auto add = [&](UnsyncedCharges& unsynced, std::int64_t cost, std::int64_t charged_us) {
    unsynced.add(key("a"), limit_, cost, Micros{5}, {}, charged_us);
  };
  for (const bool is_written : {true, false}) {
    UnsyncedCharges unsynced(10);
    bool is_elsewhere = false;
    add(unsynced, 5, 10);
    const auto sent = unsynced.take_one(key("a"), limit_, is_elsewhere);
    ASSERT_TRUE(sent);
    add(unsynced, 3, 20);
    add(unsynced, -4, 10);
    EXPECT_EQ(unsynced_cost(unsynced), 8) << "Redis may have what is in flight";
    unsynced.settle(*sent, is_written);
    EXPECT_EQ(unsynced_cost(unsynced), is_written ? 3 : 4);
    add(unsynced, -1, 10);
    EXPECT_EQ(unsynced_cost(unsynced), 3) << "Redis has it, or it waits again";
    add(unsynced, -2, 20);
    EXPECT_EQ(unsynced_cost(unsynced), 1);
  }
}

TEST_F(UnsyncedChargesTest, CountsPermitsBeyondItsBound) {
  UnsyncedCharges unsynced(1);
  unsynced.add(key("a"), limit_, 1, Micros{5});
  unsynced.add(key("b"), limit_, 4, Micros{5});
  unsynced.add(key("a"), limit_, 1, Micros{5});
  EXPECT_EQ(unsynced.dropped_permits(), 4u);
}

TEST_F(UnsyncedChargesTest, IsWrittenUnderTheHighestVersionOfALimit) {
  const Limit low = compile("5/minute").value(), high = compile("9/minute").value();
  for (const Limit* const limit : {&low, &high, &low}) unsynced_.add(key("a"), *limit, 1, Micros{5});
  const std::vector<UnsyncedCharge> all = unsynced_.take(10);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].cost, 3);
  EXPECT_EQ(all[0].limit, high);
}

}  // namespace
}  // namespace weir::fleet
