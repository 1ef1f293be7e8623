// A floor is never below any of the states that it was made from, and only a little above them.

#include "table/floor.h"

#include <gtest/gtest.h>

#include <random>

#include "seed.h"

namespace weir::table::floor_test {
namespace {

constexpr std::int64_t kNow = 1'794'701'843'991'953, kMinute = 60'000'000;

// For a log: one that is kept as two counts.
Known known_of(const Limit& limit) {
  const Form form = limit.algorithm == Algorithm::sliding_log ? Form::compact : Form::usual;
  return {limit, packing_of(limit, form), 0, floor_name(1, limit)};
}
TableCell fresh(const Limit& limit) {
  return limit.algorithm == Algorithm::sliding_log ? TableCell(limit, algorithm::CompactLog{}) : TableCell(limit);
}

TEST(Floor, ASummaryIsRoundedUp) {
  const std::uint64_t seed = test::base_seed();
  std::mt19937_64 dice(seed);
  for (int i = 0; i < 100'000; ++i) {
    const std::int64_t count = test::pick(dice, 1, std::int64_t{1} << test::pick(dice, 0, 41)),
                       at = kNow + test::pick(dice, 0, kMinute);
    const Summary said = unpack_summary(pack_summary({at, count}, false));
    ASSERT_GE(said.count, count) << seed;
    ASSERT_LE(said.count - count, count / 50'000) << seed;
    ASSERT_GE(said.at_us, at) << seed;
    ASSERT_LE(said.at_us - at, 1'023) << seed;
    ASSERT_LE(unpack_summary(pack_summary({at, count}, true)).at_us, at) << "within its window";
  }
  EXPECT_EQ(pack_summary({kNow, 0}, false), 0u);
}

// Two states are used one after the other. What either of them would deny, the joined one denies, too.
TEST(Floor, AJoinedStateIsAsStrictAsEach) {
  const std::uint64_t seed = test::base_seed();
  std::mt19937_64 dice(seed);
  const Limit limits[] = {*algorithm::make_window(Algorithm::fixed_window, 10, kMinute),
                          *algorithm::make_window(Algorithm::sliding_window, 10, kMinute),
                          *algorithm::make_bucket(Algorithm::token_bucket, 10, kMinute, 10),
                          *algorithm::make_window(Algorithm::sliding_log, 10, kMinute)};
  for (int i = 0; i < 20'000; ++i) {
    const Limit& limit = limits[test::pick(dice, 0, 3)];
    const Known known = known_of(limit);
    const auto state_of = [&](TableCell& cell) {
      for (std::int64_t at = kNow - test::pick(dice, 0, 2 * kMinute); at <= kNow; at += test::pick(dice, 1, kMinute)) {
        const auto outcome = cell.decide(at, test::pick(dice, 1, 6));
        if (outcome.decision.allowed) cell.commit(limit, outcome);
      }
      return static_cast<std::uint64_t>(pack(cell.state(), known.packing));
    };
    TableCell a = fresh(limit), b = fresh(limit);
    const std::uint64_t one = state_of(a), other = state_of(b), both = join(known, one, other, kNow);
    EXPECT_TRUE(covers(known, both, one, kNow) && covers(known, both, other, kNow)) << seed;
    EXPECT_EQ(both, join(known, other, one, kNow)) << seed;
    const TableCell joined = join_cells(a, b, kNow);
    for (std::int64_t at = kNow; at < kNow + 2 * kMinute; at += test::pick(dice, 1, kMinute / 2)) {
      const std::int64_t most = std::min(a.decide(at, 0).decision.remaining, b.decide(at, 0).decision.remaining);
      EXPECT_LE(joined.decide(at, 0).decision.remaining, most) << to_string(limit.algorithm) << " seed " << seed;
    }
  }
}

// A corrected clock: one key has used today, another one a day that a wrong clock has shown. Both stay used.
TEST(Floor, WindowsOfACorrectedCalendarAreJoined) {
  constexpr std::int64_t kHour = 60 * kMinute, kDay = 24 * kHour, kMidnight = 20'774 * kDay;
  const Limit limit{
      .algorithm = Algorithm::fixed_window,
      .permits = 10,
      .capacity = 10,
      .calendar = std::make_shared<const algorithm::Calendar>(CalendarUnit::day, "UTC", algorithm::Zone{})};
  const Known known = known_of(limit);
  const std::int64_t noon = kMidnight + 12 * kHour;
  const algorithm::ShiftedCalendar shifted(
      algorithm::corrected(algorithm::corrected({}, kDay, noon, noon), 0, noon + kHour, noon + kHour));
  const algorithm::FixedWindow today{kMidnight + kDay, 10}, tomorrow{kMidnight + 2 * kDay, 1};
  const auto word = [&](const algorithm::FixedWindow& window) {
    return static_cast<std::uint64_t>(pack(window, known.packing));
  };
  const std::int64_t now = noon + 2 * kHour;
  const std::uint64_t both = join(known, word(today), word(tomorrow), now);
  EXPECT_EQ(both, join(known, word(tomorrow), word(today), now));
  EXPECT_TRUE(covers(known, both, word(today), now) && covers(known, both, word(tomorrow), now));
  EXPECT_FALSE(covers(known, word(tomorrow), word(today), now));
  EXPECT_EQ(TableCell(limit, unpack_fixed(both, known.packing)).decide(now, 0).decision.remaining, 0);
  const TableCell joined = join_cells(TableCell(limit, today), TableCell(limit, tomorrow), now);
  EXPECT_EQ(joined.decide(now, 0).decision.remaining, 0);
}

// A log joined with two counts has used as much as either of them. This is also true for a request whose `now` is
// earlier than the time when the counts were charged.
TEST(Floor, ALogIsJoinedWithCounts) {
  const std::uint64_t seed = test::base_seed();
  std::mt19937_64 dice(seed);
  const Limit limit = *algorithm::make_window(Algorithm::sliding_log, 10, kMinute);
  for (int i = 0; i < 5'000; ++i) {
    TableCell log(limit), counts = fresh(limit), truth(limit);  // of the counts
    for (TableCell* cell : {&log, &counts}) {
      for (std::int64_t at = kNow - test::pick(dice, 0, 2 * kMinute); at <= kNow;
           at += test::pick(dice, kMinute * 3 / 4, kMinute)) {
        const std::int64_t cost = test::pick(dice, 1, 6);
        const auto outcome = cell->decide(at, cost);
        if (!outcome.decision.allowed) continue;
        cell->commit(limit, outcome);
        if (cell == &counts) truth.commit(limit, truth.decide(at, cost));
      }
    }
    const std::int64_t old = kNow - test::pick(dice, 0, kRecent_us);
    const TableCell one = join_cells(log, counts, old), other = join_cells(counts, log, old);
    for (std::int64_t at = kNow; at < kNow + 2 * kMinute; at += test::pick(dice, 1, kMinute / 2)) {
      const std::int64_t most = std::min(log.decide(at, 0).decision.remaining, truth.decide(at, 0).decision.remaining);
      ASSERT_LE(one.decide(at, 0).decision.remaining, most) << "seed " << seed;
      ASSERT_EQ(other.decide(at, 0).decision.remaining, one.decide(at, 0).decision.remaining) << "seed " << seed;
    }
  }
  // In the last microsecond of a period. A request whose time is half a millisecond older makes no count leave sooner.
  TableCell log(limit), counts = fresh(limit);
  log.commit(limit, log.decide(kNow - kMinute / 2, 1));
  counts.commit(limit, counts.decide(kNow, 10));
  const TableCell joint = join_cells(log, counts, kNow - 500);
  EXPECT_FALSE(joint.decide(kNow + kMinute - 1, 1).decision.allowed);
}

// All versions of a rule's limit have one name, so that a key finds what it used under another version.
TEST(Floor, AFamilyHasOneName) {
  const auto bucket = [](std::int64_t permits) {
    return *algorithm::make_bucket(Algorithm::token_bucket, permits, kMinute, permits);
  };
  const auto window = [](std::int64_t permits, std::int64_t period) {
    return *algorithm::make_window(Algorithm::fixed_window, permits, period);
  };
  EXPECT_EQ(floor_name(7, bucket(1)), floor_name(7, bucket(2)));
  EXPECT_NE(floor_name(7, bucket(1)), floor_name(8, bucket(1)));
  EXPECT_EQ(floor_name(7, window(1, kMinute)), floor_name(7, window(2, kMinute)));
  EXPECT_NE(floor_name(7, window(1, kMinute)), floor_name(7, window(1, 2 * kMinute))) << "another state";
  EXPECT_NE(floor_name(0, bucket(1)), floor_name(0, bucket(2))) << "without a rule each is alone";
}

}  // namespace
}  // namespace weir::table::floor_test
