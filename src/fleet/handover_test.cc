// Who decides after an outage, and when Redis decides alone again.

#include "fleet/handover.h"

#include <gtest/gtest.h>

#include <optional>
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

// Requests that began after the return of Redis do not delay the end, so it comes under constant load, too. Those from
// before do: if Redis does not answer them, they become unsynced.
TEST_F(HandoverTest, WaitsForPendingRequestsFromBeforeTheReturn) {
  std::optional<Handover::Pending> before, after;
  for (int outage = 0; outage < 3; ++outage) {
    handover_.begin();
    before.emplace(handover_);
    after.reset();  // it was pending since the last return
    turn(true, handover_.is_none_pending());
    for (int i = 0; i < 4; ++i) turn(false, handover_.is_none_pending());
    EXPECT_TRUE(handover_.is_on());
    EXPECT_FALSE(handover_.reports_synced(handover_.is_none_pending(), now_));
    after.emplace(handover_);
    before.reset();
    for (int i = 0; i < 2; ++i) turn(false, handover_.is_none_pending());
    EXPECT_FALSE(handover_.is_on());
  }
}

// A request is pending while Redis returns and fails and returns again.
TEST_F(HandoverTest, WaitsForAPendingRequestFromBeforeTheLastReturn) {
  handover_.begin();
  const Handover::Pending first(handover_);
  std::optional<Handover::Pending> second;
  for (int outage = 0; outage < 4; ++outage) {
    handover_.begin();
    turn(true, handover_.is_none_pending());
    turn(false, handover_.is_none_pending());
    if (outage == 1) second.emplace(handover_);
    for (int i = 0; i < 3; ++i) turn(false, handover_.is_none_pending());
    EXPECT_TRUE(handover_.is_on());
  }
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

// A node that starts after an outage knows nothing of it.
TEST_F(HandoverTest, BeginsAtAStartIfAnotherNodeMayHaveUnsyncedCharges) {
  const auto meet = [](std::vector<Handover::Other> others, Micros now = Micros{7'000}) {
    KeyMemory memory(100, {1, 2});
    Handover handover(memory);
    handover.meet(others, 5'000'000, Micros{5'000'000}, Micros{7'000});
    if (now != Micros{7'000}) handover.meet({{{5'004'000, false, 9}}}, 5'004'000, Micros{5'000'000}, now);
    return handover.is_on();
  };
  EXPECT_FALSE(meet({})) << "it is alone";
  EXPECT_FALSE(meet({{4'999'990, true, 1}, {4'998'900, true, 2}}));
  EXPECT_TRUE(meet({{4'999'990, true, 1}, {4'999'990, false, 2}}));
  EXPECT_TRUE(meet({{4'999'990, true, 1}, {4'997'000, true, 2}})) << "it may be cut off from Redis";
  EXPECT_TRUE(meet({}, Micros{4'007'000})) << "the other one returns later";
  EXPECT_TRUE(meet({{4'999'990, true, 9}}, Micros{4'007'000})) << "its report was from before the start";
  EXPECT_FALSE(meet({{5'000'000, true, 9}}, Micros{4'007'000})) << "what it admits later is not from before the start";
  EXPECT_FALSE(meet({}, Micros{5'008'000})) << "it has not just started";
}

TEST_F(HandoverTest, ThatBeganAtAStartEndsWhenTheOthersHaveWrittenBack) {
  const std::vector<Handover::Other> others{{redis_ms_ + 100, true, 1}, {redis_ms_ + 100, false, 2}};
  handover_.meet(others, redis_ms_ + 100, Micros{5'000'000}, now_);
  EXPECT_TRUE(handover_.concerns(7));
  for (int i = 0; i < 5; ++i) turn(false, true, {other(true), other(false)});
  EXPECT_TRUE(handover_.is_on());
  EXPECT_TRUE(handover_.reports_synced(true, now_)) << "it has nothing to write back itself";
  turn(false, true, {other(true), other(true)});
  EXPECT_FALSE(handover_.is_on());
}

// It has unsynced charges from before its start.
TEST_F(HandoverTest, ReportsThatItIsSyncedWhenItHasBeen) {
  EXPECT_FALSE(handover_.reports_synced(false, now_));
  EXPECT_TRUE(handover_.reports_synced(true, now_));
  EXPECT_TRUE(handover_.reports_synced(false, now_)) << "what it admits while Redis decides is not of an outage";
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
