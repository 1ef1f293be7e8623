// Tests parsing a line of /proc/self/stat, and the values of this process.
#include "server/observe/process_stats.h"

#include <gtest/gtest.h>

namespace weir::server::observe {
namespace {

TEST(ProcessStats, AreParsedFromTheKernelsLine) {
  const auto stats = read_process_stat(
      "42 (a) b (c)) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 5 0 1000 8192000 300 184467 1 1\n", 100, 4'096);
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->cpu, Micros{2'000'000});
  EXPECT_EQ(stats->started, Micros{10'000'000});
  EXPECT_EQ(stats->threads, 5U);
  EXPECT_EQ(stats->virtual_bytes, 8'192'000U);
  EXPECT_EQ(stats->resident_bytes, 300U * 4'096U);
  for (const std::string_view line : {"", "42", "42 (x)", "42 (x) S 1 2 3"}) {
    EXPECT_FALSE(read_process_stat(line, 100, 4'096)) << line;
  }
  EXPECT_FALSE(read_process_stat("42 (a) S 1", 0, 4'096));
}

TEST(ProcessStats, ArePlausibleForThisProcess) {
  const ProcessStats stats = process_stats();
  EXPECT_GT(stats.resident_bytes, 100'000U);
  EXPECT_GE(stats.virtual_bytes, stats.resident_bytes);
  EXPECT_GE(stats.threads, 1U);
  EXPECT_GE(stats.open_fds, 3U);
  EXPECT_GE(stats.max_fds, stats.open_fds);
  EXPECT_GT(stats.started, Micros{1'500'000'000'000'000});
}

}  // namespace
}  // namespace weir::server::observe
