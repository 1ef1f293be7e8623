// Tests golden values of the cluster specification.
#include "redis/slot.h"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

TEST(RedisSlot, IsCrc16OfTheKey) {
  EXPECT_EQ(crc16("123456789"), 0x31C3);
  EXPECT_EQ(slot_of("123456789"), 12'739);
  EXPECT_EQ(slot_of("foo"), 12'182);
  EXPECT_EQ(slot_of(""), 0);
}

TEST(RedisSlot, IsThatOfTheHashTagAlone) {
  EXPECT_EQ(slot_of("{user1000}.following"), 3'443);
  EXPECT_EQ(slot_of("{user1000}.followers"), slot_of("user1000"));
  EXPECT_EQ(slot_of("{x}1"), 16'287);
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
}

TEST(RedisSlot, IsThatOfTheWholeKeyWhereTheTagIsEmptyOrOpen) {
  EXPECT_EQ(slot_of("foo{}{bar}"), crc16("foo{}{bar}") % kSlots);
  EXPECT_EQ(slot_of("foo{bar"), crc16("foo{bar") % kSlots);
  EXPECT_EQ(slot_of("foo}bar{"), crc16("foo}bar{") % kSlots);
}

}  // namespace
}  // namespace weir::redis
