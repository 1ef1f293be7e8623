// Batches of unsynced charges: each is sent until it is answered, and the reply is remembered.

#include "fleet/write_back.h"

#include <gtest/gtest.h>

#include "fleet/key_name.h"

namespace weir::fleet {
namespace {

constexpr Micros kNow{1'000'000};

class WriteBacksTest : public ::testing::Test {
 protected:
  void mark_unsynced(const std::string& key, std::int64_t cost) {
    const Charge charge{.key = key, .limit = &limit_};
    const KeyName name(charge);
    unsynced_.add({name, memory_.mark_of(name)}, limit_, cost, kNow + Micros{1'000'000});
  }
  std::vector<Decision> left(std::int64_t remaining, std::size_t count = 1) const {
    return std::vector<Decision>(
        count, {.allowed = true, .limit = 10, .remaining = remaining, .reset_after = Micros{60'000'000}});
  }
  std::int64_t unsynced(const std::string& key) {
    const KeyName name(Charge{.key = key, .limit = &limit_});
    return unsynced_.cost_of({name, memory_.mark_of(name)}, limit_, kNow);
  }

  const Limit limit_ = compile("10/hour", Algorithm::fixed_window).value();
  KeyMemory memory_{100, {1, 2}};
  UnsyncedCharges unsynced_{100};
  WriteBacks backs_{unsynced_, memory_};
};

TEST_F(WriteBacksTest, SendsAnUnansweredBatchAgainWithItsId) {
  mark_unsynced("a", 3);
  auto batch = backs_.take(10, kNow);
  ASSERT_TRUE(batch);
  const std::string id = batch->id;
  EXPECT_EQ(unsynced("a"), 3) << "Redis has not confirmed it";
  backs_.finish(*std::move(batch), {.is_in_doubt = true}, kNow);
  EXPECT_FALSE(backs_.is_empty());
  mark_unsynced("a", 2);
  batch = backs_.take(10, kNow);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->id, id);
  EXPECT_EQ(batch->charges[0].cost, 3) << "the same charges";
  EXPECT_EQ(unsynced("a"), 5);
  backs_.finish(*std::move(batch), {State::answered, false, left(7), 1}, kNow);
  EXPECT_EQ(unsynced("a"), 2);
  EXPECT_EQ(backs_.written(), 3u);
  batch = backs_.take(10, kNow);
  ASSERT_TRUE(batch);
  EXPECT_NE(batch->id, id);
  backs_.finish(*std::move(batch), {State::answered, false, left(5), 2}, kNow);
  EXPECT_TRUE(unsynced_.is_synced() && backs_.is_empty());
}

// A batch that was not sent does not count as one: a refund in between lowers what is sent next.
TEST_F(WriteBacksTest, TakesAnUnsentBatchApart) {
  mark_unsynced("a", 5);
  auto batch = backs_.take(10, kNow);
  ASSERT_TRUE(batch);
  mark_unsynced("a", -3);
  EXPECT_EQ(unsynced("a"), 5) << "Redis may have all of it";
  backs_.finish(*std::move(batch), {}, kNow);
  mark_unsynced("a", -1);
  mark_unsynced("a", 2);
  batch = backs_.take(10, kNow);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->charges[0].cost, 3);
  mark_unsynced("a", -1);
  EXPECT_FALSE(backs_.take(10, kNow)) << "nothing is unsynced";
  backs_.finish(*std::move(batch), {State::answered, false, left(7), 1}, kNow);
  EXPECT_EQ(unsynced("a"), 0) << "what was refunded after it was sent stays charged";
  EXPECT_TRUE(unsynced_.is_synced() && backs_.is_empty());
}

TEST_F(WriteBacksTest, StoresWhatRedisAnswered) {
  mark_unsynced("a", 3);
  auto batch = backs_.take(10, kNow);
  backs_.finish(*std::move(batch), {State::answered, false, left(4), 1}, kNow);
  const KeyMark mark = memory_.mark_of(KeyName(Charge{.key = "a", .limit = &limit_}));
  EXPECT_EQ(memory_.known_usage(mark, limit_, kNow)->remaining, 4);
}

