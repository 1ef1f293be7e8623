// Charges that are unsynced after Redis was down.

#include "fleet/unsynced_charges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>
#include <vector>

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

// Threads read the clock in another order than they charge and refund, and report in any order. What they report are
// 100 charged, 60 of them refunded, and then 10 charged. All of it may also have been charged to a share that had
// used 30 before, which Redis has.
TEST_F(UnsyncedChargesTest, ARefundInAnyOrderLowersNoLaterCharge) {
  struct Report {
    std::int64_t cost, used, at_us;
    RefundCount refunds;
  };
  constexpr Report kReports[] = {{100, 100, 1'000, {0, 0}}, {-60, 40, 5'003, {1, 1}}, {10, 50, 5'002, {1, 1}}};
  for (const std::int64_t before : {0, 30}) {
    std::array<int, 3> order{0, 1, 2};
    do {
      for (const int together : {1, 2, 3}) {  // reports that are entered at a time
        UnsyncedCharges unsynced(10);
        for (int i = 0; i < 3; ++i) {
          const Report& one = kReports[order[static_cast<std::size_t>(i)]];
          std::thread([&] {
            unsynced.add(key("a"), limit_, one.cost, Micros{1'000'000},
                         {one.used + before, Micros{one.at_us}, one.refunds}, 10);
          }).join();
          if (i % together == together - 1) static_cast<void>(unsynced.size());
        }
        const auto batch_of = [&](int report) { return (std::ranges::find(order, report) - order.begin()) / together; };
        const bool is_exact = batch_of(0) <= batch_of(1);  // else the refund is entered first, and lost
        const std::int64_t cost = unsynced.cost_of(key("a"), limit_, Micros{6'000});
        EXPECT_GE(cost, 50) << order[0] << order[1] << order[2] << " by " << together << ", before " << before;
        EXPECT_LE(cost, 50 + (is_exact ? 0 : before)) << order[0] << order[1] << order[2] << " by " << together;
      }
    } while (std::ranges::next_permutation(order).found);
  }
}

// A charge overlaps with a refund, so it may have been made before or after it. And a refund that leaves nothing used
// says nothing about how much was refunded.
TEST_F(UnsyncedChargesTest, ARefundOfUnknownOrderOrSizeLowersNoLaterCharge) {
  const auto cost_after = [&](std::vector<std::pair<std::int64_t, LocalUsage>> reports) {
    UnsyncedCharges unsynced(10);
    for (const auto& [cost, usage] : reports) unsynced.add(key("a"), limit_, cost, Micros{50}, usage, 10);
    return unsynced.cost_of(key("a"), limit_, Micros{6});
  };
  const LocalUsage all{100, Micros{1}, {0, 0}}, refunded{40, Micros{2}, {1, 1}};
  EXPECT_EQ(cost_after({{100, all}, {-60, refunded}, {10, {50, Micros{2}, {0, 1}}}}), 50) << "after it";
  EXPECT_EQ(cost_after({{90, {90, Micros{1}, {0, 0}}}, {-60, refunded}, {10, {100, Micros{2}, {0, 1}}}}), 40)
      << "before it";
  const LocalUsage five{5, Micros{1}, {0, 0}}, none{0, Micros{2}, {1, 1}}, again{5, Micros{3}, {1, 1}};
  EXPECT_EQ(cost_after({{5, five}, {-20, none}, {5, again}}), 5);
  EXPECT_EQ(cost_after({{5, five}, {-20, none}}), 0);
}

// Nothing is left under a lower version of the limit, so at least its capacity is used. This lowers nothing.
TEST_F(UnsyncedChargesTest, WhatIsLeastUsedLowersNothing) {
  const Limit low = compile("20/minute").value();
  unsynced_.add(key("a"), limit_, 50, Micros{50}, {50, Micros{1}, {0, 0}}, 10);
  unsynced_.add(key("a"), low, -1, Micros{50}, LocalUsage::at_least(20, {1, 1}), 10);
  EXPECT_EQ(cost_of("a"), 49);
  unsynced_.add(key("a"), low, 5, Micros{50}, LocalUsage::at_least(20, {2, 2}), 10);
  EXPECT_EQ(cost_of("a"), 50) << "no more than was used before, and than fits into the lower version";
  unsynced_.add(key("a"), limit_, 1, Micros{50}, {30, Micros{4}, {2, 2}}, 10);
  EXPECT_EQ(cost_of("a"), 30) << "the rest has recovered";
}

// The counts of refunds around changes, on one thread: a change that overlaps with no refund has an exact count.
TEST(RefundOrder, CountsRefundsThatPrecede) {
  RefundOrder order;
  const KeyMark mark{7};
  const auto count_of = [&](bool is_refund) { return RefundOrder::Change(order, mark, is_refund).end(); };
  const RefundCount first = count_of(false), refund = count_of(true), later = count_of(false);
  EXPECT_TRUE(first.is_before(refund) && first.is_exact() && refund.is_exact());
  EXPECT_TRUE(!refund.is_before(later) && !later.is_before(refund) && later.is_exact()) << "the first of its count";
  RefundOrder::Change open(order, mark, true);
  const RefundCount during = count_of(false);
  EXPECT_FALSE(during.is_exact());
  static_cast<void>(open.end());
  EXPECT_FALSE(during.is_before(count_of(false)));
  EXPECT_TRUE(later.is_before(count_of(true)));
  { const RefundOrder::Change failed(order, mark, true); }
  EXPECT_TRUE(count_of(false).is_exact()) << "a refund that failed has ended";
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

// The key is reset while a charge is in flight. Afterwards a call about the key is in doubt: the outcome of the old
// charge says nothing about it.
TEST_F(UnsyncedChargesTest, AResetSeparatesWhatIsInFlight) {
  for (const bool is_written : {true, false}) {
    UnsyncedCharges unsynced(10);
    unsynced.add(key("a"), limit_, 50, Micros{5}, {50, Micros{1}}, 10);
    const std::vector<UnsyncedCharge> old = unsynced.take(1);
    ASSERT_EQ(old.size(), 1u);
    unsynced.forget(key("a").mark);
    unsynced.doubt(key("a"), limit_, 30);
    unsynced.settle(old[0], is_written);
    EXPECT_EQ(unsynced.cost_of(key("a"), limit_, Micros{2}), 30);
    unsynced.settle({.name = "a", .mark = key("a").mark, .limit = limit_, .cost = 30, .until = Micros{5}}, false);
    EXPECT_EQ(unsynced.cost_of(key("a"), limit_, Micros{2}), 30) << "it waits to be written";
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
