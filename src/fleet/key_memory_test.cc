// What is remembered of keys, and when it no longer counts.

#include "fleet/key_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

namespace weir::fleet {
namespace {

constexpr Micros kSecond{1'000'000};

class KeyMemoryTest : public ::testing::Test {
 protected:
  Decision denied(Micros retry, Micros reset) const {
    return {.allowed = false, .limit = 5, .remaining = 0, .retry_after = retry, .reset_after = reset};
  }
  KeyMark mark(std::string_view name) const { return memory_.mark_of(name); }
  void note(std::string_view name, const Limit& limit, std::int64_t cost, const Decision& decision, Micros now) {
    memory_.note(mark(name), limit, cost, decision, ++said_us_, memory_.begin(now), 0, now);
  }
  std::optional<KnownUsage> seed(std::string_view name, const Limit& limit, bool is_lasting = true) {
    std::optional<KnownUsage> found;
    memory_.begin_share(
        mark(name), limit, Micros{0}, [=] { return is_lasting; }, [&](const KnownUsage& said, bool) { found = said; });
    return found;
  }
  const Limit limit_ = compile("5/minute").value();
  const Limit other_ = compile("6/minute").value();
  // Asks about a key without unsynced charges.
  KeyMemory::Asked ask(std::string_view name, std::int64_t cost = 1) {
    KeyMemory::Asked asked = memory_.begin(10 * kSecond);
    EXPECT_FALSE(memory_.ask(mark(name), limit_, cost, asked, 0, [] { return false; }));
    return asked;
  }
  KeyMemory::Alone spare(std::string_view name, std::int64_t cost, NodeRank rank = {}) {
    return memory_.admit_alone(
        mark(name), limit_, cost, rank, 10 * kSecond, [this] { return unsynced_; },
        [&](std::int64_t, Micros) { unsynced_ += cost; });
  }
  std::int64_t said_us_ = 0;
  std::int64_t unsynced_ = 0;
  KeyMemory memory_{1'000, {1, 2}};
};

TEST_F(KeyMemoryTest, CachesADenialUntilItCanChange) {
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  const auto denial = memory_.denial(mark("k"), limit_, 1, 12 * kSecond);
  ASSERT_TRUE(denial);
  EXPECT_FALSE(denial->allowed);
  EXPECT_EQ(denial->limit, 5);
  EXPECT_EQ(denial->retry_after, kSecond);
  EXPECT_EQ(denial->reset_after, 7 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 13 * kSecond)) << "the wait is over";
  EXPECT_FALSE(memory_.denial(mark("other"), limit_, 1, 12 * kSecond));
}

TEST_F(KeyMemoryTest, ReturnsADenialOnlyForTheSameCostAndLimit) {
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 2, 12 * kSecond)) << "another cost has another wait";
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 0, 12 * kSecond));
  EXPECT_FALSE(memory_.denial(mark("k"), other_, 1, 12 * kSecond)) << "the limit was raised";
}

TEST_F(KeyMemoryTest, DropsADenialWhenPermitsAreRefunded) {
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.drop(mark("k"));
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 12 * kSecond));
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 1}, 11 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 12 * kSecond));
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.drop_all();
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 12 * kSecond));
}

TEST_F(KeyMemoryTest, CachesNoDenialThatNeverEndsOrEndsAtOnce) {
  note("k", limit_, 1, denied(kNever, 9 * kSecond), 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 10 * kSecond));
  note("k", limit_, 1, denied(Micros{999}, 9 * kSecond), 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 10 * kSecond));
}

// Permits were refunded while the answer was on its way.
TEST_F(KeyMemoryTest, CachesNoDenialThatWasInvalidatedBeforeItArrived) {
  const auto asked = memory_.begin(10 * kSecond);
  memory_.drop(mark("k"));
  memory_.note(mark("k"), limit_, 1, denied(3 * kSecond, 9 * kSecond), ++said_us_, asked, 0, 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond));
  const auto again = memory_.begin(10 * kSecond);
  memory_.drop_all();
  memory_.note(mark("k"), limit_, 1, denied(3 * kSecond, 9 * kSecond), ++said_us_, again, 0, 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond));
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  EXPECT_TRUE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond));
}

