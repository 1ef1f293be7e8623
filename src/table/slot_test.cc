// Slots read on their own: whose limit, how much is spent, whether they have lapsed; and words that make no sense.
#include "table/slot.h"

#include <gtest/gtest.h>

#include "table/file.h"

namespace weir::table {
namespace {

constexpr std::uint64_t kName = std::uint64_t{77} << kNameShift;
constexpr std::int64_t kNow = 1'794'701'843'991'953, kMinute = 60'000'000;

class Slot : public ::testing::Test {
 protected:
  Mapping mapping_ = std::move(*map_memory(100, 1 << 16));
  Registry registry_{mapping_.region(), {}};
  Actor actor_{mapping_.region(), 0};
  SlotReader reader_{actor_, registry_};

  // A slot whose key has spent so many permits at `kNow`.
  Word slot_of(const Limit& limit, std::int64_t spent) {
    const std::uint32_t number = registry_.number_of(limit, 0);
    TableCell cell(limit);
    cell.commit(cell.decide(kNow, spent).next);
    const Packing packing = packing_of(limit);
    const std::uint64_t state = std::visit(
        [&](const auto& held) -> std::uint64_t {
          using State = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<State, Bucket>) return held.word;
          if constexpr (std::is_same_v<State, FixedWindow> || std::is_same_v<State, SlidingWindow>) {
            return static_cast<std::uint64_t>(pack(held, packing));
          }
          return 0;
        },
        cell.state());
    return {tag_of(kName, number), state};
  }
};

TEST_F(Slot, TellsWhatIsSpentAndWhenItLapses) {
  const Limit limits[] = {*make_window(Algorithm::fixed_window, 10, kMinute),
                          *make_window(Algorithm::sliding_window, 10, kMinute),
                          *make_bucket(Algorithm::token_bucket, 10, kMinute, 10)};
  for (const Limit& limit : limits) {
    const Word slot = slot_of(limit, 4);
    EXPECT_EQ(reader_.spent(slot, kNow), 4) << to_string(limit.algorithm);
    const auto half = reader_.pulse(slot, kNow + kRecent_us);
    EXPECT_FALSE(half.lapsed);
    EXPECT_FALSE(half.protected_);
    EXPECT_NEAR(half.fraction, 4 * (1 << 20) / 10, 2);
    EXPECT_TRUE(reader_.pulse(slot_of(limit, 10), kNow).protected_) << "spent: must not be forgotten";
    EXPECT_TRUE(reader_.pulse(slot, kNow + 2 * kMinute).lapsed) << to_string(limit.algorithm);
    ASSERT_TRUE(reader_.read(slot));
    EXPECT_TRUE(reader_.read(slot)->cell.limit() == limit);
    EXPECT_FALSE(reader_.block_of(slot));
  }
}

TEST_F(Slot, MakesNothingOfWhatMakesNoSense) {
  const Limit log = *make_window(Algorithm::sliding_log, 10, kMinute);
  const std::uint32_t number = registry_.number_of(log, 0);
  const std::uint64_t lines = mapping_.region().arena_lines();
  for (const Word& word : {
           Word{tag_of(kName, 4'000), 0},                            // a limit that nobody gave a number
           Word{tag_of(kName, number), block_state(lines, 1)},       // a block beyond the arena
           Word{tag_of(kName, number), ~std::uint64_t{0}},           //
           Word{tag_of(kName, kInBlock), block_state(lines - 1, 0)}  // a block without a limit
       }) {
    EXPECT_FALSE(reader_.read(word)) << word.tag;
    EXPECT_EQ(reader_.spent(word, kNow), 0);
    EXPECT_FALSE(reader_.pulse(word, kNow).lapsed) << "not to be taken by the next key";
  }
}

TEST_F(Slot, KeepsTheEndOfAReservationInSteps) {
  const std::uint64_t state = reservation_state(123'456, kNow + kMinute);
  EXPECT_EQ(reservation_amount(state), 123'456);
  EXPECT_FALSE(is_ticket_over(kReservation, state, kNow + kMinute - 1)) << "never too early";
  EXPECT_TRUE(is_ticket_over(kReservation, state, kNow + kMinute + 128'000'000)) << "at most a step too late";
  EXPECT_EQ(reservation_amount(reservation_state(kPermitsMax, kNow)), kPermitsMax);
  EXPECT_FALSE(is_ticket_over(kRequest, static_cast<std::uint64_t>(kNow) + 1, kNow));
  EXPECT_TRUE(is_ticket_over(kRequest, static_cast<std::uint64_t>(kNow), kNow));
}

TEST_F(Slot, CountsNoTicketAsAKey) {
  EXPECT_TRUE(is_key(tag_of(kName, registry_.number_of(*make_window(Algorithm::fixed_window, 1, kMinute), 0))));
  EXPECT_FALSE(is_key(tag_of(kName, kReservation)));
  EXPECT_FALSE(is_key(tag_of(kName, kRequest)));
  EXPECT_FALSE(is_key(0));
}

}  // namespace
}  // namespace weir::table
