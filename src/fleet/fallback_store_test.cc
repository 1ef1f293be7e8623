// What a node admits by its own share.

#include "fleet/fallback_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fleet/doubt.h"
#include "fleet/key_name.h"

namespace weir::fleet {
namespace {

constexpr Micros kThen{1'000'000'000};  // of the monotonic clock

class FallbackStoreTest : public ::testing::Test {
 protected:
  FallbackStoreTest() { fallback_.use(*here_); }

  Verdict charge(const std::vector<Charge>& charges, What what = What::charge) {
    auto verdict = fallback_.answer({.what = what, .charges = charges, .id = "id", .lasts = Micros{60'000'000}}, kThen);
    EXPECT_TRUE(verdict) << verdict.error().message;
    return verdict ? *verdict : Verdict{};
  }
  int admitted(const Charge& one, int offered) {
    int count = 0;
    for (int i = 0; i < offered; ++i) count += charge({one}).allowed ? 1 : 0;
    return count;
  }
  void note(std::string_view name, const Limit& limit, std::int64_t cost, const Decision& decision, Micros now) {
    memory_.note(memory_.mark_of(name), limit, cost, decision, ++said_us_, memory_.begin(now), 0, now);
  }
  static std::string name_of(const Charge& one) { return std::string(std::string_view(KeyName(one))); }
  std::int64_t unsynced(const Charge& one, const Limit& limit, Micros now) {
    const std::string name = name_of(one);
    return unsynced_.cost_of({name, memory_.mark_of(name)}, limit, now);
  }

  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{1'794'701'843'991'953});
  std::unique_ptr<store::MemoryStore> here_ = store::MemoryStore::open({.keys = 1'000}, clock_).value();
  std::int64_t said_us_ = 0;
  KeyMemory memory_{1'000, {1, 2}};
  UnsyncedCharges unsynced_{100};
  UnsyncedPermits unsynced_permits_{100};
  FallbackStore fallback_{memory_, unsynced_, unsynced_permits_};
  const Limit limit_ = compile("10/hour", Algorithm::token_bucket).value();
};

TEST_F(FallbackStoreTest, AdmitsItsShare) {
  fallback_.set_rank({.rank = 0, .nodes = 3});
  const Charge one{.key = "k", .limit = &limit_};
  const Verdict first = charge({one});
  EXPECT_EQ(first.decisions[0].decided_by, DecidedBy::local);
  EXPECT_EQ(first.decisions[0].limit, 10) << "the whole limit is reported";
  EXPECT_EQ(first.decisions[0].remaining, 3);
  EXPECT_EQ(admitted(one, 20), 3);
  const auto charges = unsynced_.take(10);
  ASSERT_EQ(charges.size(), 1u);
  EXPECT_EQ(charges[0].cost, 4);
}

TEST_F(FallbackStoreTest, StartsFromItsPartOfWhatWasLeft) {
  fallback_.set_rank({.rank = 1, .nodes = 3});
  const Charge one{.key = "k", .limit = &limit_};
  note(name_of(one), limit_, 1, {.allowed = true, .limit = 10, .remaining = 7, .reset_after = Micros{60'000'000}},
       kThen);
  EXPECT_EQ(admitted(one, 20), 2);
  const Charge used_up{.key = "used up", .limit = &limit_};
  note(name_of(used_up), limit_, 1, {.allowed = false, .limit = 10, .reset_after = Micros{60'000'000}}, kThen);
  EXPECT_EQ(admitted(used_up, 20), 0);
  const Charge full{.key = "full", .limit = &limit_};
  note(name_of(full), limit_, 1, {.allowed = false, .limit = 10}, kThen);
  EXPECT_EQ(admitted(full, 20), 3) << "it has recovered since";
}

// Nothing is left under the lower version, so the share of the higher one is charged until it is full, too. It is not
// emptied for that, not even for a moment: other threads may be using it. So what was charged before recovers first.
TEST_F(FallbackStoreTest, AHigherVersionEmptiesNoShare) {
  const Limit low = compile("10/minute", Algorithm::sliding_log).value();
  const Limit high = compile("30/minute", Algorithm::sliding_log).value();
  const auto ask = [&](const Limit& limit, Micros after) {
    clock_->set(Micros{1'794'701'843'991'953} + after);
    const Charge one{.key = "k", .limit = &limit, .family = 7};
    int count = 0;
    while (fallback_.answer({.charges = {&one, 1}}, kThen + after)->allowed) ++count;
    return count;
  };
  const Charge one{.key = "k", .limit = &low};
  note(name_of(one), low, 1, {.allowed = false, .limit = 10, .reset_after = Micros{59'000'000}}, kThen);
  EXPECT_EQ(ask(low, Micros{0}), 0);
  EXPECT_EQ(ask(high, Micros{30'000'000}), 0);
  EXPECT_EQ(ask(high, Micros{61'000'000}), 10);
  EXPECT_EQ(ask(high, Micros{91'000'000}), 20);
}

// A call about a key is in doubt when the key is reset, and then another call is. What becomes known of the first call
// says nothing about the second, and what the node admitted instead of the first is no longer used.
TEST_F(FallbackStoreTest, AResetSeparatesCallsInDoubt) {
  const Charge before{.key = "k", .limit = &limit_, .cost = 4}, after{.key = "k", .limit = &limit_, .cost = 3};
  const KeyMark mark = memory_.mark_of(name_of(before));
  for (const bool is_charged : {true, false}) {
    const auto doubt_of = [&](const Charge& charge) {
      return Doubt(What::charge, {{name_of(charge), limit_, charge.cost}}, "",
                   [&](const Doubt& doubt, const Doubt::Outcome& outcome) {
                     const Doubt::Part& part = doubt.parts()[0];
                     unsynced_.settle({.name = part.name,
                                       .mark = mark,
                                       .limit = limit_,
                                       .cost = part.cost,
                                       .until = kThen + Micros{60'000'000},
                                       .epoch = part.epoch},
                                      outcome.is_charged);
                   });
    };
    Doubt first = doubt_of(before), second = doubt_of(after);
    fallback_.book_all({&before, 1}, fallback_.moment(kThen), Booking(first));
    unsynced_.forget(mark);
    fallback_.book_all({&after, 1}, fallback_.moment(kThen), Booking(second));
    first.decide(true);
    first.resolve(is_charged, 1);
    EXPECT_EQ(unsynced(after, limit_, kThen), 3);
    second.decide(true);
    EXPECT_EQ(unsynced(after, limit_, kThen), 3);
    second.resolve(is_charged, 1);
    EXPECT_EQ(unsynced(after, limit_, kThen), is_charged ? 0 : 3);
    EXPECT_EQ(unsynced_.is_synced(), is_charged);
    unsynced_.forget(mark);
  }
}

// Settling a reservation of a window that has ended does not lower the unsynced charges of the current window.
TEST_F(FallbackStoreTest, KeepsUnsyncedWhatACommitDidNotRefund) {
  const Limit limit = compile("10/minute", Algorithm::fixed_window).value();
  Charge one{.key = "k", .limit = &limit, .cost = 10};
  const auto ask = [&](What what, const char* id, Micros now) {
    auto verdict = fallback_.answer({.what = what, .charges = {&one, 1}, .id = id, .lasts = Micros{600'000'000}}, now);
    return verdict && verdict->allowed;
  };
  ASSERT_TRUE(ask(What::reserve, "old", kThen));
  clock_->advance(Micros{120'000'000});
  const Micros later = kThen + Micros{120'000'000};
  one.cost = 4;
  ASSERT_TRUE(ask(What::reserve, "new", later));
  ASSERT_TRUE(ask(What::charge, "", later));
  one.cost = 0;
  ASSERT_TRUE(ask(What::commit, "old", later));
  EXPECT_EQ(unsynced(one, limit, later), 8);
  one.cost = 1;
  ASSERT_TRUE(ask(What::commit, "new", later));
  EXPECT_EQ(unsynced(one, limit, later), 5) << "three of four were refunded";
}

TEST_F(FallbackStoreTest, CountsItsUnsyncedCharges) {
  fallback_.set_rank({.rank = 0, .nodes = 2});
  const Charge one{.key = "k", .limit = &limit_};
  EXPECT_EQ(admitted(one, 20), 5);
  note(name_of(one), limit_, 1, {.allowed = true, .limit = 10, .remaining = 8, .reset_after = Micros{60'000'000}},
       kThen);
  EXPECT_EQ(admitted(one, 20), 0) << "Redis answered in between, but has not received the five";
  for (const UnsyncedCharge& charge : unsynced_.take(10)) unsynced_.settle(charge, true);
  note(name_of(one), limit_, 1, {.allowed = true, .limit = 10, .remaining = 4, .reset_after = Micros{60'000'000}},
       kThen);
  EXPECT_EQ(admitted(one, 20), 2);
}

TEST_F(FallbackStoreTest, AdmitsTheWholeLimitIfOpenAndNothingIfClosed) {
  fallback_.set_rank({.rank = 0, .nodes = 3});
  const Charge open{.key = "o", .limit = &limit_, .fallback = Fallback::open};
  EXPECT_EQ(admitted(open, 20), 10);
  const Charge closed{.key = "c", .limit = &limit_, .fallback = Fallback::closed};
  const Verdict verdict = charge({closed});
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.decisions[0].decided_by, DecidedBy::closed);
  EXPECT_GT(verdict.decisions[0].retry_after, Micros{0});
}

TEST_F(FallbackStoreTest, ChargesAllLimitsOfARequestOrNone) {
  const Charge wide{.key = "w", .limit = &limit_};
  const Charge closed{.key = "c", .limit = &limit_, .fallback = Fallback::closed};
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(charge({wide, closed}).allowed);
  EXPECT_EQ(admitted(wide, 20), 10) << "the denied requests charged nothing";
  EXPECT_EQ(unsynced_.take(10).size(), 1u);
}

// Each algorithm has its own count of a key, and both start from what is known of theirs.
TEST_F(FallbackStoreTest, StartsAKeyOnceForEachAlgorithm) {
  const Limit fixed = compile("10/hour", Algorithm::fixed_window).value();
  const Charge bucket{.key = "k", .limit = &limit_}, window{.key = "k", .limit = &fixed};
  note(name_of(window), fixed, 1, {.allowed = false, .limit = 10, .reset_after = Micros{60'000'000}}, kThen);
  note(name_of(bucket), limit_, 1, {.allowed = true, .limit = 10, .remaining = 9, .reset_after = Micros{60'000'000}},
       kThen);
  EXPECT_EQ(admitted(window, 5), 0);
  EXPECT_EQ(admitted(bucket, 5), 5);
  EXPECT_EQ(admitted(window, 5), 0) << "it was used up before";
}

// Permits that Redis granted are in flight, no matter which client has them.
TEST_F(FallbackStoreTest, GrantsItsPartOfThePermitsThatWereLeft) {
  fallback_.set_rank({.rank = 0, .nodes = 2});
  const Limit ten = compile("10 concurrent for 5min", Algorithm::concurrency).value();
  const Charge one{.key = "k", .limit = &ten};
  const auto acquired = [&](int offered) {
    int count = 0;
    for (int i = 0; i < offered; ++i) {
      const std::string id = "permit " + std::to_string(i);
      const auto verdict = fallback_.answer({.what = What::acquire, .charges = {&one, 1}, .id = id}, kThen);
      EXPECT_TRUE(verdict && verdict->decisions[0].decided_by == DecidedBy::local && verdict->decisions[0].limit == 10);
      count += verdict && verdict->allowed ? 1 : 0;
    }
    return count;
  };
  note(name_of(one), ten, 0, {.allowed = true, .limit = 10, .remaining = 7, .reset_after = Micros{300'000'000}}, kThen);
  EXPECT_EQ(acquired(10), 4);
  EXPECT_TRUE(*fallback_.release("k", "permit 0"));
  EXPECT_EQ(unsynced_permits_.take(10, kThen).size(), 3u) << "the server sends Redis those that are in flight";
  EXPECT_EQ(acquired(10), 4) << "three of them are acquired again";
  note(name_of(one), ten, 0, {.allowed = false, .limit = 10, .reset_after = Micros{300'000'000}}, kThen);
  const auto denied = fallback_.answer({.what = What::acquire, .charges = {&one, 1}, .id = "another"}, kThen);
  EXPECT_TRUE(denied && !denied->allowed);
  EXPECT_EQ(denied->decisions[0].retry_after, Micros{1'000'000});
  note(name_of(one), ten, 0, {.allowed = true, .limit = 10}, kThen);
  EXPECT_EQ(acquired(10), 5) << "all other permits were released";
}

TEST_F(FallbackStoreTest, CommitsWhatItReserved) {
  const Charge five{.key = "k", .limit = &limit_, .cost = 5}, two{.key = "k", .limit = &limit_, .cost = 2};
  EXPECT_TRUE(charge({five}, What::reserve).allowed);
  const Verdict settled = charge({two}, What::commit);
  EXPECT_EQ(settled.reserved, std::vector<std::int64_t>{5});
  EXPECT_EQ(settled.decisions[0].remaining, 8);
}

TEST_F(FallbackStoreTest, KeepsUnsyncedWhatWasUsedNotWhatWasReserved) {
  const auto costs = [&](std::int64_t cost) { return Charge{.key = "k", .limit = &limit_, .cost = cost}; };
  const auto unsynced_cost = [&] { return unsynced(costs(1), limit_, kThen); };
  charge({costs(1)});
  charge({costs(5)}, What::reserve);
  EXPECT_EQ(unsynced_cost(), 6);
  charge({costs(2)}, What::commit);
  EXPECT_EQ(unsynced_cost(), 3) << "less was used";
  charge({costs(2)}, What::reserve);
  charge({costs(4)}, What::commit);
  EXPECT_EQ(unsynced_cost(), 7) << "more was used";
  charge({costs(3)}, What::reserve);
  charge({costs(0)}, What::commit);
  EXPECT_EQ(unsynced_cost(), 7) << "it was cancelled";
}

}  // namespace
}  // namespace weir::fleet