TEST_F(KeyMemoryTest, CachesNoDenialWhileInvalidationsDoNotArrive) {
  const auto asked_before = memory_.begin(10 * kSecond);
  note("k", limit_, 1, denied(9 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.set_caching(true);
  EXPECT_TRUE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond)) << "it was cached already";
  memory_.set_caching(false);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond));
  note("k", limit_, 1, denied(9 * kSecond, 9 * kSecond), 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond));
  memory_.set_caching(true);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond)) << "an invalidation may have been missed meanwhile";
  memory_.note(mark("k"), limit_, 1, denied(9 * kSecond, 9 * kSecond), ++said_us_, asked_before, 0, 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond))
      << "an invalidation may have been missed before this reply arrived";
  note("k", limit_, 1, denied(9 * kSecond, 9 * kSecond), 11 * kSecond);
  EXPECT_TRUE(memory_.denial(mark("k"), limit_, 1, 12 * kSecond));
}

TEST_F(KeyMemoryTest, CountsTheWaitFromTheRequest) {
  memory_.note(mark("k"), limit_, 1, denied(3 * kSecond, 9 * kSecond), ++said_us_, memory_.begin(10 * kSecond), 0,
               12 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 13 * kSecond));
}

TEST_F(KeyMemoryTest, KnowsWhatWasLeftAfterAllDenialsAreDropped) {
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.drop_all();
  EXPECT_EQ(seed("k", limit_)->remaining, 0);
}

// After a refund or a reset, an outage does not start with a full share.
TEST_F(KeyMemoryTest, KnowsWhatWasLeftAfterADenialIsDropped) {
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.drop(mark("k"));
  ASSERT_TRUE(seed("k", limit_));
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 2, .reset_after = 9 * kSecond}, 10 * kSecond);
  memory_.drop(mark("k"));
  ASSERT_TRUE(seed("k", limit_));
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 2, .reset_after = 9 * kSecond}, 10 * kSecond);
  EXPECT_EQ(seed("k", other_)->remaining, 3) << "under another version, what is used stays used";
}

TEST_F(KeyMemoryTest, GrantsWhatIsLeftLessWhatIsInFlightAndUnsynced) {
  using enum KeyMemory::Alone;
  EXPECT_EQ(spare("new", 4, {.rank = 0, .nodes = 2}), denied);
  EXPECT_EQ(spare("new", 3, {.rank = 0, .nodes = 2}), granted)
      << "a key that Redis was never asked about has its share";
  EXPECT_EQ(spare("new", 1, {.rank = 0, .nodes = 2}), denied);
  unsynced_ = 0;
  const auto first = ask("k");
  EXPECT_EQ(spare("k", 1), busy) << "the answer may be that nothing is left";
  memory_.note(mark("k"), limit_, 1, {.allowed = true, .limit = 5, .remaining = 4, .reset_after = 9 * kSecond}, 1,
               first, 0, 10 * kSecond);
  const auto second = ask("k", 2);
  EXPECT_EQ(spare("k", 3), denied);
  EXPECT_EQ(spare("k", 1), granted);
  EXPECT_EQ(spare("k", 1), granted);
  EXPECT_EQ(spare("k", 1), denied) << "two are in flight, two are unsynced";
  memory_.miss(mark("k"), limit_, 2, second, 0);
  EXPECT_EQ(spare("k", 1), granted) << "nothing is in flight any more";
  KeyMemory::Asked asked = memory_.begin(10 * kSecond);
  EXPECT_FALSE(memory_.ask(mark("k"), limit_, 1, asked, 3, [] { return false; }));
  EXPECT_EQ(asked.unsynced_places, 8u) << "the unsynced ones go with the next call";
  EXPECT_EQ(asked.counted, 8u);
}

// Another thread adds unsynced charges of a key while the key's first question creates its record. The first question
// comes before them, and the next one carries them.
TEST_F(KeyMemoryTest, MissesNoUnsyncedChargesThatAreAddedDuringTheFirstRequest) {
  std::thread other;
  KeyMemory::Asked first = memory_.begin(10 * kSecond), second = first;
  const auto nothing_yet = [&] {
    std::atomic<bool> has_begun{false};
    other = std::thread([&] {
      has_begun = true;
      memory_.recount_unsynced(mark("k"), limit_);
    });
    while (!has_begun) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // if it need not wait, it is done by now
    return false;
  };
  EXPECT_FALSE(memory_.ask(mark("k"), limit_, 1, first, 0, nothing_yet));
  other.join();
  EXPECT_EQ(first.unsynced_places, 0u);
  EXPECT_FALSE(memory_.ask(mark("k"), limit_, 1, second, 0, nothing_yet));
  EXPECT_EQ(second.unsynced_places, 1u);
}

