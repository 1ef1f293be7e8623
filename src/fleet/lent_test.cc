// Permits granted without Redis: each is reported once, and released there if it was released meanwhile.
#include "fleet/lent.h"

#include <gtest/gtest.h>

#include "algorithm/limit.h"

namespace weir {
namespace {

class LentTest : public ::testing::Test {
 protected:
  LentPermit permit(std::string key, std::string id, Micros until = kLater) const {
    return {.key = std::move(key), .id = std::move(id), .limit = limit_, .cost = 1, .until = until};
  }
  LentPermit take_one() {
    auto taken = lent_.take(10, kNow);
    EXPECT_EQ(taken.size(), 1u);
    return taken.empty() ? LentPermit{} : taken[0];
  }

  static constexpr Micros kNow{1'000}, kLater{9'000};
  const Limit limit_ = compile("10 concurrent for 5min", Algorithm::concurrency).value();
  Lent lent_{3};
};

TEST_F(LentTest, TellsOfEachOnce) {
  EXPECT_TRUE(lent_.is_empty());
  lent_.add(permit("k", "1"));
  lent_.add(permit("k1", ""));
  EXPECT_FALSE(lent_.is_empty());
  const auto taken = lent_.take(10, kNow);
  ASSERT_EQ(taken.size(), 2u) << "a key and an id are not one word";
  EXPECT_TRUE(lent_.take(10, kNow).empty());
  for (const LentPermit& one : taken) EXPECT_FALSE(lent_.told(one, true));
  EXPECT_TRUE(lent_.take(10, kNow).empty());
  EXPECT_TRUE(lent_.is_empty());
}

TEST_F(LentTest, TellsAgainWhatWasToldInVain) {
  lent_.add(permit("k", "1"));
  EXPECT_FALSE(lent_.told(take_one(), false));
  EXPECT_EQ(take_one().id, "1");
}

TEST_F(LentTest, DoesNotTellOfWhatWasReleasedOrHasLapsed) {
  lent_.add(permit("k", "1"));
  lent_.add(permit("k", "2"));
  lent_.add(permit("other", "3", kNow));
  lent_.release("k", "1");
  lent_.release("k", "unknown");
  EXPECT_EQ(take_one().id, "2");
  lent_.add(permit("k", "4"));
  lent_.forget("k");
  EXPECT_TRUE(lent_.take(10, kNow).empty());
}

TEST_F(LentTest, SaysThatOneWasReleasedWhileItWasTold) {
  for (const bool is_known : {true, false}) {
    lent_.add(permit("k", "1"));
    const LentPermit one = take_one();
    lent_.release("k", "1");
    EXPECT_TRUE(lent_.told(one, is_known)) << "it may be known: who asked may not have heard the answer";
    EXPECT_TRUE(lent_.take(10, kNow).empty());
  }
  lent_.add(permit("k", "1"));
  const LentPermit one = take_one();
  lent_.forget("k");
  EXPECT_TRUE(lent_.told(one, true));
}

TEST_F(LentTest, TellsThatOneLastsLonger) {
  lent_.add(permit("k", "1"));
  const LentPermit one = take_one();
  lent_.add(permit("k", "1", kLater + kNow));
  EXPECT_FALSE(lent_.told(one, true));
  EXPECT_EQ(take_one().until, kLater + kNow);
}

TEST_F(LentTest, KeepsSoManyAndNoMore) {
  for (int i = 0; i < 10; ++i) lent_.add(permit("k", std::to_string(i)));
  EXPECT_EQ(lent_.take(10, kNow).size(), 3u);
  for (int i = 0; i < 10; ++i) {
    lent_.add(permit("other", "1"));
    lent_.release("other", "1");
  }
  EXPECT_TRUE(lent_.take(10, kNow).empty());
}

}  // namespace
}  // namespace weir
