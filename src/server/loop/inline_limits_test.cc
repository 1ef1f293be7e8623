// Tests the cache of limits that checks send: what it keeps, and that invalid ones take no space.
#include "server/loop/inline_limits.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::server::loop {
namespace {

TEST(InlineLimits, CacheInvalidTextsButNoLongOnes) {
  InlineLimits limits;
  EXPECT_FALSE(limits.compile("5/minuet", std::nullopt));
  EXPECT_EQ(limits.size(), 1u);
  const Result<Limit>& longest = limits.compile("5/minute" + std::string(248, 'x'), std::nullopt);
  ASSERT_FALSE(longest);
  EXPECT_LE(longest.error().message.size(), 1'000u) << "it is remembered";
  EXPECT_EQ(limits.size(), 2u);
  for (const std::size_t size : {std::size_t{257}, std::size_t{1} << 20}) {
    const Result<Limit>& refused = limits.compile(std::string(size, '5'), Algorithm::sliding_log);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "the limit has " + std::to_string(size) + " bytes; at most 256 are allowed");
  }
  EXPECT_EQ(limits.size(), 2u);
  EXPECT_TRUE(limits.compile("5/minute", std::nullopt));
}

}  // namespace
}  // namespace weir::server::loop