// Its record was evicted while it had unsynced charges.
TEST_F(KeyMemoryTest, AnAnswerForAKeyWithoutARecordDoesNotSayThatNothingIsUnsynced) {
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 4, .reset_after = 9 * kSecond}, 10 * kSecond);
  EXPECT_EQ(ask("k").unsynced_places, 1u);
}

// Counting unsynced charges takes longer than everything else. What was granted here is known without counting.
TEST_F(KeyMemoryTest, CountsUnsyncedChargesOnlyIfItMatters) {
  int counts = 0;
  const auto spare = [&](std::int64_t cost) {
    std::int64_t left = -1;
    const auto unsynced = [&] {
      ++counts;
      return unsynced_;
    };
    memory_.admit_alone(mark("k"), limit_, cost, {}, 10 * kSecond, unsynced, [&](std::int64_t rest, Micros) {
      unsynced_ += cost;
      left = rest;
    });
    return left;
  };
  memory_.miss(mark("k"), limit_, 1, ask("k"), 0);
  EXPECT_EQ(spare(1), 4);
  EXPECT_EQ(spare(2), 2);
  EXPECT_EQ(counts, 0) << "the key has no unsynced charges but the two grants";
  EXPECT_EQ(spare(3), -1);
  EXPECT_EQ(counts, 1) << "before it is denied they are counted";
  unsynced_ = 0;  // they were written back
  memory_.recount_unsynced(mark("k"), limit_);
  EXPECT_EQ(spare(1), 4);
  EXPECT_EQ(counts, 2);
  unsynced_ = 4;  // this node's share has admitted some
  memory_.recount_unsynced(mark("k"), limit_);
  EXPECT_EQ(spare(2), -1);
  EXPECT_EQ(counts, 3);
}

TEST_F(KeyMemoryTest, GrantsOnlyThisNodesPart) {
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 3, .reset_after = 9 * kSecond}, 10 * kSecond);
  EXPECT_EQ(spare("k", 1, {.rank = 1, .nodes = 2}), KeyMemory::Alone::granted);
  EXPECT_EQ(spare("k", 1, {.rank = 1, .nodes = 2}), KeyMemory::Alone::denied);
}

// Calls use several connections, so the last reply to arrive need not be the newest.
TEST_F(KeyMemoryTest, IgnoresAReplyThatALaterOneOvertook) {
  const auto early = ask("k"), late = ask("k");
  memory_.note(mark("k"), limit_, 1, {.allowed = true, .limit = 5, .remaining = 0, .reset_after = 9 * kSecond}, 2'000,
               late, 0, 10 * kSecond);
  memory_.note(mark("k"), limit_, 1, {.allowed = true, .limit = 5, .remaining = 1, .reset_after = 9 * kSecond}, 1'000,
               early, 0, 10 * kSecond);
  EXPECT_EQ(spare("k", 1), KeyMemory::Alone::denied);
  EXPECT_EQ(spare("k", 0), KeyMemory::Alone::granted) << "nothing is in flight";
}