TEST_F(WriteBacksTest, ARequestCarriesTheChargesOfItsKeysUnlessTheyAreInFlight) {
  mark_unsynced("a", 3);
  mark_unsynced("b", 1);
  const Charge one{.key = "a", .limit = &limit_};
  EXPECT_FALSE(backs_.take_for({&one, 1}, 0, kNow).batch);
  auto mine = backs_.take_for({&one, 1}, 1, kNow);
  ASSERT_TRUE(mine.batch);
  EXPECT_EQ(mine.batch->charges.size(), 1u);
  mark_unsynced("a", 1);
  const auto none = backs_.take_for({&one, 1}, 1, kNow);
  EXPECT_TRUE(!none.batch && none.are_elsewhere);
  backs_.finish(*std::move(mine.batch), {State::answered, false, left(7), 1}, kNow);
  EXPECT_TRUE(backs_.take_for({&one, 1}, 1, kNow).batch);
}

TEST_F(WriteBacksTest, SendsARefusedBatchKeyByKey) {
  for (const char* const key : {"a", "b", "c"}) mark_unsynced(key, 1);
  auto batch = backs_.take(10, kNow);
  ASSERT_EQ(batch->unsynced.size(), 3u);
  backs_.finish(*std::move(batch), {State::refused, false, {}, 0}, kNow);
  for (int i = 0; i < 3; ++i) {
    auto one = backs_.take(10, kNow);
    ASSERT_TRUE(one && one->unsynced.size() == 1);
    backs_.finish(*std::move(one), {i == 0 ? State::refused : State::answered, false, left(9), 1}, kNow);
  }
  EXPECT_TRUE(backs_.is_empty() && unsynced_.is_synced());
  EXPECT_EQ(backs_.written(), 2u);
}

TEST_F(WriteBacksTest, WritesNoChargeThatHasRecovered) {
  mark_unsynced("a", 3);
  EXPECT_FALSE(backs_.take(10, kNow + Micros{2'000'000}));
  EXPECT_TRUE(unsynced_.is_synced());
}

// Redis may have applied all of them or none. So they are sent again as one batch with the same id, in the same
// order.
TEST_F(WriteBacksTest, SendsBatchesThatSharedATicketAgainTogether) {
  const auto ticket = std::make_shared<const std::string>("shared");
  std::vector<WriteBack> batches;
  for (const char* const key : {"a", "b", "c"}) {
    mark_unsynced(key, 2);
    const Charge charge{.key = key, .limit = &limit_};
    auto mine = backs_.take_for({&charge, 1}, 1, kNow);
    ASSERT_TRUE(mine.batch);
    batches.push_back(*std::move(mine.batch));
  }
  for (const std::uint16_t place : std::initializer_list<std::uint16_t>{2, 0, 1}) {
    EXPECT_FALSE(backs_.take(100, kNow)) << "one is missing";
    backs_.finish(std::move(batches[place]), {.is_in_doubt = true, .shared = {ticket, place, 3}}, kNow);
    EXPECT_FALSE(backs_.is_empty());
  }
  auto again = backs_.take(100, kNow);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, "shared");
  ASSERT_EQ(again->charges.size(), 3u);
  EXPECT_EQ(again->charges[0].key, "a");
  EXPECT_EQ(again->charges[2].key, "c");
  backs_.finish(*std::move(again), {State::answered, false, left(8, 3), 1}, kNow);
  EXPECT_TRUE(backs_.is_empty() && unsynced_.is_synced());
}

TEST(WriteBackRest, LeavesRedisHalfOfItsTimeAndMoreInOverload) {
  constexpr Micros kTook{1'000};
  EXPECT_EQ(rest_after_write_back(kTook, 0, false), kTook);
  EXPECT_EQ(rest_after_write_back(kTook, 2, false), 5 * kTook) << "three nodes have half of it together";
  EXPECT_EQ(rest_after_write_back(kTook, 0, true), 19 * kTook);
  EXPECT_EQ(rest_after_write_back(kTook, 2, true), 59 * kTook);
}

}  // namespace
}  // namespace weir::fleet
