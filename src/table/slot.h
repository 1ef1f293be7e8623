// What stands in a slot, read on its own: whose limit it is, what is spent, when it lapses.
//
// Whoever walks over slots that it has no key for needs this: the search for room, the sweep, a report on a state file.
// Reads are exact for a slot that holds its state itself; what a block says counts only if the slot still holds what it
// held before. For the one thread of an actor. Tested by slot_test.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "algorithm/cell.h"
#include "table/arena.h"
#include "table/registry.h"
#include "table/ring_log.h"

namespace weir::table {

using TableCell = BasicCell<RingLog>;

// The state of a slot whose key has a block: its place in the arena, and a number that every change of the block
// changes.
inline std::uint64_t block_state(std::uint64_t line, std::uint64_t change) { return line | change << kHandleBits; }
inline std::uint64_t line_of(std::uint64_t state) { return state & ((std::uint64_t{1} << kHandleBits) - 1); }
inline std::uint64_t change_of(std::uint64_t state) { return state >> kHandleBits; }

// What a reservation has charged: how much, when, and to which state. A state's name tells its windows.
struct Reserved {
  std::int64_t amount = 0;
  Charged charged{};
  std::uint64_t name = 0;  // of the slot that was charged; 0 if that, and when, is not known
};

// A reservation is a slot and a block of one line. The slot says where the block is and when the reservation ends, in
// steps of 128 s; the block says what was charged. Files of version 1 had no blocks: such a slot holds the amount.
std::uint64_t reservation_state(std::uint64_t line, std::uint64_t change, std::int64_t expires_us);
std::uint64_t reservation_without_time(std::uint64_t version_1_state);
bool is_ticket_over(std::uint32_t kind, std::uint64_t state, std::int64_t now);
// How long it takes until it is over, from some time before that.
std::int64_t ticket_left_us(std::uint32_t kind, std::uint64_t state, std::int64_t now);
// Whether a ticket is one that has a block.
bool is_in_block(const Word& ticket);
// Into a block of the actor's own; `ticket` is the reservation's own name.
void write_reservation(Actor& actor, Line& block, std::uint64_t ticket, const Reserved& reserved);

inline bool is_ticket(std::uint32_t number) { return number == kReservation || number == kRequest; }
inline bool is_key(std::uint64_t tag) { return tag != 0 && !is_ticket(limit_of(tag)); }

// count_keys()
//
// Notes in the actor's record how many keys it has added, or removed. A kill may come in between: the count is for
// people, and made anew when a table is repaired.
inline void count_keys(Actor& actor, std::int64_t added) {
  Participant& own = actor.record();
  if (added != 0) store(own.keys, load(own.keys) + static_cast<std::uint64_t>(added));
}

// For a table that nobody else uses.
void count_all_keys(const Region& region);

// A key's limit and state, taken apart.
struct Content {
  Packing packing;
  std::optional<Block> block;
  Word block_word{};  // what the block's state unit held
  TableCell cell;
};

// A reading of the clock that is as good as a new one: nothing is forgotten as recovered that had not recovered by
// then.
inline constexpr std::int64_t kRecent_us = 1'000;
inline std::int64_t recently(std::int64_t now) { return std::max<std::int64_t>(0, now - kRecent_us); }

// Whether a word of this number is a floor, not a key's: see floor.h.
inline bool is_floor(const Word& word, const Known& known) { return name_of(word.tag) == known.floor_name; }

class SlotReader {
 public:
  SlotReader(Actor& actor, Registry& registry) : actor_(actor), registry_(registry) {}

  // read()
  //
  // The content of a slot that holds a key, not a ticket. Nothing if it makes no sense: it changed meanwhile, or the
  // table is damaged.
  std::optional<Content> read(const Word& slot);

  // has_lapsed()
  //
  // Whether a slot decides like a key never seen, by a reading of the clock that is kRecent_us old.
  bool has_lapsed(const Word& slot, std::int64_t now) {
    const std::optional<bool> lapsed = has_lapsed_in_slot(slot, now);
    return lapsed ? *lapsed : has_lapsed_in_block(slot, now);
  }
  // The same if the slot itself tells it, which costs little; else nothing, and its block must be read.
  std::optional<bool> has_lapsed_in_slot(const Word& slot, std::int64_t now);
  // The same of a slot that holds its state itself.
  static bool has_lapsed_in_slot(const Known& known, std::uint64_t state, std::int64_t now) {
    now = recently(now);
    if (known.packing.kind == Kind::bucket) return bucket_debt(unpack_bucket(state), known.limit.rate, now) == 0;
    if (known.packing.kind == Kind::fixed) {
      const FixedWindow window = unpack_fixed(state, known.packing);
      return window.end_us <= now || window.count == 0;
    }
    if (known.packing.kind == Kind::compact) {
      return sliding_window_roll(unpack_compact(state, known.packing), known.limit.period_us, now).used() == 0;
    }
    return used_of(unpack_sliding(state, known.packing), known.limit.period_us, now) == 0;
  }
  bool has_lapsed_in_block(const Word& slot, std::int64_t now);

  // What a reservation's slot and block say. Nothing if they do not belong together: the table is damaged, or the
  // reservation was settled meanwhile.
  struct ReservationRead {
    Reserved reserved;
    std::optional<Block> block;
    Word block_word{};  // what the block's state unit held
  };
  std::optional<ReservationRead> read_reservation(const Word& slot);

  // The limit of a number; null if there is none such.
  const Known* known(std::uint32_t number) { return registry_.known(number); }

  // The number of a limit's logs that are kept as two counts; 0 if they cannot be.
  std::uint32_t compact_number(const Known& known) {
    const bool fits = packing_of(known.limit, Form::compact).fits_slot;
    return fits ? registry_.number_of(known.limit, actor_.who(), known.family, Form::compact) : 0;
  }

  // find_hold()
  //
  // The unit of a hold in a block whose state unit held `word`; null if it is not there any more.
  Unit* find_hold(const Block& block, const Word& word, std::string_view id);

  // The block that a slot refers to; none if it has none.
  std::optional<Block> block_of(const Word& slot);

 private:
  std::optional<Limit> limit_in_block(const Block& block);
  std::optional<Block> block_at(std::uint64_t state);
  Content read_summary(const Known& known, std::uint64_t summary);
  // The limit of a slot that holds its state itself.
  const Known* known_in_slot(const Word& slot) {
    const Known* known = registry_.known(limit_of(slot.tag));
    return known != nullptr && known->packing.fits_slot ? known : nullptr;
  }
  std::optional<TableCell::State> state_in_block(const Limit& limit, const Packing& packing, const Block& block,
                                                 const Word& word);
  Holds read_holds(const Block& block, const Word& word);

  Actor& actor_;
  Registry& registry_;
};

// Permits in flight in a block: how many, and when the last lapses; then a unit each.
Word holds_word(const Holds& holds);
void write_holds(Actor& actor, Line& block, const Holds& holds);
unsigned holds_class(std::size_t count);
// What stands in the unit of a hold once it was released there: its end alone.
Word released_hold(const Word& hold);

// A limit that has no number, in the head of a block; that of a calendar takes the line behind it, too.
void write_limit(Actor& actor, Line& head, const Limit& limit);

}  // namespace weir::table