// The clock of Redis runs back by half a second: its replies look older, but they are not.
TEST_F(KeyMemoryTest, AnOlderReplyCountsIfItLeavesLess) {
  const Limit hundred = compile("100/hour").value();
  const auto note_at = [&](std::int64_t used, std::int64_t said_us, Micros reset) {
    memory_.note(mark("k"), hundred, 1, {.allowed = true, .limit = 100, .remaining = 100 - used, .reset_after = reset},
                 said_us, memory_.begin(10 * kSecond), 0, 10 * kSecond);
  };
  const auto granted = [&] {
    std::int64_t count = 0;
    const auto alone = [&] {
      return memory_.admit_alone(
          mark("k"), hundred, 1, {}, 10 * kSecond, [&] { return count; }, [&](std::int64_t, Micros) { ++count; });
    };
    while (alone() == KeyMemory::Alone::granted) {
    }
    memory_.recount_unsynced(mark("k"), hundred);
    return count;
  };
  note_at(10, 50'000'000, 3'000 * kSecond);
  note_at(80, 49'500'000, 3'000 * kSecond);
  EXPECT_EQ(granted(), 20);
  note_at(70, 49'600'000, 3'000 * kSecond);
  EXPECT_EQ(granted(), 20) << "it leaves more";
  note_at(95, 49'700'000, Micros{300'000});
  EXPECT_EQ(granted(), 20) << "all of it had recovered when the last reply was made";
  note_at(100, 49'800'000, 3'000 * kSecond);
  EXPECT_EQ(granted(), 0);
  note_at(30, 50'000'001, 3'000 * kSecond);
  EXPECT_EQ(granted(), 70) << "it is newer";
  note_at(50, 40'000'000, 3'000 * kSecond);
  EXPECT_EQ(granted(), 50) << "the clock of another server";
}

// After Redis is back, the share also decides until all nodes have written their charges back.
TEST_F(KeyMemoryTest, AShareStaysInUseWhileNodesDecideByShares) {
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 3, .reset_after = 9 * kSecond}, 10 * kSecond);
  memory_.set_sharing(true);
  EXPECT_TRUE(seed("k", limit_));
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 5, .reset_after = 9 * kSecond}, 10 * kSecond);
  EXPECT_FALSE(seed("k", limit_)) << "Redis does not have the charges of all";
  note("new", limit_, 1, {.allowed = true, .limit = 5, .remaining = 5, .reset_after = 9 * kSecond}, 10 * kSecond);
  EXPECT_FALSE(seed("new", limit_)) << "its share began before anything was known of it";
  memory_.set_sharing(false);
  EXPECT_EQ(seed("k", limit_)->remaining, 5);
}

// The key has unsynced charges, and a late reply is the first one from Redis: its share starts from both.
TEST_F(KeyMemoryTest, AShareThatHasNotBegunStartsFromALaterReply) {
  memory_.mark_unsynced(mark("k"), limit_);
  memory_.set_sharing(true);
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 3, .reset_after = 9 * kSecond}, 10 * kSecond);
  ASSERT_TRUE(seed("k", limit_));
  KeyMemory::Asked asked = memory_.begin(10 * kSecond);
  EXPECT_FALSE(memory_.ask(
      mark("begun"), limit_, 1, asked, 0, [] { return false; }, false, true));
  note("begun", limit_, 1, {.allowed = true, .limit = 5, .remaining = 3, .reset_after = 9 * kSecond}, 10 * kSecond);
  EXPECT_FALSE(seed("begun", limit_)) << "its share admitted it before Redis was asked";
}

// Two limits with one name, such as 5/minute and 50/day: what is used of the one says nothing about the other.
TEST_F(KeyMemoryTest, KeepsPeriodsApart) {
  const Limit day = compile("50/day", Algorithm::sliding_window).value();
  const Limit minute = compile("5/minute", Algorithm::sliding_window).value();
  note("wk", minute, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  note("wk", day, 1, {.allowed = true, .limit = 50, .remaining = 20, .reset_after = 9 * kSecond}, 10 * kSecond);
  EXPECT_EQ(memory_.known_usage(mark("wk"), minute, 10 * kSecond)->remaining, 0);
  EXPECT_EQ(memory_.known_usage(mark("wk"), day, 10 * kSecond)->remaining, 20);
  EXPECT_EQ(seed("wk", day)->remaining, 20);
  EXPECT_EQ(seed("wk", minute)->remaining, 0);
  EXPECT_TRUE(memory_.denial(mark("wk"), minute, 1, 11 * kSecond));
  memory_.drop(mark("wk"));
  EXPECT_FALSE(memory_.denial(mark("wk"), minute, 1, 11 * kSecond));
}

TEST_F(KeyMemoryTest, EvictsNoRecordWithACallInFlight) {
  const auto asked = ask("busy");
  for (int i = 0; i < 100'000; ++i) {
    note("k" + std::to_string(i), limit_, 1, {.allowed = true, .limit = 5, .remaining = 4}, kSecond);
  }
  EXPECT_EQ(spare("busy", 1), KeyMemory::Alone::busy);
  memory_.miss(mark("busy"), limit_, 1, asked, 0);
  EXPECT_EQ(spare("busy", 1), KeyMemory::Alone::granted);
}

// A key whose record was evicted has used at most what evicted records had used.
TEST_F(KeyMemoryTest, ARecordThatWasEvictedFreesNothing) {
  using enum KeyMemory::Alone;
  KeyMemory memory(4, {1, 2});  // one set
  const auto note = [&](std::string_view name, std::int64_t remaining, Micros reset, Micros now) {
    memory.note(memory.mark_of(name), limit_, 1,
                {.allowed = true, .limit = 5, .remaining = remaining, .reset_after = reset}, ++said_us_,
                memory.begin(now), 0, now);
  };
  const auto alone = [&](std::string_view name, std::int64_t cost, Micros now) {
    return memory.admit_alone(
        memory.mark_of(name), limit_, cost, {}, now, [] { return 0; }, [](std::int64_t, Micros) {});
  };
  EXPECT_EQ(alone("new", 5, kSecond), granted) << "nothing was evicted";
  note("k", 3, 10 * kSecond, kSecond);
  for (int i = 0; i < 8; ++i) note("a" + std::to_string(i), 4, 20 * kSecond, kSecond);
  EXPECT_EQ(alone("k", 4, kSecond), busy);
  EXPECT_EQ(alone("k", 3, kSecond), granted) << "2 of 5 may be used";
  note("full", 0, 10 * kSecond, kSecond);
  for (int i = 8; i < 16; ++i) note("a" + std::to_string(i), 4, 20 * kSecond, kSecond);
  EXPECT_EQ(alone("full", 1, kSecond), busy);
  EXPECT_EQ(alone("full", 5, 21 * kSecond), granted) << "all have recovered";
}

// Calls about four other keys of its set are in flight, so a key gets no record. Its own call may take all permits.
TEST_F(KeyMemoryTest, AKeyWithoutARecordIsBusyWhileACallIsInFlight) {
  using enum KeyMemory::Alone;
  KeyMemory memory(4, {1, 2});  // one set
  const auto ask = [&](std::string_view name, std::int64_t cost) {
    KeyMemory::Asked asked = memory.begin(kSecond);
    EXPECT_FALSE(memory.ask(memory.mark_of(name), limit_, cost, asked, 0, [] { return false; }));
    return asked;
  };
  const auto alone = [&](std::string_view name, std::int64_t cost) {
    return memory.admit_alone(
        memory.mark_of(name), limit_, cost, {}, kSecond, [] { return 0; }, [](std::int64_t, Micros) {});
  };
  const auto note = [&](std::string_view name, std::int64_t cost, const KeyMemory::Asked& asked) {
    memory.note(memory.mark_of(name), limit_, cost,
                {.allowed = true, .limit = 5, .remaining = 4, .reset_after = 9 * kSecond}, ++said_us_, asked, 0,
                kSecond);
  };
  std::array<KeyMemory::Asked, 4> others;
  for (std::size_t i = 0; i < 4; ++i) others[i] = ask("a" + std::to_string(i), 1);
  EXPECT_EQ(alone("other", 1), busy) << "no record";
  const auto first = ask("k", 3), second = ask("k", 1);
  EXPECT_EQ(alone("k", 1), busy) << "no record";
  for (std::size_t i = 0; i < 4; ++i) memory.miss(memory.mark_of("a" + std::to_string(i)), limit_, 1, others[i], 0);
  EXPECT_EQ(alone("k", 1), busy) << "a record, but nothing is known";
  note("k", 1, second);
  EXPECT_EQ(alone("k", 2), denied) << "4 are left, and 3 in flight";
  EXPECT_EQ(alone("k", 1), granted);
  memory.miss(memory.mark_of("k"), limit_, 3, first, 0);
  EXPECT_EQ(alone("k", 4), granted) << "nothing is in flight any more";
  EXPECT_EQ(alone("new", 5), granted);
}

TEST_F(KeyMemoryTest, KeepsADenialWhenALargerCostIsDenied) {
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  note("k", limit_, 2, denied(5 * kSecond, 8 * kSecond), 11 * kSecond);
  EXPECT_EQ(memory_.denial(mark("k"), limit_, 1, 12 * kSecond)->retry_after, kSecond);
  note("k", other_, 2, denied(5 * kSecond, 8 * kSecond), 11 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), other_, 1, 12 * kSecond)) << "that denial was of another limit";
}

TEST_F(KeyMemoryTest, GuessesWhatIsLeft) {
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 3, .reset_after = kSecond}, 10 * kSecond);
  const auto guess = memory_.guess(mark("k"), limit_, 1, 10 * kSecond);
  ASSERT_TRUE(guess);
  EXPECT_TRUE(guess->allowed);
  EXPECT_EQ(guess->remaining, 3);
  EXPECT_EQ(guess->reset_after, kSecond);
  EXPECT_EQ(memory_.guess(mark("k"), limit_, 1, 11 * kSecond)->remaining, 5) << "it is full again";
  EXPECT_FALSE(memory_.guess(mark("k"), limit_, 4, 10 * kSecond)) << "the wait is unknown";
  EXPECT_FALSE(memory_.guess(mark("k"), other_, 1, 10 * kSecond));
  EXPECT_FALSE(memory_.guess(mark("nobody"), limit_, 1, 10 * kSecond));
}

