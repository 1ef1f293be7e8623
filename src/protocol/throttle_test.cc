// CL.THROTTLE's arguments, its errors as redis-cell words them, and its five integers.
#include "protocol/throttle.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir {
namespace {

using Args = std::vector<std::string_view>;

std::string error_of(const Args& args) {
  const auto throttle = parse_throttle(args);
  return throttle ? "no error" : throttle.error().message;
}

constexpr const char* kUsage =
    "Cell error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";

TEST(Throttle, IsATokenBucketOfMaxBurstPlusOne) {
  const auto throttle = parse_throttle(Args{"user123", "15", "30", "60"});
  ASSERT_TRUE(throttle);
  EXPECT_EQ(throttle->key, "user123");
  EXPECT_EQ(throttle->cost, 1);
  Quota expected;
  expected.algorithm = Algorithm::token_bucket;
  expected.permits = 30;
  expected.period = Micros{60'000'000};
  expected.burst = 16;
  EXPECT_EQ(throttle->quota, expected);
}

TEST(Throttle, TakesAQuantityOfAnySign) {
  EXPECT_EQ(parse_throttle(Args{"k", "1", "1", "1", "5"})->cost, 5);
  EXPECT_EQ(parse_throttle(Args{"k", "1", "1", "1", "0"})->cost, 0);
  EXPECT_EQ(parse_throttle(Args{"k", "1", "1", "1", "-3"})->cost, -3);
  EXPECT_EQ(parse_throttle(Args{"k", "1", "1", "1", "9007199254740992"})->cost, std::int64_t{1} << 53);
  EXPECT_EQ(parse_throttle(Args{"k", "+1", "01", "1", "+2"})->cost, 2);
}

TEST(Throttle, WordsItsErrorsAsRedisCellDoes) {
  EXPECT_EQ(error_of({}), kUsage);
  EXPECT_EQ(error_of({"k", "1", "1"}), kUsage);
  EXPECT_EQ(error_of({"k", "1", "1", "1", "1", "1"}), kUsage);
  for (const char* bad : {"x", "", "1.5", "1 ", "-", "+", "+-1", "9223372036854775808"}) {
    EXPECT_EQ(error_of({"k", bad, "1", "1"}), std::string("Cell error: Couldn't parse as integer: ") + bad);
    EXPECT_EQ(error_of({"k", "1", "1", "1", bad}), std::string("Cell error: Couldn't parse as integer: ") + bad);
  }
  EXPECT_EQ(error_of({"k", "1", "0", "1"}), "Cell error: Zero rates are not supported");
  EXPECT_EQ(error_of({"k", "1", "1", "0"}), "Cell error: Zero rates are not supported");
}

TEST(Throttle, RefusesWhatNoBucketCanBe) {
  EXPECT_EQ(error_of({"k", "-1", "1", "1"}), "max_burst is -1, but must be between 0 and 1099511627775");
  EXPECT_EQ(error_of({"k", "9223372036854775807", "1", "1"}),
            "max_burst is 9223372036854775807, but must be between 0 and 1099511627775");
  EXPECT_EQ(error_of({"k", "1", "-1", "1"}), "count per period is -1, but must be between 1 and 1099511627776");
  EXPECT_EQ(error_of({"k", "1", "1", "-1"}), "period is -1, but must be between 1 and 315576000");
  EXPECT_EQ(error_of({"k", "1", "1", "9223372036854775807"}),
            "period is 9223372036854775807, but must be between 1 and 315576000");
}

TEST(Throttle, BoundsKeyAndQuantity) {
  EXPECT_EQ(error_of({"", "1", "1", "1"}), "the key is empty; name what is to be limited, such as user:42");
  const std::string longest(4096, 'k');
  EXPECT_EQ(error_of({longest, "1", "1", "1"}), "no error");
  EXPECT_EQ(error_of({longest + "k", "1", "1", "1"}),
            "the key has 4097 bytes, at most 4096 are accepted; send a hash of it instead");
  for (const char* beyond : {"9007199254740993", "-9007199254740993", "9223372036854775807"}) {
    EXPECT_NE(error_of({"k", "1", "1", "1", beyond}).find("beyond 2^53"), std::string::npos) << beyond;
  }
}

TEST(Throttle, RepeatsOnlyABitOfALongArgument) {
  EXPECT_LT(error_of({"k", std::string(100'000, 'x'), "1", "1"}).size(), 120u);
}

TEST(Throttle, RoundsSecondsUp) {
  using Reply = std::array<std::int64_t, 5>;
  EXPECT_EQ(throttle_reply({true, 16, 15, Micros{0}, Micros{2'000'000}, Micros{0}}), (Reply{0, 16, 15, -1, 2}));
  EXPECT_EQ(throttle_reply({true, 5, 1, Micros{0}, Micros{3'900'000}, Micros{0}}), (Reply{0, 5, 1, -1, 4}));
  EXPECT_EQ(throttle_reply({true, 5, 5, Micros{0}, Micros{0}, Micros{0}}), (Reply{0, 5, 5, -1, 0}));
  EXPECT_EQ(throttle_reply({false, 1, 0, Micros{1}, Micros{1}, Micros{0}}), (Reply{1, 1, 0, 1, 1}));
  EXPECT_EQ(throttle_reply({false, 5, 5, kNever, Micros{0}, Micros{0}}), (Reply{1, 5, 5, -1, 0}));
}

}  // namespace
}  // namespace weir
