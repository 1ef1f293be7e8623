// Charges that are unsynced after Redis was down.

#include "fleet/owed.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace weir {
namespace {

// A key with its own mark; valid until the next call.
KnownKey key(const std::string& name) {
  static thread_local std::string kept;
  kept = name;
  return {kept, KeyMark{std::hash<std::string>{}(name)}};
}

TEST(Owed, AddsUpByKeyAndGivesAllBackOnce) {
  const Limit limit = compile("5/minute").value();
  Owed owed(10);
  owed.add(key("a"), limit, 2, Micros{5});
  owed.add(key("a"), limit, 1, Micros{9});
  owed.add(key("b"), limit, 1, Micros{5});
  EXPECT_EQ(owed.size(), 2u);
  EXPECT_EQ(owed.cost_of(key("a"), limit, Micros{8}), 3);
  EXPECT_EQ(owed.cost_of(key("a"), limit, Micros{9}), 0);
  EXPECT_EQ(owed.cost_of(key("c"), limit, Micros{8}), 0);
  std::int64_t sum = 0;
  for (const Debt& debt : owed.take(10)) {
    sum += debt.cost;
    if (debt.name != "a") continue;
    EXPECT_EQ(debt.cost, 3);
    EXPECT_EQ(debt.until, Micros{9});
  }
  EXPECT_EQ(sum, 4);
  EXPECT_EQ(owed.size(), 0u);
}

// Two limits with one name: each has its own state, in Redis too. Versions of one limit share a state.
TEST(Owed, KeepsPeriodsApart) {
  const Limit hour = compile("5/hour", Algorithm::fixed_window).value();
  const Limit day = compile("50/day", Algorithm::fixed_window).value();
  const Limit more = compile("9/hour", Algorithm::fixed_window).value();
  Owed owed(10);
  owed.add(key("fa"), hour, 2, Micros{5});
  owed.add(key("fa"), day, 7, Micros{5});
  owed.add(key("fa"), more, 1, Micros{5});
  EXPECT_EQ(owed.cost_of(key("fa"), hour, Micros{0}), 3);
  EXPECT_EQ(owed.cost_of(key("fa"), day, Micros{0}), 7);
  bool is_elsewhere = false;
  const auto of_day = owed.take_one(key("fa"), day, is_elsewhere);
  ASSERT_TRUE(of_day && !is_elsewhere);
  EXPECT_TRUE(of_day->limit == day);
  const auto of_hour = owed.take_one(key("fa"), hour, is_elsewhere);
  ASSERT_TRUE(of_hour && !is_elsewhere) << "what is in flight is of the other";
  EXPECT_EQ(of_hour->cost, 3);
  owed.settle(*of_day, true);
  EXPECT_EQ(owed.cost_of(key("fa"), day, Micros{0}), 0);
  EXPECT_EQ(owed.cost_of(key("fa"), hour, Micros{0}), 3);
  owed.forget(key("fa").mark);
  EXPECT_TRUE(owed.is_synced());
}

TEST(Owed, IsNoMoreThanIsStillSpent) {
  const Limit limit = compile("5/minute").value();
  const auto owes = [&](Owed& owed) { return owed.cost_of(key("a"), limit, Micros{0}); };
  Owed owed(10);
  for (int i = 0; i < 9; ++i) owed.add(key("a"), limit, 1, Micros{5}, {.most = 3});
  EXPECT_EQ(owes(owed), 3) << "the others have been recovered from";
  owed.add(key("a"), limit, -2, Micros{5});
  EXPECT_EQ(owes(owed), 1);
  owed.add(key("a"), limit, -2, Micros{5});
  EXPECT_EQ(owes(owed), 0);
  owed.add(key("b"), limit, -2, Micros{5});
  EXPECT_EQ(owed.cost_of(key("b"), limit, Micros{0}), 0) << "nobody is owed to";
  EXPECT_EQ(owed.dropped_permits(), 0u);
  owed.add(key("a"), limit, 4, Micros{5});
  owed.forget(key("a").mark);
  owed.forget(key("a").mark);
  EXPECT_EQ(owes(owed), 0);
}

// Two threads report how much is used, and the earlier report is entered last. The first thread reads the clock,
// another overtakes it, and the first one's charge arrives last. It must not be lost.
TEST(Owed, LosesNothingOfThreadsThatOvertakeEachOther) {
  const Limit limit = compile("100/minute").value();
  Owed owed(10);
  owed.add(key("a"), limit, 1, Micros{50}, {.most = 1, .at = Micros{7}});
  owed.add(key("a"), limit, 1, Micros{50}, {.most = 2, .at = Micros{5}});
  EXPECT_EQ(owed.cost_of(key("a"), limit, Micros{8}), 2);
  std::thread([&] { owed.add(key("a"), limit, 1, Micros{50}, {.most = 3, .at = Micros{3}}); }).join();
  EXPECT_EQ(owed.cost_of(key("a"), limit, Micros{8}), 3);
}

TEST(Owed, BelievesTheLatest) {
  const Limit limit = compile("100/minute").value();
  Owed owed(10);
  std::thread([&] {
    for (int i = 1; i < 10; i += 2) owed.add(key("a"), limit, 1, Micros{50}, {.most = i, .at = Micros{i}});
  }).join();
  for (int i = 2; i <= 10; i += 2) owed.add(key("a"), limit, 1, Micros{50}, {.most = i, .at = Micros{i}});
  EXPECT_EQ(owed.cost_of(key("a"), limit, Micros{11}), 10);
  owed.add(key("a"), limit, 1, Micros{50}, {.most = 2, .at = Micros{1'000'000}});
  EXPECT_EQ(owed.cost_of(key("a"), limit, Micros{11}), 2);
  owed.add(key("a"), limit, 3, Micros{50});
  EXPECT_EQ(owed.cost_of(key("a"), limit, Micros{11}), 5) << "charges that no share counts come on top";
}

// A refund counts, in whatever order the lines are entered, also if the list was full in between.
TEST(Owed, KnowsWhatIsGivenBackInWhateverOrder) {
  const Limit limit = compile("100/minute").value();
  Owed owed(10'000);
  const auto on_a_thread = [&](std::int64_t cost, Spent spent) {
    std::thread([&] { owed.add(key("a"), limit, cost, Micros{50}, spent); }).join();
  };
  for (int i = 0; i < 8; ++i) {
    owed.forget(key("a").mark);
    on_a_thread(10, {.most = 10, .at = Micros{1}});
    owed.add(key("a"), limit, -8, Micros{50}, {.most = 2, .at = Micros{2}});
    EXPECT_EQ(owed.cost_of(key("a"), limit, Micros{11}), 2);
  }
  owed.add(key("b"), limit, 10, Micros{50}, {.most = 10, .at = Micros{1}});
  for (int i = 0; i < 1'500; ++i) owed.add(key("x" + std::to_string(i)), limit, 1, Micros{50});
  owed.add(key("b"), limit, -8, Micros{50}, {.most = 2, .at = Micros{2}});
  EXPECT_EQ(owed.cost_of(key("b"), limit, Micros{11}), 2);
  for (const std::int64_t cost : {5, -10, 5}) owed.add(key("c"), limit, cost, Micros{50});
  EXPECT_EQ(owed.cost_of(key("c"), limit, Micros{11}), 5) << "nobody gets more back than was owed";
}

TEST(Owed, LosesNothingAmongManyThreads) {
  const Limit limit = compile("100/minute").value();
  Owed owed(1'000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 20'000; ++k) owed.add(key("k" + std::to_string(k % (100 + i))), limit, 1, Micros{50});
    });
  }
  std::int64_t sum = 0;
  const auto take = [&] {
    for (const Debt& debt : owed.take(40)) sum += debt.cost;
  };
  for (int i = 0; i < 100; ++i) take();
  for (std::thread& thread : threads) thread.join();
  while (!owed.is_empty()) take();
  EXPECT_EQ(sum, 80'000);
  EXPECT_EQ(owed.dropped_permits(), 0u);
}

// Charges that the share did not count, before charges that it did count. What the share has used says nothing about
// the former.
TEST(Owed, OwesWhatTheShareDidNotCountBesides) {
  const Limit limit = compile("50/minute").value();
  Owed owed(10);
  owed.add(key("a"), limit, 12, Micros{5});
  bool is_elsewhere = false;
  auto sent = owed.take_one(key("a"), limit, is_elsewhere);
  ASSERT_TRUE(sent);
  owed.add(key("a"), limit, 3, Micros{5}, {3, Micros{1}});
  EXPECT_EQ(owed.cost_of(key("a"), limit, Micros{2}), 15);
  owed.settle(*sent, false);
  owed.add(key("a"), limit, 5, Micros{5}, {8, Micros{2}});
  EXPECT_EQ(owed.cost_of(key("a"), limit, Micros{3}), 20);
  owed.add(key("a"), limit, -4, Micros{5});
  EXPECT_EQ(owed.cost_of(key("a"), limit, Micros{3}), 16);
}

// A refund lowers what was charged at its time: what waits, or what is in flight and comes back. It never lowers a
// later charge.
TEST(Owed, ARefundLowersNoLaterCharge) {
  const Limit limit = compile("50/minute").value();
  const auto owes = [&](Owed& owed) { return owed.cost_of(key("a"), limit, Micros{0}); };
  const auto add = [&](Owed& owed, std::int64_t cost, std::int64_t charged_us) {
    owed.add(key("a"), limit, cost, Micros{5}, {}, charged_us);
  };
  for (const bool is_written : {true, false}) {
    Owed owed(10);
    bool is_elsewhere = false;
    add(owed, 5, 10);
    const auto sent = owed.take_one(key("a"), limit, is_elsewhere);
    ASSERT_TRUE(sent);
    add(owed, 3, 20);
    add(owed, -4, 10);
    EXPECT_EQ(owes(owed), 8) << "Redis may have what is in flight";
    owed.settle(*sent, is_written);
    EXPECT_EQ(owes(owed), is_written ? 3 : 4);
    add(owed, -1, 10);
    EXPECT_EQ(owes(owed), 3) << "Redis has it, or it waits again";
    add(owed, -2, 20);
    EXPECT_EQ(owes(owed), 1);
  }
}

TEST(Owed, CountsWhatItHasNoRoomFor) {
  const Limit limit = compile("5/minute").value();
  Owed owed(1);
  owed.add(key("a"), limit, 1, Micros{5});
  owed.add(key("b"), limit, 4, Micros{5});
  owed.add(key("a"), limit, 1, Micros{5});
  EXPECT_EQ(owed.dropped_permits(), 4u);
}

TEST(Owed, IsWrittenUnderTheHighestVersionOfALimit) {
  const Limit low = compile("5/minute").value(), high = compile("9/minute").value();
  Owed owed(10);
  for (const Limit* const limit : {&low, &high, &low}) owed.add(key("a"), *limit, 1, Micros{5});
  const std::vector<Debt> all = owed.take(10);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].cost, 3);
  EXPECT_EQ(all[0].limit, high);
}

}  // namespace
}  // namespace weir
