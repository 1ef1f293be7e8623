// Tests that this process's processor time grows as it works.
#include "load_generator/process_cpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::load_generator {
namespace {

TEST(ProcessCpu, GrowsWhileTheProcessWorks) {
  const auto before = process_cpu_ns(getpid());
  ASSERT_TRUE(before);
  volatile std::uint64_t work = 0;
  auto after = before;
  for (int round = 0; round < 1'000 && *after - *before < 20'000'000; ++round) {  // two ticks
    for (int i = 0; i < 1'000'000; ++i) work = work + 1;
    after = process_cpu_ns(getpid());
  }
  EXPECT_GE(*after - *before, 20'000'000);
}

TEST(ProcessCpu, OfAnUnknownProcessIsNothing) { EXPECT_FALSE(process_cpu_ns(-1)); }

}  // namespace
}  // namespace weir::load_generator
