// A log in a block behaves like the same log in a vector, under any changes.
#include "table/ring_log.h"

#include <gtest/gtest.h>

#include <random>

#include "algorithm/limit.h"
#include "seed.h"
#include "table/arena.h"
#include "table/file.h"

namespace weir::table::ring_log_test {
namespace {

constexpr std::int64_t kNow = 1'794'701'843'991'953;

class RingLogs : public ::testing::TestWithParam<LogFormat> {
 protected:
  // Writes a view's changes in place, as a transaction would.
  static Word write_in_place(Actor& actor, const RingLog& log) {
    for (const Patch& patch : log.patches()) actor.put(*patch.unit, patch(actor.read(*patch.unit)));
    return log.state();
  }
};

TEST_P(RingLogs, AgreesWithAVector) {
  const auto mapping = map_memory(100, 1 << 20);
  std::mt19937_64 dice(test::base_seed());
  for (int round = 0; round < 50; ++round) {
    const std::int64_t period = GetParam() == LogFormat::narrow ? 1'800'000'000 : 86'400'000'000;
    const Limit limit = algorithm::make_window(Algorithm::sliding_log, 200, period).value();
    ASSERT_EQ(log_format(limit), GetParam());
    Actor actor(mapping->region(), 1);
    unsigned block_class = 1;
    ASSERT_TRUE(take_block(actor, 0, block_class));
    algorithm::SlidingLog plain;
    Word state = RingLog().copy(actor, mapping->region().line(pending_block(actor, 0)->line), GetParam());
    std::int64_t now = kNow;
    for (int i = 0; i < 400; ++i) {
      now += static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(period / 60));
      if (dice() % 50 == 0) now -= period / 100;
      const std::int64_t cost = static_cast<std::int64_t>(dice() % 5) - 1;
      Line& block = mapping->region().line(pending_block(actor, 0)->line);
      auto ring = RingLog::read(actor, block, state, block_class, GetParam());
      ASSERT_TRUE(ring);
      const auto settled = algorithm::sliding_log_settle(plain, now),
                 settled_ring = algorithm::sliding_log_settle(*ring, now);
      ASSERT_EQ(settled.moved, settled_ring.moved);
      if (settled.moved) plain.apply(settled.state), ring->apply(settled_ring.state);
      const auto stepped = algorithm::sliding_log_step(plain, limit, now, cost),
                 in_ring = algorithm::sliding_log_step(*ring, limit, now, cost);
      ASSERT_EQ(stepped.decision, in_ring.decision) << "step " << i;
      if (stepped.decision.allowed && cost != 0) plain.apply(stepped.next), ring->apply(in_ring.next);
      if (ring->fits()) {
        state = write_in_place(actor, *ring);
        continue;
      }
      block_class = log_class(ring->size(), GetParam());
      ASSERT_TRUE(take_block(actor, 1, block_class));
      state = ring->copy(actor, mapping->region().line(pending_block(actor, 1)->line), GetParam());
      std::swap(actor.record().pending[0], actor.record().pending[1]);
    }
    give_all_blocks(actor);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, RingLogs, ::testing::Values(LogFormat::narrow, LogFormat::wide));

TEST(RingLog, TakesEightBytesAnEventUpToHalfAnHourAndTwelveAbove) {
  for (unsigned block_class = 4; block_class < kClasses; ++block_class) {
    const std::int64_t bytes = 64 * ((std::int64_t{1} << block_class) - 1);
    EXPECT_GE(log_capacity(block_class, LogFormat::narrow) * 8, bytes);
    EXPECT_GE(log_capacity(block_class, LogFormat::wide) * 12, bytes - 32);
  }
  EXPECT_GE(log_capacity(kClasses - 1, LogFormat::wide), 65'536) << "the most events a key may have";
  EXPECT_EQ(log_format(algorithm::make_window(Algorithm::sliding_log, 5, 1'800'000'000).value()), LogFormat::narrow);
  EXPECT_EQ(log_format(algorithm::make_window(Algorithm::sliding_log, 5, 1'800'000'001).value()), LogFormat::wide);
}

TEST(RingLog, RefusesAnImpossibleHead) {
  const auto mapping = map_memory(100, 1 << 20);
  Actor actor(mapping->region(), 0);
  Line& block = mapping->region().line(0);
  EXPECT_FALSE(RingLog::read(actor, block, word_of(~Bits{0} >> 2), 1, LogFormat::narrow));
  EXPECT_FALSE(RingLog::read(actor, block, word_of(Bits{9} << 52), 1, LogFormat::narrow)) << "9 events in room for 8";
  EXPECT_TRUE(RingLog::read(actor, block, word_of(Bits{8} << 52), 1, LogFormat::narrow));
}

}  // namespace
}  // namespace weir::table::ring_log_test
