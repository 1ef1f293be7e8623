// Tests the two log lines: when keys begin to be compacted, and when that has ended.
#include "server/observe/compact_notice.h"

#include <gtest/gtest.h>

namespace weir::compact_notice_test {
namespace {

using News = CompactNews::News;

TEST(CompactNotice, LogsOnceWhenItBeginsAndOnceWhenItEnds) {
  constexpr Micros kSecond{1'000'000};
  CompactNews news(7);
  EXPECT_EQ(news.look(7, kSecond), News::none) << "of an earlier process";
  EXPECT_EQ(news.look(9, 2 * kSecond), News::begins);
  EXPECT_EQ(news.look(1'009, 3 * kSecond), News::none);
  EXPECT_EQ(news.look(1'009, 62 * kSecond), News::none);
  EXPECT_EQ(news.look(1'010, 62 * kSecond), News::none) << "it goes on";
  EXPECT_EQ(news.look(1'010, 121 * kSecond), News::none);
  EXPECT_EQ(news.look(1'010, 122 * kSecond), News::ends);
  EXPECT_EQ(news.keys(), 1'003u);
  EXPECT_EQ(news.look(1'010, 123 * kSecond), News::none);
  EXPECT_EQ(news.look(1'011, 124 * kSecond), News::begins);
  EXPECT_EQ(news.keys(), 1u);
}

}  // namespace
}  // namespace weir::compact_notice_test