TEST_F(KeyMemoryTest, StartsAShareOnce) {
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 3, .reset_after = kSecond}, 10 * kSecond);
  const auto said = seed("k", limit_);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->remaining, 3);
  EXPECT_EQ(said->reset_at, 11 * kSecond);
  EXPECT_FALSE(seed("k", limit_)) << "later requests continue from there";
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 2}, 12 * kSecond);
  EXPECT_EQ(seed("k", limit_)->remaining, 2) << "Redis has answered again";
}

// Redis decides the key when it can, though shares of other keys are in use. So the share must know what is unsynced
// and what Redis said since.
TEST_F(KeyMemoryTest, AShareThatIsNotLastingBeginsAgain) {
  memory_.set_sharing(true);
  ask("k");
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 3, .reset_after = 9 * kSecond}, 10 * kSecond);
  EXPECT_EQ(seed("k", limit_, false)->remaining, 3);
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 1, .reset_after = 9 * kSecond}, 10 * kSecond);
  EXPECT_EQ(seed("k", limit_, false)->remaining, 1);
  ASSERT_TRUE(seed("k", limit_)) << "from now on it stays in use";
  EXPECT_FALSE(seed("k", limit_));
}

TEST_F(KeyMemoryTest, EvictsTheRecordThatRecoversFirst) {
  note("spent", limit_, 1, denied(3'000 * kSecond, 3'000 * kSecond), kSecond);
  for (int i = 0; i < 100'000; ++i) {
    note("k" + std::to_string(i), limit_, 1, {.allowed = true, .limit = 5, .remaining = 4}, kSecond);
  }
  EXPECT_TRUE(memory_.denial(mark("spent"), limit_, 1, 2 * kSecond));
}

