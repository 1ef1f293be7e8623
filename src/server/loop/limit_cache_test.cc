// Tests the cache of limits that clients send: what it keeps, and that no limit moves while a turn may use it.
#include "server/loop/limit_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::server::loop {
namespace {

Limit limit_of(std::int64_t permits) {
  Limit limit;
  limit.permits = permits;
  return limit;
}

TEST(LimitCache, FindsLimitsByKindAndBytes) {
  LimitCache limits;
  EXPECT_EQ(limits.find(1, "15"), nullptr);
  const Limit* kept = &*limits.keep(1, "15", limit_of(7));
  EXPECT_EQ(limits.find(1, "15"), kept);
  EXPECT_EQ(kept->permits, 7);
  EXPECT_EQ(limits.find(2, "15"), nullptr);
  EXPECT_EQ(limits.find(1, "16"), nullptr);
  EXPECT_EQ(limits.find(1, "1"), nullptr);
  limits.end_round();
  EXPECT_EQ(limits.find(1, "15"), kept);
}

TEST(LimitCache, MovesNoLimitUntilTheRoundEnds) {
  LimitCache limits(LimitCache::kSlotsOfMany);
  const std::size_t many = LimitCache::kSlots * 4;
  for (int round = 0; round < 3; ++round) {
    std::vector<const Limit*> given;
    for (std::size_t i = 0; i < many; ++i) {
      const std::string bytes = "middle" + std::to_string(i) + "of these";
      const Limit* found = limits.find(3, bytes);
      if (found == nullptr) found = &*limits.keep(3, bytes, limit_of(static_cast<std::int64_t>(i)));
      given.push_back(found);
    }
    for (std::size_t i = 0; i < many; ++i) ASSERT_EQ(given[i]->permits, static_cast<std::int64_t>(i)) << round;
    EXPECT_LE(limits.size(), LimitCache::kSlotsOfMany);
    limits.end_round();
  }
}

TEST(LimitCache, CachesNothingTooLongOrEmpty) {
  LimitCache limits;
  const std::string longest(LimitCache::kBytesMax, '1');
  EXPECT_EQ(limits.keep(1, longest + "1", limit_of(7))->permits, 7);
  EXPECT_EQ(limits.find(1, longest + "1"), nullptr);
  EXPECT_EQ(limits.find(1, longest), nullptr);
  EXPECT_EQ(limits.keep(0, "", limit_of(7))->permits, 7);
  limits.keep(0, "1", limit_of(9));
  EXPECT_EQ(limits.find(0, ""), nullptr);
  limits.keep(1, longest, limit_of(8));
  EXPECT_EQ(limits.find(1, longest)->permits, 8);
}

TEST(LimitCache, CachesInvalidTextsButNoLongOnes) {
  LimitCache limits;
  EXPECT_FALSE(limits.compile("5/minuet", std::nullopt));
  EXPECT_EQ(limits.find(LimitCache::kind_of(std::nullopt), "5/minuet"), nullptr);
  EXPECT_EQ(limits.size(), 1u);
  const Result<Limit>& longest = limits.compile("5/minute" + std::string(248, 'x'), std::nullopt);
  ASSERT_FALSE(longest);
  EXPECT_LE(longest.error().message.size(), 1'000u) << "it is cached";
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
