// A log in two counters against a list of all admitted events. No period exceeds the limit, waits are exact, and
// neither refunds nor conversions lower what counts as used.
#include "algorithm/compact_log.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "algorithm/cell.h"
#include "algorithm/limit.h"
#include "seed.h"

namespace weir::algorithm::compact_log_test {
namespace {

constexpr std::int64_t kStart = 1'794'701'843'991'953;

Limit log_of(std::int64_t permits, std::int64_t period) {
  return make_window(Algorithm::sliding_log, permits, period).value();
}

// All events that were admitted and not refunded, by time: the definition of the log.
class History {
 public:
  explicit History(std::int64_t period) : period_(period) {}
  void add(std::int64_t now, std::int64_t cost) { events_[now] += cost; }
  void take_back(std::int64_t at, std::int64_t cost) { events_[at] -= cost; }
  std::int64_t used(std::int64_t now) const {
    std::int64_t sum = 0;
    for (auto i = events_.upper_bound(now - period_); i != events_.end() && i->first <= now; ++i) sum += i->second;
    return sum;
  }
  // The maximum over all intervals of one period that end at an event.
  std::int64_t most() const {
    std::int64_t most = 0;
    for (const auto& [time, cost] : events_) most = std::max(most, used(time));
    return most;
  }

 private:
  const std::int64_t period_;
  std::map<std::int64_t, std::int64_t> events_;
};

struct Dice {
  const std::uint64_t seed = test::base_seed();
  std::mt19937_64 random{seed};
  std::int64_t in(std::int64_t low, std::int64_t high) { return test::pick(random, low, high); }
  bool chance(std::int64_t percent) { return in(1, 100) <= percent; }
};

// A denied request is denied one microsecond before its wait ends, and admitted when it ends.
void expect_exact_wait(const Cell& cell, const Limit& limit, std::int64_t now, std::int64_t cost) {
  const Decision denied = cell.decide(limit, now, cost).decision;
  ASSERT_FALSE(denied.allowed);
  if (denied.retry_after == kNever) {
    EXPECT_GT(cost, limit.permits);
    return;
  }
  const std::int64_t then = now + denied.retry_after.count();
  EXPECT_FALSE(cell.decide(limit, then - 1, cost).decision.allowed);
  EXPECT_TRUE(cell.decide(limit, then, cost).decision.allowed);
}

void expect_exact_reset(const Cell& cell, const Limit& limit, std::int64_t now) {
  const std::int64_t then = now + cell.decide(limit, now, 0).decision.reset_after.count();
  EXPECT_EQ(cell.decide(limit, then, 0).decision.remaining, limit.permits);
  if (then > now && limit.permits > 0) {
    EXPECT_LT(cell.decide(limit, then - 1, 0).decision.remaining, limit.permits);
  }
}

TEST(CompactLog, AdmitsIfTwoWindowsHoldNoMoreThanTheLimit) {
  const Limit limit = log_of(10, 1'000);
  Cell cell(limit, CompactLog{});
  const auto ask = [&](std::int64_t now, std::int64_t cost) {
    const auto stepped = cell.decide(limit, now, cost);
    if (stepped.decision.allowed) cell.commit(limit, stepped);
    return stepped.decision;
  };
  EXPECT_EQ(ask(5'100, 6).remaining, 4);
  EXPECT_EQ(ask(5'900, 5).retry_after, Micros{1'100}) << "until the 6 are two windows old";
  EXPECT_EQ(ask(5'900, 4).remaining, 0);
  EXPECT_EQ(ask(6'500, 1).retry_after, Micros{500});
  EXPECT_EQ(ask(7'000, 10).remaining, 0);
  EXPECT_EQ(ask(7'000, 11).retry_after, kNever);
  EXPECT_EQ(ask(7'500, 0).reset_after, Micros{1'500});
}

// Versions of one limit in turn, costs of all sizes, refunds without a time, and a clock of varying pace.
TEST(CompactLog, AdmitsNoMoreThanTheHighestVersionInAnyPeriod) {
  Dice dice;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("seed " + std::to_string(dice.seed) + ", round " + std::to_string(round));
    const std::int64_t period = dice.in(1, 60), most = dice.in(1, 30);
    std::vector<Limit> versions{log_of(most, period)};
    while (dice.chance(60)) versions.push_back(log_of(dice.in(0, most), period));
    Cell cell(versions[0], CompactLog{});
    History history(period);
    std::int64_t now = kStart;
    for (int i = 0; i < 200; ++i) {
      now += dice.chance(50) ? dice.in(0, 3) : dice.in(0, period);
      const Limit& limit = versions[static_cast<std::size_t>(dice.in(0, std::ssize(versions) - 1))];
      const std::int64_t cost = dice.in(0, dice.chance(70) ? 3 : most + 1);
      const auto stepped = cell.decide(limit, now, cost);
      expect_exact_reset(cell, limit, now);
      if (!stepped.decision.allowed) {
        expect_exact_wait(cell, limit, now, cost);
        continue;
      }
      EXPECT_LE(history.used(now) + cost, std::max(limit.permits, history.used(now)));
      if (cost == 0) continue;
      EXPECT_TRUE(stepped.converts);
      cell.commit(limit, stepped);
      EXPECT_LE(std::get<CompactLog>(cell.state()).used(), limit.permits) << "fits the slot of this version";
      history.add(now, cost);
    }
    ASSERT_LE(history.most(), most);
  }
}

TEST(CompactLog, NeverDeniesHalfOfTheLimit) {
  Dice dice;
  for (int round = 0; round < 200; ++round) {
    const std::int64_t period = dice.in(2, 60), permits = dice.in(2, 30);
    const Limit limit = log_of(permits, period);
    Cell cell(limit, CompactLog{});
    std::map<std::int64_t, std::int64_t> used;  // by window
    for (std::int64_t now = kStart; now < kStart + 10 * period; now += dice.in(0, 3)) {
      std::int64_t& in_window = used[now / period];
      if (in_window + 1 > permits / 2) continue;
      const auto stepped = cell.decide(limit, now, 1);
      ASSERT_TRUE(stepped.decision.allowed) << "seed " << dice.seed << ", round " << round;
      cell.commit(limit, stepped);
      ++in_window;
    }
  }
}

// Charges settled later under one limit, and a state that switches between log and counters. The used amount is never
// less than the history without the refunded permits.
TEST(CompactLog, LosesNoUsageInEitherForm) {
  struct Charge {
    std::int64_t at, cost;
  };
  Dice dice;
  std::int64_t returned = 0, changes = 0;
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE("seed " + std::to_string(dice.seed) + ", round " + std::to_string(round));
    const std::int64_t period = dice.in(1, 40), permits = dice.in(1, 20);
    const Limit limit = log_of(permits, period);
    Cell cell(limit);
    History history(period);
    std::vector<Charge> charges;
    std::int64_t now = kStart;
    for (int i = 0; i < 150; ++i) {
      now += dice.in(0, dice.chance(80) ? 3 : period);
      if (dice.chance(15)) {
        ++changes;
        if (const auto* log = std::get_if<SlidingLog>(&cell.state())) {
          cell = Cell(limit, compact_log_of(*log, period, now));
        } else {
          cell = Cell(limit, expand<SlidingLog>(std::get<CompactLog>(cell.state()), period, now));
        }
      } else if (!charges.empty() && dice.chance(25)) {
        const auto at = charges.begin() + dice.in(0, std::ssize(charges) - 1);
        const std::int64_t cost = dice.in(1, at->cost);
        const auto refund = cell.refund(limit, now, charged_at(limit, at->at), cost);
        EXPECT_LE(refund.permits, cost);
        if (refund.changed) cell.commit(limit, refund.outcome);
        history.take_back(at->at, refund.permits);
        returned += refund.permits;
        charges.erase(at);  // each is settled once
      } else {
        const std::int64_t cost = dice.in(1, std::min<std::int64_t>(permits, 4));
        const auto stepped = cell.decide(limit, now, cost);
        if (stepped.decision.allowed) {
          cell.commit(limit, stepped);
          history.add(now, cost);
          charges.push_back({now, cost});
        } else {
          expect_exact_wait(cell, limit, now, cost);
        }
      }
      const std::int64_t remaining = cell.decide(limit, now, 0).decision.remaining;
      ASSERT_LE(remaining, permits - history.used(now));
    }
    ASSERT_LE(history.most(), permits);
  }
  EXPECT_GT(returned, 1'000);
  EXPECT_GT(changes, 1'000);
}

// At the moment of conversion a log and its counters have the same amount used.
TEST(CompactLog, CountsWhatTheLogStillCounts) {
  Dice dice;
  for (int round = 0; round < 300; ++round) {
    const std::int64_t period = dice.in(1, 40);
    const Limit limit = log_of(100, period);
    Cell cell(limit);
    std::int64_t now = kStart;
    for (int i = 0; i < 20; ++i) {
      now += dice.in(0, 8);
      if (const auto stepped = cell.decide(limit, now, dice.in(1, 5)); stepped.decision.allowed)
        cell.commit(limit, stepped);
      const CompactLog compact = compact_log_of(std::get<SlidingLog>(cell.state()), period, now);
      ASSERT_EQ(compact.used(), 100 - cell.decide(limit, now, 0).decision.remaining);
      const Cell expanded(limit, expand<SlidingLog>(compact, period, now));
      ASSERT_EQ(compact.used(), 100 - expanded.decide(limit, now, 0).decision.remaining);
    }
  }
}

TEST(CompactLog, CountsAllAsNowWhenTheClockWasSetBack) {
  const Limit limit = log_of(10, 1'000);
  Cell cell(limit, CompactLog{9, 3, 4});
  EXPECT_TRUE(cell.is_current(8'500)) << "a window may be one ahead";
  EXPECT_EQ(cell.decide(limit, 8'500, 4).decision.retry_after, Micros{1'500});
  EXPECT_FALSE(cell.is_current(7'500));
  EXPECT_TRUE(cell.prepare(7'500));
  EXPECT_EQ(std::get<CompactLog>(cell.state()), (CompactLog{7, 0, 7}));
}

// The join of two states denies whatever either of them denies, now and later.
TEST(CompactLog, JoinsToAtLeastTheUsageOfEach) {
  Dice dice;
  for (int round = 0; round < 2'000; ++round) {
    const Limit limit = log_of(20, 10);
    const auto any = [&] { return CompactLog{dice.in(5, 9), dice.in(0, 10), dice.in(0, 10)}; };
    const CompactLog a = any(), b = any(), both = join(a, b);
    const std::int64_t now = dice.in(std::max(a.window, b.window) * 10, 130);
    const auto remaining = [&](const CompactLog& s) { return compact_log_step(s, limit, now, 0).decision.remaining; };
    ASSERT_LE(remaining(both), std::min(remaining(a), remaining(b)));
    ASSERT_EQ(join(both, a), both);
  }
}

}  // namespace
}  // namespace weir::algorithm::compact_log_test
