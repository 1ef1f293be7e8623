// Several words as one event: all or none, even if a participant dies or is stopped in the middle.
#include "table/operation.h"

#include <gtest/gtest.h>

#include <random>

#include "on_threads.h"
#include "seed.h"
#include "table/file.h"

namespace weir::table::operation_test {
namespace {

class Operation : public ::testing::Test {
 protected:
  Operation() : mapping_(map_memory(100, 1 << 16).value()), region_(mapping_.region()) {}
  Unit& slot(std::uint32_t i) const { return region_.page(0).slots[i / 4][i % 4]; }
  Entry entry(std::uint32_t i, const Word& old, const Word& next) const {
    return {region_.number_of(slot(i)), old, next};
  }

  const Mapping mapping_;
  const Region& region_;
};

TEST_F(Operation, ChangesAllWordsOrNone) {
  Actor actor(region_, 0);
  for (const Way way : {Way::solo, Way::help}) {
    slot(0) = slot(1) = slot(2) = {4, 1};
    Entry good[] = {entry(0, {4, 1}, {8, 2}), entry(1, {4, 1}, {8, 3}), entry(2, {4, 1}, {4, 1})};
    EXPECT_TRUE(actor.change(good, way, nullptr));
    EXPECT_EQ(load(slot(0)), (Word{8, 2}));
    EXPECT_EQ(load(slot(1)), (Word{8, 3}));
    EXPECT_EQ(load(slot(2)), (Word{4, 1}));
    Entry bad[] = {entry(0, {8, 2}, {12, 9}), entry(1, {8, 4}, {12, 9}), entry(2, {4, 1}, {12, 9})};
    EXPECT_FALSE(actor.change(bad, way, nullptr));
    EXPECT_EQ(load(slot(0)), (Word{8, 2}));
    EXPECT_EQ(load(slot(2)), (Word{4, 1}));
  }
}

// What a dead participant leaves: an operation that holds some of its words, undecided, done or failed.
TEST_F(Operation, CompletesWhatADeadParticipantLeft) {
  for (const Status status : {kSolo, kHelp, kDone, kFailed}) {
    Participant& dead = region_.participant(7);
    const std::uint64_t number = (dead.status >> 2) + 1, ref = reference(7, number);
    slot(0) = {4 | kHeld, ref};
    slot(1) = status == kDone ? Unit{4 | kHeld, ref} : Unit{4, 1};
    dead.status = number << 2 | status;
    dead.count = 2;
    dead.entries[0] = entry(0, {4, 1}, {4, 2});
    dead.entries[1] = entry(1, {4, 1}, {4, 2});
    if (status == kHelp) {  // other threads finish it
      Actor other(region_, 1);
      EXPECT_EQ(other.read(slot(0)), (Word{4, 2}));
    } else {
      Actor heir(region_, 7);
      heir.recover();
      EXPECT_EQ(load(slot(0)), (Word{4, status == kDone ? 2u : 1u}));
    }
    EXPECT_EQ(load(slot(1)), load(slot(0))) << status;
    EXPECT_EQ(mark_of(load(slot(1))), kPlain);
  }
}

TEST_F(Operation, ReportsDamageWhenAWordCannotBeCompleted) {
  slot(0) = {4 | kHeld, reference(9, 12'345)};  // an operation that never began
  Actor actor(region_, 0);
  actor.read(slot(0));
  EXPECT_TRUE(actor.is_damaged());
}

// Threads move money between accounts, and the sum never changes.
TEST_F(Operation, KeepsTheSumWhileThreadsMoveAmounts) {
  constexpr std::uint32_t kAccounts = 6;
  const std::uint64_t seed = test::base_seed();
  for (const Way first : {Way::solo, Way::help}) {
    for (std::uint32_t i = 0; i < kAccounts; ++i) slot(i) = {4, 1'000};
    test::on_threads(std::uint64_t{4}, [&](std::uint64_t who) {
      std::mt19937_64 dice(seed + who);
      Actor actor(region_, who);
      for (int i = 0; i < 5'000; ++i) {
        const auto from = static_cast<std::uint32_t>(dice() % kAccounts), by = static_cast<std::uint32_t>(dice() % 9);
        const std::uint32_t to = (from + 1 + static_cast<std::uint32_t>(dice() % (kAccounts - 1))) % kAccounts;
        for (unsigned tries = 0;; ++tries) {
          const Word a = actor.read(slot(from)), b = actor.read(slot(to));
          if (a.state < by) break;
          Entry entries[] = {entry(from, a, {4, a.state - by}), entry(to, b, {4, b.state + by})};
          if (from > to) std::swap(entries[0], entries[1]);
          if (actor.change(entries, tries < 2 ? first : Way::help, nullptr)) break;
        }
      }
    });
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < kAccounts; ++i) {
      EXPECT_EQ(mark_of(load(slot(i))), kPlain);
      sum += load(slot(i)).state;
    }
    EXPECT_EQ(sum, 1'000u * kAccounts);
  }
}

}  // namespace
}  // namespace weir::table::operation_test
