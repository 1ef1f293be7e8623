// Tests times as texts.
#include "base/time_text.h"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(TimeText, WritesDatesAsHttpRequires) {
  EXPECT_EQ(http_date(Micros{784'111'777'000'000}), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(Micros{0}), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(http_date(Micros{1'709'251'199'999'999}), "Thu, 29 Feb 2024 23:59:59 GMT");
}

TEST(TimeText, TimesOfLogsHaveMilliseconds) {
  EXPECT_EQ(rfc3339(Micros{0}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(rfc3339(Micros{1'709'251'199'999'999}), "2024-02-29T23:59:59.999Z");
  EXPECT_EQ(rfc3339(Micros{1'794'812'400'123'456}), "2026-11-16T07:00:00.123Z");
}

}  // namespace
}  // namespace weir::base
