// Tests the arguments of the three commands, their errors in the original wording, and their five integers.
#include "protocol/throttle.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::protocol {
namespace {

using Args = std::vector<std::string_view>;

std::string throttle_error(const Args& args) {
  const auto throttle = parse_cell_throttle(args);
  return throttle ? "no error" : throttle.error().message;
}

constexpr const char* kUsage =
    "Cell error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";

TEST(Throttle, IsATokenBucketOfMaxBurstPlusOne) {
  const auto throttle = parse_cell_throttle(Args{"user123", "15", "30", "60"});
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

TEST(Throttle, TakesAQuantityFromZeroOn) {
  EXPECT_EQ(parse_cell_throttle(Args{"k", "1", "1", "1", "5"})->cost, 5);
  EXPECT_EQ(parse_cell_throttle(Args{"k", "1", "1", "1", "0"})->cost, 0);
  EXPECT_EQ(parse_cell_throttle(Args{"k", "1", "1", "1", "-0"})->cost, 0);
  EXPECT_EQ(parse_cell_throttle(Args{"k", "1", "1", "1", "9007199254740992"})->cost, std::int64_t{1} << 53);
  EXPECT_EQ(parse_cell_throttle(Args{"k", "+1", "01", "1", "+2"})->cost, 2);
}

TEST(Throttle, WordsItsErrorsAsRedisCellDoes) {
  EXPECT_EQ(throttle_error({}), kUsage);
  EXPECT_EQ(throttle_error({"k", "1", "1"}), kUsage);
  EXPECT_EQ(throttle_error({"k", "1", "1", "1", "1", "1"}), kUsage);
  for (const char* bad : {"x", "", "1.5", "1 ", "-", "+", "+-1", "9223372036854775808"}) {
    EXPECT_EQ(throttle_error({"k", bad, "1", "1"}), std::string("Cell error: Couldn't parse as integer: ") + bad);
    EXPECT_EQ(throttle_error({"k", "1", "1", "1", bad}), std::string("Cell error: Couldn't parse as integer: ") + bad);
  }
  EXPECT_EQ(throttle_error({"k", "1", "0", "1"}), "Cell error: Zero rates are not supported");
  EXPECT_EQ(throttle_error({"k", "1", "1", "0"}), "Cell error: Zero rates are not supported");
}

TEST(Throttle, RefundsNothing) {
  const std::string refunds = "; to refund, use WEIR.LIMIT with a COST below 0";
  for (const char* below : {"-1", "-3", "-9007199254740993", "-9223372036854775808"}) {
    EXPECT_EQ(throttle_error({"k", "1", "1", "1", below}),
              "Cell error: Negative quantities are not supported" + refunds);
    EXPECT_EQ(parse_crab_throttle(Args{"k", "1", "1", "1", below}).error().message,
              "negative quantity: " + std::string(below) + refunds);
    EXPECT_EQ(parse_gcra(Args{"k", "1", "1", "1", "TOKENS", below}).error().message,
              "value is out of range: TOKENS must be a whole number of at least 0, found '" + std::string(below) + "'" +
                  refunds);
    EXPECT_EQ(parse_quantity(below), std::nullopt) << "nor if the bucket is known";
  }
}

TEST(Throttle, RefusesImpossibleBuckets) {
  EXPECT_EQ(throttle_error({"k", "-1", "1", "1"}), "max_burst is -1, but must be between 0 and 1099511627775");
  EXPECT_EQ(throttle_error({"k", "9223372036854775807", "1", "1"}),
            "max_burst is 9223372036854775807, but must be between 0 and 1099511627775");
  EXPECT_EQ(throttle_error({"k", "1", "-1", "1"}), "count per period is -1, but must be between 1 and 1099511627776");
  EXPECT_EQ(throttle_error({"k", "1", "1", "-1"}), "period is -1, but must be between 1 and 315576000");
  EXPECT_EQ(throttle_error({"k", "1", "1", "9223372036854775807"}),
            "period is 9223372036854775807, but must be between 1 and 315576000");
}

TEST(Throttle, BoundsKeyAndQuantity) {
  EXPECT_EQ(throttle_error({"", "1", "1", "1"}), "the key is empty; name what is to be limited, such as user:42");
  const std::string longest(4096, 'k');
  EXPECT_EQ(throttle_error({longest, "1", "1", "1"}), "no error");
  EXPECT_EQ(throttle_error({longest + "k", "1", "1", "1"}),
            "the key has 4097 bytes, at most 4096 are accepted; send a hash of it instead");
  for (const char* beyond : {"9007199254740993", "9223372036854775807"}) {
    EXPECT_NE(throttle_error({"k", "1", "1", "1", beyond}).find("-2^53 to 2^53"), std::string::npos) << beyond;
  }
}

TEST(Throttle, RepeatsOnlyTheBeginningOfALongArgument) {
  EXPECT_LT(throttle_error({"k", std::string(100'000, 'x'), "1", "1"}).size(), 120u);
}

TEST(Throttle, RoundsSecondsUp) {
  using Reply = std::array<std::int64_t, 5>;
  EXPECT_EQ(cell_reply({true, 16, 15, Micros{0}, Micros{2'000'000}, Micros{0}}), (Reply{0, 16, 15, -1, 2}));
  EXPECT_EQ(cell_reply({true, 5, 1, Micros{0}, Micros{3'900'000}, Micros{0}}), (Reply{0, 5, 1, -1, 4}));
  EXPECT_EQ(cell_reply({true, 5, 5, Micros{0}, Micros{0}, Micros{0}}), (Reply{0, 5, 5, -1, 0}));
  EXPECT_EQ(cell_reply({false, 1, 0, Micros{1}, Micros{1}, Micros{0}}), (Reply{1, 1, 0, 1, 1}));
  EXPECT_EQ(cell_reply({false, 5, 5, kNever, Micros{0}, Micros{0}}), (Reply{1, 5, 5, -1, 0}));
}

TEST(Throttle, CountsAsThrottlecrabDoes) {
  const auto throttle = parse_crab_throttle(Args{"k", "3", "10", "60"});
  ASSERT_TRUE(throttle);
  EXPECT_EQ(throttle->quota.burst, 3);
  EXPECT_EQ(throttle->quota.permits, 10);
  EXPECT_EQ(throttle->cost, 1);
  const auto error = [](const Args& args) { return parse_crab_throttle(args).error().message; };
  EXPECT_EQ(error({"k", "x", "1", "1"}), "invalid max_burst: 'x' is not a whole number");
  EXPECT_EQ(error({"k", "1", "x", "1"}), "invalid count_per_period: 'x' is not a whole number");
  EXPECT_EQ(error({"k", "1", "1", "x"}), "invalid period: 'x' is not a whole number");
  EXPECT_EQ(error({"k", "1", "1", "1", "x"}), "invalid quantity: 'x' is not a whole number");
  EXPECT_EQ(error({"k", "0", "1", "1"}), "max_burst is 0, but must be between 1 and 1099511627775");
  using Reply = std::array<std::int64_t, 5>;
  EXPECT_EQ(crab_reply({true, 3, 2, Micros{0}, Micros{6'000'000}, Micros{0}}), (Reply{1, 3, 2, 6, 0}));
  EXPECT_EQ(crab_reply({false, 3, 0, Micros{1}, Micros{17'999'999}, Micros{0}}), (Reply{0, 3, 0, 18, 1}));
  EXPECT_EQ(crab_reply({false, 3, 3, kNever, Micros{0}, Micros{0}}), (Reply{0, 3, 3, 0, -1}));
}

TEST(Gcra, TakesAPeriodWithAFractionAndTokensByName) {
  const auto gcra = parse_gcra(Args{"k", "4", "1", "0.5", "tokens", "3"});
  ASSERT_TRUE(gcra);
  EXPECT_EQ(gcra->quota.burst, 5);
  EXPECT_EQ(gcra->quota.period, Micros{500'000});
  EXPECT_EQ(gcra->cost, 3);
  EXPECT_EQ(parse_gcra(Args{"k", "4", "1", "60"})->quota.period, Micros{60'000'000});
  EXPECT_EQ(parse_gcra(Args{"k", "4", "1", "6e1"})->quota.period, Micros{60'000'000});
  EXPECT_EQ(parse_gcra(Args{"k", "4", "1", "0.1"})->quota.period, Micros{100'000});
  EXPECT_EQ(parse_gcra(Args{"k", "4", "1", "315576000"})->quota.period, kPeriodMax);
}

TEST(Gcra, WordsItsErrorsAsRedisDoes) {
  const auto error = [](const Args& args) {
    const auto gcra = parse_gcra(args);
    return gcra ? "no error" : gcra.error().message;
  };
  EXPECT_EQ(error({"k", "x", "1", "1"}), "value is not an integer or out of range: 'x' is not a whole number");
  EXPECT_EQ(error({"k", "1", "1.5", "1"}), "value is not an integer or out of range: '1.5' is not a whole number");
  for (const char* bad : {"x", "", "1s", "nan", "inf"}) {
    EXPECT_EQ(error({"k", "1", "1", bad}), std::string("value is not a valid float: '") + bad + "'");
  }
  for (const char* bad : {"0", "-1", "1e300", "315576001"}) {
    EXPECT_EQ(error({"k", "1", "1", bad}),
              std::string("period must be > 0 and at most 315576000 seconds, found '") + bad + "'");
  }
  EXPECT_EQ(error({"k", "1", "1", "1", "FOO"}), "syntax error: expected TOKENS, found 'FOO'");
  EXPECT_EQ(error({"k", "1", "1", "1", "TOKENSX", "1"}), "syntax error: expected TOKENS, found 'TOKENSX'");
  EXPECT_EQ(error({"k", "1", "1", "1", "TOKENS"}), "Missing TOKENS value");
  EXPECT_EQ(error({"k", "1", "1", "1", "TOKENS", "-1"}),
            "value is out of range: TOKENS must be a whole number of at least 0, found '-1'; to refund, use WEIR.LIMIT "
            "with a COST below 0");
  EXPECT_EQ(error({"k", "1", "1", "1", "TOKENS", "x"}),
            "value is out of range: TOKENS must be a whole number of at least 0, found 'x'");
  EXPECT_EQ(error({"k", "-1", "1", "1"}), "max_burst is -1, but must be between 0 and 1099511627775");
  EXPECT_EQ(error({"k", "1", "0", "1"}), "count per period is 0, but must be between 1 and 1099511627776");
  EXPECT_EQ(error({"", "1", "1", "1"}), "the key is empty; name what is to be limited, such as user:42");
}

TEST(Quantity, IsReadAloneAsWithTheRest) {
  EXPECT_EQ(parse_quantity("1"), 1);
  EXPECT_EQ(parse_quantity("12"), 12);
  EXPECT_EQ(parse_quantity("9007199254740992"), std::int64_t{1} << 53);
  for (const char* bad : {"", "x", "9007199254740993", "1.0"}) EXPECT_EQ(parse_quantity(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace weir::protocol
