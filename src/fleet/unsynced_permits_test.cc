// Permits granted without Redis: each is reported once, and released there if it was released meanwhile.
#include "fleet/unsynced_permits.h"

#include <gtest/gtest.h>

#include "algorithm/limit.h"

namespace weir::fleet {
namespace {

class UnsyncedPermitsTest : public ::testing::Test {
 protected:
  UnsyncedPermit permit(std::string key, std::string id, Micros until = kLater) const {
    return {.key = std::move(key), .id = std::move(id), .limit = limit_, .cost = 1, .until = until};
  }
  UnsyncedPermit take_one() {
    auto taken = unsynced_permits_.take(10, kNow);
    EXPECT_EQ(taken.size(), 1u);
    return taken.empty() ? UnsyncedPermit{} : taken[0];
  }

  static constexpr Micros kNow{1'000}, kLater{9'000};
  const Limit limit_ = compile("10 concurrent for 5min", Algorithm::concurrency).value();
  UnsyncedPermits unsynced_permits_{3};
};

TEST_F(UnsyncedPermitsTest, ReturnsEachPermitOnce) {
  EXPECT_TRUE(unsynced_permits_.is_empty());
  unsynced_permits_.add(permit("k", "1"));
  unsynced_permits_.add(permit("k1", ""));
  EXPECT_FALSE(unsynced_permits_.is_empty());
  const auto taken = unsynced_permits_.take(10, kNow);
  ASSERT_EQ(taken.size(), 2u) << "the same text, but divided differently into key and id";
  EXPECT_TRUE(unsynced_permits_.take(10, kNow).empty());
  for (const UnsyncedPermit& one : taken) EXPECT_FALSE(unsynced_permits_.finish(one, true));
  EXPECT_TRUE(unsynced_permits_.take(10, kNow).empty());
  EXPECT_TRUE(unsynced_permits_.is_empty());
}

TEST_F(UnsyncedPermitsTest, ReturnsAgainWhatRedisDidNotGet) {
  unsynced_permits_.add(permit("k", "1"));
  EXPECT_FALSE(unsynced_permits_.finish(take_one(), false));
  EXPECT_EQ(take_one().id, "1");
}

TEST_F(UnsyncedPermitsTest, ReturnsNoPermitThatWasReleasedOrHasExpired) {
  unsynced_permits_.add(permit("k", "1"));
  unsynced_permits_.add(permit("k", "2"));
  unsynced_permits_.add(permit("other", "3", kNow));
  unsynced_permits_.release("k", "1");
  unsynced_permits_.release("k", "unknown");
  EXPECT_EQ(take_one().id, "2");
  unsynced_permits_.add(permit("k", "4"));
  unsynced_permits_.forget("k");
  EXPECT_TRUE(unsynced_permits_.take(10, kNow).empty());
}

TEST_F(UnsyncedPermitsTest, ReportsAReleaseWhileThePermitIsInFlight) {
  for (const bool is_known : {true, false}) {
    unsynced_permits_.add(permit("k", "1"));
    const UnsyncedPermit one = take_one();
    unsynced_permits_.release("k", "1");
    EXPECT_TRUE(unsynced_permits_.finish(one, is_known)) << "Redis may have the permit although its reply was lost";
    EXPECT_TRUE(unsynced_permits_.take(10, kNow).empty());
  }
  unsynced_permits_.add(permit("k", "1"));
  const UnsyncedPermit one = take_one();
  unsynced_permits_.forget("k");
  EXPECT_TRUE(unsynced_permits_.finish(one, true));
}

TEST_F(UnsyncedPermitsTest, ReturnsARenewedPermitAgain) {
  unsynced_permits_.add(permit("k", "1"));
  const UnsyncedPermit one = take_one();
  unsynced_permits_.add(permit("k", "1", kLater + kNow));
  EXPECT_FALSE(unsynced_permits_.finish(one, true));
  EXPECT_EQ(take_one().until, kLater + kNow);
}

TEST_F(UnsyncedPermitsTest, IsBounded) {
  for (int i = 0; i < 10; ++i) unsynced_permits_.add(permit("k", std::to_string(i)));
  EXPECT_EQ(unsynced_permits_.take(10, kNow).size(), 3u);
  for (int i = 0; i < 10; ++i) {
    unsynced_permits_.add(permit("other", "1"));
    unsynced_permits_.release("other", "1");
  }
  EXPECT_TRUE(unsynced_permits_.take(10, kNow).empty());
}

}  // namespace
}  // namespace weir::fleet
