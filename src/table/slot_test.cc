// Reading slots on their own: which limit, how much is used, whether they have expired; and words that make no sense.
#include "table/slot.h"

#include <gtest/gtest.h>

#include "table/file.h"

namespace weir::table::slot_test {
namespace {

constexpr std::uint64_t kFamily = 1;

constexpr std::uint64_t kName = std::uint64_t{77} << kNameShift;
constexpr std::int64_t kNow = 1'794'701'843'991'953, kMinute = 60'000'000;

class Slot : public ::testing::Test {
 protected:
  Mapping mapping_ = std::move(*map_memory(100, 1 << 16));
  Registry registry_{mapping_.region(), {}};
  Actor actor_{mapping_.region(), 0};
  SlotReader reader_{actor_, registry_};

  // A slot whose key has used `spent` permits at `kNow`.
  Word slot_of(const Limit& limit, std::int64_t spent) {
    const std::uint32_t number = registry_.number_of(limit, 0, kFamily);
    TableCell cell(limit);
    cell.commit(cell.limit(), cell.decide(kNow, spent));
    return {tag_of(kName, number), static_cast<std::uint64_t>(pack(cell.state(), packing_of(limit)))};
  }
};

TEST_F(Slot, ExpiresWhenItsLimitIsFullAgain) {
  const Limit limits[] = {*algorithm::make_window(Algorithm::fixed_window, 10, kMinute),
                          *algorithm::make_window(Algorithm::sliding_window, 10, kMinute),
                          *algorithm::make_bucket(Algorithm::token_bucket, 10, kMinute, 10)};
  for (const Limit& limit : limits) {
    const Word slot = slot_of(limit, 4);
    EXPECT_FALSE(reader_.has_lapsed(slot, kNow + kRecent_us)) << to_string(limit.algorithm);
    EXPECT_TRUE(reader_.has_lapsed(slot, kNow + 2 * kMinute)) << to_string(limit.algorithm);
    ASSERT_TRUE(reader_.read(slot));
    EXPECT_TRUE(reader_.read(slot)->cell.limit() == limit);
    EXPECT_FALSE(reader_.block_of(slot));
  }
}

TEST_F(Slot, RefusesInconsistentWords) {
  const Limit log = *algorithm::make_window(Algorithm::sliding_log, 10, kMinute);
  const std::uint32_t number = registry_.number_of(log, 0, kFamily);
  const std::uint64_t lines = mapping_.region().arena_lines();
  for (const Word& word : {
           Word{tag_of(kName, 4'000), 0},                            // a number that no limit has
           Word{tag_of(kName, number), block_state(lines, 1)},       // a block beyond the arena
           Word{tag_of(kName, number), ~std::uint64_t{0}},           //
           Word{tag_of(kName, kInBlock), block_state(lines - 1, 0)}  // a block without a limit
       }) {
    EXPECT_FALSE(reader_.read(word)) << word.tag;
    EXPECT_FALSE(reader_.has_lapsed(word, kNow)) << "the next key must not take it";
  }
}

TEST_F(Slot, KeepsTheEndOfAReservationInSteps) {
  const std::uint64_t state = reservation_state(123'456, 8'191, kNow + kMinute);
  EXPECT_EQ(line_of(state), 123'456u);
  EXPECT_FALSE(is_ticket_over(kReservation, state, kNow + kMinute - 1)) << "never too early";
  EXPECT_TRUE(is_ticket_over(kReservation, state, kNow + kMinute + 128'000'000)) << "at most a step too late";
  const std::int64_t longest = kNow + kPeriodMax.count();
  EXPECT_FALSE(is_ticket_over(kReservation, reservation_state(0, 0, longest), kNow)) << "ten years";
  EXPECT_TRUE(is_ticket_over(kReservation, reservation_state(0, 0, kNow), kNow + 5 * kPeriodMax.count() / 10));
  EXPECT_FALSE(is_ticket_over(kRequest, static_cast<std::uint64_t>(kNow) + 1, kNow));
  EXPECT_TRUE(is_ticket_over(kRequest, static_cast<std::uint64_t>(kNow), kNow));
}

TEST_F(Slot, KeepsWhatAReservationCharged) {
  ASSERT_TRUE(take_block(actor_, 0, 0));
  const Block block = *pending_block(actor_, 0);
  const Reserved reserved{
      .amount = kPermitsMax,
      .charged = {.at_us = kTimeEnd - 1, .rate = algorithm::kRateMax, .weight = algorithm::kUnitsMax},
      .name = kNameMask};
  write_reservation(actor_, mapping_.region().line(block.line), kName, reserved);
  const Word slot{tag_of(kName, kReservation), reservation_state(block.line, 0, kNow)};
  const auto read = reader_.read_reservation(slot);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->reserved.amount, reserved.amount);
  EXPECT_EQ(read->reserved.charged.at_us, reserved.charged.at_us);
  EXPECT_EQ(read->reserved.charged.rate, reserved.charged.rate);
  EXPECT_EQ(read->reserved.charged.weight, reserved.charged.weight);
  EXPECT_EQ(read->reserved.name, reserved.name);
  EXPECT_EQ(reader_.block_of(slot)->line, block.line);
  const Word other{tag_of(kName << 1, kReservation), slot.state};
  EXPECT_FALSE(reader_.read_reservation(other)) << "a block that is another reservation's";
}

// In a file of version 1, a slot has the amount and a step of 23 bits above it. Nothing says when it was charged.
TEST_F(Slot, TakesOverAReservationWithoutATime) {
  const auto step = static_cast<std::uint64_t>((kNow + kMinute) / 128'000'000 + 1);
  const Word slot{tag_of(kName, kReservation), reservation_without_time(std::uint64_t{4'321} | step << 41)};
  const auto read = reader_.read_reservation(slot);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->reserved.amount, 4'321);
  EXPECT_EQ(read->reserved.name, 0u);
  EXPECT_FALSE(read->block);
  EXPECT_FALSE(reader_.block_of(slot));
  EXPECT_FALSE(is_ticket_over(kReservation, slot.state, kNow + kMinute - 1));
  EXPECT_TRUE(is_ticket_over(kReservation, slot.state, kNow + kMinute + 128'000'000));
}

TEST_F(Slot, CountsNoTicketAsAKey) {
  EXPECT_TRUE(is_key(
      tag_of(kName, registry_.number_of(*algorithm::make_window(Algorithm::fixed_window, 1, kMinute), 0, kFamily))));
  EXPECT_FALSE(is_key(tag_of(kName, kReservation)));
  EXPECT_FALSE(is_key(tag_of(kName, kRequest)));
  EXPECT_FALSE(is_key(0));
}

}  // namespace
}  // namespace weir::table::slot_test
