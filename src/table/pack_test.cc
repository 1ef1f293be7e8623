// States and their bits: nothing is lost, and most limits in practice need 8 bytes.
#include "table/pack.h"

#include <gtest/gtest.h>

#include <random>

#include "seed.h"
#include "weir/limit.h"

namespace weir::table::pack_test {
namespace {

Limit limit_of(std::string_view quota, Algorithm algorithm) {
  if (algorithm::is_bucket(algorithm)) return algorithm::make_bucket(algorithm, 100, 60'000'000, 100).value();
  std::int64_t permits = 0, period = 0;
  EXPECT_EQ(std::sscanf(std::string(quota).c_str(), "%ld/%ld", &permits, &period), 2);
  return algorithm::make_window(algorithm, permits, period).value();
}

TEST(Pack, KeepsCommonLimitsInASlot) {
  const auto fits = [](std::string_view quota, Algorithm algorithm) {
    return packing_of(limit_of(quota, algorithm)).fits_slot;
  };
  EXPECT_TRUE(fits("32767/1000000", Algorithm::sliding_window)) << "a second";
  EXPECT_TRUE(fits("131071/60000000", Algorithm::sliding_window)) << "a minute";
  EXPECT_TRUE(fits("1000000/3600000000", Algorithm::sliding_window)) << "an hour";
  EXPECT_TRUE(fits("1000000000/1000000", Algorithm::fixed_window));
  EXPECT_TRUE(fits("1/1", Algorithm::token_bucket));
  EXPECT_FALSE(fits("1000000/1000000", Algorithm::sliding_window)) << "a million a second takes a block";
  EXPECT_FALSE(fits("5/60000000", Algorithm::sliding_log));
  EXPECT_FALSE(fits("20/60000000", Algorithm::concurrency));
  const auto is_compact = [](std::string_view quota) {
    return packing_of(limit_of(quota, Algorithm::sliding_log), Form::compact).fits_slot;
  };
  EXPECT_TRUE(is_compact("32767/1000000")) << "a log of a second in two counts";
  EXPECT_TRUE(is_compact("262143/60000000")) << "of a minute";
  EXPECT_FALSE(is_compact("32768/1000000"));
  EXPECT_TRUE(packing_of(limit_of("1099511627776/1000", Algorithm::sliding_window)).fits_block) << "the largest limit";
}

TEST(Pack, RestoresEveryStateOfItsLimit) {
  std::mt19937_64 dice(test::base_seed());
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t permits = 1 + static_cast<std::int64_t>(dice() >> (24 + dice() % 40));
    const std::int64_t period = 1'000 + static_cast<std::int64_t>(dice() % 315'360'000'000'000);
    const std::int64_t now = static_cast<std::int64_t>(dice() % kTimeEnd);
    const auto count = [&] { return static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(permits + 1)); };
    const Packing fixed = packing_of(algorithm::make_window(Algorithm::fixed_window, permits, period).value());
    const algorithm::FixedWindow window{(now / period + 1) * period, std::max<std::int64_t>(1, count())};
    ASSERT_TRUE(fixed.fits_block);
    EXPECT_EQ(unpack_fixed(pack(window, fixed), fixed), window);
    const std::int64_t phase = static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(period));
    const Limit shifted =
        phased(algorithm::make_window(Algorithm::fixed_window, permits, period).value(), phase).value();
    for (const std::int64_t time : {std::int64_t{0}, now, kTimeEnd - 1}) {
      const algorithm::Window at = algorithm::fixed_window_at(shifted, time);
      EXPECT_LE(at.start_us, time);
      EXPECT_GT(at.end_us, time);
      for (const std::int64_t end : {at.end_us, at.next_end_us}) {  // one window ahead is kept, too
        const algorithm::FixedWindow held{end, window.count};
        EXPECT_EQ(unpack_fixed(pack(held, packing_of(shifted)), packing_of(shifted)), held) << "phase " << phase;
      }
    }
    const Packing sliding = packing_of(algorithm::make_window(Algorithm::sliding_window, permits, period).value());
    const algorithm::SlidingWindow two{now / period + 1, count(), std::max<std::int64_t>(1, count())};
    ASSERT_TRUE(sliding.fits_block);
    EXPECT_EQ(unpack_sliding(pack(two, sliding), sliding), two);
    EXPECT_EQ(bits_of(word_of(pack(two, sliding))), pack(two, sliding)) << "a word has room beside its mark";
    EXPECT_EQ(mark_of(word_of(pack(two, sliding))), kPlain);
    EXPECT_TRUE(!sliding.fits_slot || pack(two, sliding) >> 64 == 0);
  }
}

TEST(Pack, WritesAKeyNeverSeenAsZero) {
  const Packing fixed = packing_of(limit_of("5/60000000", Algorithm::fixed_window));
  EXPECT_EQ(static_cast<std::uint64_t>(pack(algorithm::FixedWindow{}, fixed)), 0u);
  EXPECT_EQ(unpack_fixed(0, fixed), algorithm::FixedWindow{});
  const Packing sliding = packing_of(limit_of("5/60000000", Algorithm::sliding_window));
  EXPECT_EQ(static_cast<std::uint64_t>(pack(algorithm::SlidingWindow{}, sliding)), 0u);
  EXPECT_EQ(unpack_sliding(0, sliding), algorithm::SlidingWindow{});
}

}  // namespace
}  // namespace weir::table::pack_test
