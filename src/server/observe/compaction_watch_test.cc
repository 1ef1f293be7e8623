// Tests the two log lines: when keys begin to be compacted, and when that has ended.
#include "server/observe/compaction_watch.h"

#include <gtest/gtest.h>

namespace weir::server::observe::compact_notice_test {
namespace {

using Event = CompactionWatch::Event;

TEST(CompactNotice, LogsOnceWhenCompactionBeginsAndOnceWhenItEnds) {
  constexpr Micros kSecond{1'000'000};
  CompactionWatch news(7);
  EXPECT_EQ(news.look(7, kSecond), Event::none) << "keys of an earlier process";
  EXPECT_EQ(news.look(9, 2 * kSecond), Event::begins);
  EXPECT_EQ(news.look(1'009, 3 * kSecond), Event::none);
  EXPECT_EQ(news.look(1'009, 62 * kSecond), Event::none);
  EXPECT_EQ(news.look(1'010, 62 * kSecond), Event::none) << "keys are still converted";
  EXPECT_EQ(news.look(1'010, 121 * kSecond), Event::none);
  EXPECT_EQ(news.look(1'010, 122 * kSecond), Event::ends);
  EXPECT_EQ(news.keys(), 1'003u);
  EXPECT_EQ(news.look(1'010, 123 * kSecond), Event::none);
  EXPECT_EQ(news.look(1'011, 124 * kSecond), Event::begins);
  EXPECT_EQ(news.keys(), 1u);
}

}  // namespace
}  // namespace weir::server::observe::compact_notice_test
