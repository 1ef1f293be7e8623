// Numbers of limits that are reused, under chosen interleavings: no participant reads one as its old limit.
//
// Two openings of one file act like two processes; each remembers what the numbers mean. There are very few numbers, so
// each changes its meaning after some checks. All keys are counted here too, and every answer says what its key has
// used: a state read by a wrong limit, or a lost or doubled charge, shows at once. A failure prints the seed of its
// history, which needs the histories before it.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>

#include "algorithm/limit.h"
#include "base/folder_fixture.h"
#include "schedule.h"
#include "seed.h"
#include "table/table.h"

namespace weir::test {
namespace {

using table::Debit;
using table::Table;

constexpr std::int64_t kPeriod_us = 3'600'000'000, kStart_us = 400'000 * kPeriod_us + 1'000'000;
constexpr std::int64_t kRecovery_us = 20 * kPeriod_us;  // of all keys; the long test stays before kTimeEnd with it
constexpr std::size_t kCheckers = 3, kLimits = 12, kChecks = 4;

class RecyclingSchedules : public ::testing::Test {
 protected:
  RecyclingSchedules() {
    for (auto& process : processes_) {
      process = Table::open({.file = folder_.at("state"), .keys = 1, .arena_bytes = 1 << 16, .clock = clock_}).value();
    }
    for (std::size_t i = 0; i < kLimits; ++i) {
      const auto permits = static_cast<std::int64_t>(200 + 40 * i * i);  // their counts take 8 to 13 bits
      limits_.push_back(i % 3 == 2
                            ? algorithm::make_bucket(Algorithm::token_bucket, permits, kRecovery_us, permits).value()
                            : algorithm::make_window(Algorithm::fixed_window, permits, kPeriod_us).value());
    }
  }
  // One check of a key that only this fiber uses, or of one that all do; what is wrong with the answer is kept.
  void check(std::size_t fiber, std::size_t process, std::mt19937_64& random) {
    const Limit& limit = limits_[random() % kLimits];
    const bool is_bucket = limit.algorithm == Algorithm::token_bucket, is_shared = random() % 3 == 0;
    const std::size_t who = is_shared ? kCheckers : fiber;
    std::int64_t& used = used_[who][is_bucket];
    Table& table = *processes_[process];
    Debit debit{.name = table.key_name(limit, "key " + std::to_string(who)),
                .limit = &limit,
                .cost = random() % 4 == 0 ? 0 : 1,
                .family = random() % 2};
    const std::int64_t now = clock_->now().count(), before = used;
    if (!table.charge_fast(debit, now)) {
      if (const auto ruling = table.charge({&debit, 1}, {}, now); !ruling) {
        wrong_ = ruling.error().message;
        return;
      }
    }
    used += debit.cost;
    const std::int64_t said = limit.permits - debit.decision.remaining;
    // What others charged to a shared key meanwhile may be in the answer or not.
    const bool is_right =
        is_shared ? said >= before + debit.cost && said <= used + static_cast<std::int64_t>(kCheckers) : said == used;
    if (!debit.decision.allowed || !is_right) {
      wrong_ = "used " + std::to_string(used) + ", told " + std::to_string(said) + " of " +
               std::to_string(limit.permits) + (is_shared ? " of all" : "");
    }
  }

  std::string history(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    if (random() % 8 == 0) {  // the windows are over, and their keys expire
      clock_->advance(Micros{kRecovery_us});
      for (auto& used : used_) used[0] = used[1] = 0;
    }
    schedule_.reset(static_cast<unsigned>(random() % 3));
    for (std::size_t i = 0; i < kCheckers; ++i) {
      schedule_.start(i, [this, i, fiber_seed = random()] {
        std::mt19937_64 own(fiber_seed);
        for (std::size_t k = 0; k < kChecks && wrong_.empty(); ++k) {
          check(i, i / 2, own);
          schedule_.moment();
        }
      });
    }
    const std::size_t sweeper = random() % 2;
    schedule_.start(kCheckers, [this, sweeper] {
      for (int i = 0; i < 3; ++i) {
        processes_[sweeper]->sweep(clock_->now().count(), 128);
        schedule_.moment();
      }
    });
    const std::uint64_t step = random() % 3 == 0 ? 3 : 60;
    for (std::size_t left = kCheckers + 1; left > 0;) {
      std::size_t fiber = random() % (kCheckers + 1);
      schedule_.run(fiber, 1 + random() % (fiber == kCheckers ? 20 * step : step));
      left = 0;
      for (std::size_t i = 0; i <= kCheckers; ++i) left += std::size_t{!schedule_.is_over(i)};
    }
    if (schedule_.has_stuck()) return "an operation never ends";
    for (std::size_t who = 0; who <= kCheckers && wrong_.empty(); ++who) {
      for (const std::size_t kind : {0u, 1u}) {
        const Limit& limit = limits_[kind == 1 ? 2 : 0];
        Debit peek{.name = processes_[0]->key_name(limit, "key " + std::to_string(who)), .limit = &limit};
        if (!processes_[0]->charge({&peek, 1}, {}, clock_->now().count())) return "the table is damaged";
        if (limit.permits - peek.decision.remaining != used_[who][kind]) return "charges were lost";
      }
    }
    return wrong_;
  }

  void run(std::uint64_t histories) {
    const FewLimits few(8);
    const std::uint64_t seed = base_seed();
    for (std::uint64_t i = 0; i < histories; ++i) {
      const std::string wrong = history(seed + i);
      ASSERT_TRUE(wrong.empty()) << "WEIR_SEED=" << seed << ", history " << i << ": " << wrong;
    }
    const std::uint64_t epoch = processes_[0]->region().header().limits_epoch;
    EXPECT_GT(epoch, histories / 20) << "no number was reused";
    std::printf("%llu histories, epoch %llu\n", static_cast<unsigned long long>(histories),
                static_cast<unsigned long long>(epoch));
  }

  const base::TestFolder folder_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{kStart_us});
  std::unique_ptr<Table> processes_[2];
  std::vector<Limit> limits_;
  Schedule schedule_;
  std::int64_t used_[kCheckers + 1][2] = {};
  std::string wrong_;
};

TEST_F(RecyclingSchedules, ReadNoNumberAsItsOldLimit) { run(3'000); }

class LongRecyclingSchedules : public RecyclingSchedules {};
TEST_F(LongRecyclingSchedules, ReadNoNumberAsItsOldLimit) { run(200'000); }

}  // namespace
}  // namespace weir::test
