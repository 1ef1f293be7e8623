// Tests how many denials of a second are logged, and that none is missing from the counts.
#include "server/observe/denial_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "weir/clock.h"

namespace weir::server::observe {
namespace {

class DenialLogTest : public ::testing::Test {
 protected:
  DenialLogTest() { log::set_log_level(log::LogLevel::info); }
  ~DenialLogTest() override { log::set_log_level(log::LogLevel::info); }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{1'000'000'000});
  Limiter limiter_{LimiterOptions{clock_, 100}};
};

TEST_F(DenialLogTest, LogsAMaximumOfDenialsASecond) {
  DenialLog log({.per_second = 3}, limiter_);
  const auto taken_of = [&](Micros now, int times) {
    int taken = 0;
    for (int i = 0; i < times; ++i) taken += log.takes(now) ? 1 : 0;
    return taken;
  };
  EXPECT_EQ(taken_of(Micros{5'000'000}, 10), 3);
  EXPECT_EQ(taken_of(Micros{5'999'999}, 10), 0);
  EXPECT_EQ(log.counts().dropped, 17u);
  EXPECT_EQ(taken_of(Micros{6'000'000}, 2), 2);
  EXPECT_EQ(taken_of(Micros{5'999'999}, 2), 1) << "denials of a slower loop count in the current second";
  EXPECT_EQ(taken_of(Micros{9'000'000}, 4), 3);
  EXPECT_EQ(log.counts().dropped, 17u + 1u + 1u);
}

TEST_F(DenialLogTest, LogsNothingWhenItIsOff) {
  DenialLog off({.per_second = 0}, limiter_);
  EXPECT_FALSE(off.takes(Micros{1}));
  DenialLog log({.per_second = 3}, limiter_);
  log::set_log_level(log::LogLevel::warn);
  EXPECT_FALSE(log.takes(Micros{1}));
}

TEST_F(DenialLogTest, CountsEveryDenial) {
  constexpr std::uint64_t kThreads = 4, kEach = 50'000;
  DenialLog log({.per_second = 10}, limiter_);
  std::atomic<std::uint64_t> taken{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < kEach; ++i) {
          if (log.takes(Micros{static_cast<std::int64_t>((i + t * 100) * 100)})) ++taken;  // about five seconds
        }
      });
    }
  }
  EXPECT_EQ(taken + log.counts().dropped, kThreads * kEach);
  EXPECT_LE(taken, 10u * 8u);
  EXPECT_GE(taken, 10u * 5u);
}

}  // namespace
}  // namespace weir::server::observe
