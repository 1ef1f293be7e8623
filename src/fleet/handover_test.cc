// Who decides after an outage, and when Redis decides alone again.

#include "fleet/handover.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::fleet {
namespace {

class HandoverTest : public ::testing::Test {
 protected:
  // A heartbeat is answered before each call.
  void turn(bool is_open, bool is_synced, std::vector<Handover::Other> others = {}) {
    now_ += Micros{100'000};
    redis_ms_ += 100;
    handover_.turn(
        {.is_any_open = is_open, .is_synced = is_synced, .beats = ++beats_, .redis_ms = redis_ms_, .others = others},
        now_);
  }
  Handover::Other other(bool is_synced, std::int64_t age_ms = 0) const { return {redis_ms_ + 100 - age_ms, is_synced}; }

  KeyMemory memory_{100, {1, 2}};
  Handover handover_{memory_};
  Micros now_{1'000'000};
  std::int64_t redis_ms_ = 5'000'000;
  std::uint64_t beats_ = 0;
};

TEST_F(HandoverTest, EndsWhenThisNodeAndAllOthersHaveWrittenBack) {
  EXPECT_FALSE(handover_.is_on());
  handover_.begin();
  EXPECT_TRUE(handover_.is_on());
  turn(true, false, {other(true)});
  turn(true, true, {other(true)});
  EXPECT_TRUE(handover_.is_on()) << "a breaker is open";
  turn(false, false, {other(true)});
  turn(false, false, {other(true)});
  EXPECT_TRUE(handover_.is_on()) << "this node has not written its charges back";
  EXPECT_FALSE(handover_.reports_synced(false, now_));
  turn(false, true, {other(true), other(false)});
  EXPECT_TRUE(handover_.is_on()) << "another node has not";
  EXPECT_TRUE(handover_.reports_synced(true, now_)) << "otherwise the nodes would wait for each other";
  turn(false, true, {other(true), other(true, 2'000)});
  EXPECT_TRUE(handover_.is_on()) << "what it reported before Redis was back does not count";
  turn(false, true, {other(true), other(true)});
  EXPECT_FALSE(handover_.is_on());
}

TEST_F(HandoverTest, BeginsAgainWhenABreakerOpensBeforeItsEnd) {
  handover_.begin();
  turn(true, true);
  turn(false, true);
  handover_.begin();
  turn(false, true);
  EXPECT_TRUE(handover_.is_on());
  turn(false, true);
  turn(false, true);
  turn(false, true);
  EXPECT_FALSE(handover_.is_on());
}

// Ten nodes with 100,000 keys each take twenty seconds to write back, since Redis spends half of its time on it.
TEST_F(HandoverTest, WaitsAMinuteForALiveNodeThatStillWritesBack) {
  handover_.begin();
  turn(true, true);
  for (int i = 0; i < 600; ++i) turn(false, true, {other(false)});
  EXPECT_TRUE(handover_.is_on());
  for (int i = 0; i < 2; ++i) turn(false, true, {other(false)});
  EXPECT_FALSE(handover_.is_on());
}

TEST_F(HandoverTest, ConcernsTheSlotsOfTheServerThatWasDown) {
  handover_.begin(7);
  EXPECT_TRUE(handover_.concerns(7));
  EXPECT_FALSE(handover_.concerns(8));
  handover_.begin(8);
  EXPECT_TRUE(handover_.concerns(8));
  for (int i = 0; i < 4; ++i) turn(false, true);
  EXPECT_FALSE(handover_.concerns(7));
  handover_.begin();
  EXPECT_TRUE(handover_.concerns(9));
}

}  // namespace
}  // namespace weir::fleet