TEST_F(KeyMemoryTest, ADenialUnderALowerVersionDoesNotLowerWhatIsUsed) {
  note("k", other_, 1, {.allowed = true, .limit = 6, .remaining = 0, .reset_after = 9 * kSecond}, Micros{0});
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), Micros{0});
  const auto said = seed("k", other_);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->remaining, 0);
  EXPECT_EQ(said->used, 6);
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 2, .reset_after = 9 * kSecond}, Micros{0});
  EXPECT_EQ(memory_.guess(mark("k"), limit_, 1, Micros{0})->remaining, 2) << "what is left is exact";
}

// This is all that the node has heard of the key. A higher version may be used up, too.
TEST_F(KeyMemoryTest, NothingLeftUnderALowerVersionIsNothingLeftUnderAHigherOne) {
  const Limit high = compile("50/minute").value();
  const auto alone = [&](std::string_view name) {
    return memory_.admit_alone(
        mark(name), high, 1, {}, kSecond, [] { return 0; }, [](std::int64_t, Micros) {});
  };
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), Micros{0});
  EXPECT_EQ(alone("k"), KeyMemory::Alone::denied);
  EXPECT_EQ(seed("k", limit_)->used, 5);
  EXPECT_EQ(seed("k", high)->used, 50) << "the share begins again, for the higher version";
  EXPECT_FALSE(seed("k", high));
  EXPECT_FALSE(seed("k", limit_));
  note("k", high, 1, {.allowed = true, .limit = 50, .remaining = 40, .reset_after = 9 * kSecond}, Micros{0});
  EXPECT_EQ(seed("k", high)->remaining, 40) << "now it knows";
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), Micros{0});
  EXPECT_EQ(seed("k", high)->remaining, 40) << "a denial under the lower version agrees with that";
  note("over", limit_, 1, denied(kSecond / 2, kSecond), Micros{0});
  EXPECT_EQ(alone("over"), KeyMemory::Alone::granted) << "it is full again";
}

}  // namespace
}  // namespace weir::fleet
