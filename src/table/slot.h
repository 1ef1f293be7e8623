// Reads a slot on its own: which limit it belongs to, how much is used, when it expires.
//
// Code that visits slots without knowing their keys needs this: the search for a free slot, the sweep, a report on a
// state file. A slot that contains its own state is read exactly. What a block says counts only if the slot still
// contains what it did before. For the one thread of an actor. Tested by slot_test.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "algorithm/cell.h"
#include "table/arena.h"
#include "table/registry.h"
#include "table/ring_log.h"

namespace weir::table {

using TableCell = algorithm::BasicCell<RingLog>;

// The state of a slot whose key has a block: the block's place in the arena, and a number that every change of the
// block changes.
inline std::uint64_t block_state(std::uint64_t line, std::uint64_t change) { return line | change << kHandleBits; }
inline std::uint64_t line_of(std::uint64_t state) { return state & ((std::uint64_t{1} << kHandleBits) - 1); }
inline std::uint64_t change_of(std::uint64_t state) { return state >> kHandleBits; }

// What a reservation has charged: how much, when, and to which state. A state's name determines its windows.
struct Reserved {
  std::int64_t amount = 0;
  algorithm::Charged charged{};
  std::uint64_t name = 0;  // of the charged slot; 0 if it and the time are unknown
};

// A reservation is a slot and a block of one line. The slot has the block's place and the end of the reservation, in
// steps of 128 s. The block says what was charged. Files of version 1 had no such blocks: their slot has the amount.
std::uint64_t reservation_state(std::uint64_t line, std::uint64_t change, std::int64_t expires_us);
std::uint64_t reservation_without_time(std::uint64_t version_1_state);
bool is_ticket_over(std::uint32_t kind, std::uint64_t state, std::int64_t now);
// The time until it is over, for a `now` before that.
std::int64_t ticket_left_us(std::uint32_t kind, std::uint64_t state, std::int64_t now);
// Whether a ticket has a block.
bool is_in_block(const Word& ticket);
// Writes into a block that belongs to the actor; `ticket` is the reservation's own name.
void write_reservation(Actor& actor, Line& block, std::uint64_t ticket, const Reserved& reserved);

inline bool is_ticket(std::uint32_t number) { return number == kReservation || number == kRequest; }
inline bool is_key(std::uint64_t tag) { return tag != 0 && !is_ticket(limit_of(tag)); }

// count_keys()
//
// Records in the actor's record how many keys it has added or removed. A kill may come in between, so the count is
// only for reports; a repair counts again.
inline void count_keys(Actor& actor, std::int64_t added) {
  Participant& own = actor.record();
  if (added != 0) store(own.keys, load(own.keys) + static_cast<std::uint64_t>(added));
}

// What happened to keys since the table was made, over all participants.
struct Counters {
  std::uint64_t evicted = 0;    // keys that lost their slot before they had recovered
  std::uint64_t early = 0;      // requests of new keys denied because of what evicted keys had used
  std::uint64_t no_room = 0;    // requests denied for lack of capacity
  std::uint64_t compacted = 0;  // logs converted to two counts for lack of a block
  std::uint64_t swept = 0;      // recovered keys that were removed
};
Counters counters_of(Actor& actor);

// For a table without other users.
void count_all_keys(const Region& region);

// A key's limit and state, decoded.
struct Content {
  Packing packing;
  std::optional<Block> block;
  Word block_word{};  // what the block's state unit contained
  TableCell cell;
};

// A reading of the clock up to this old counts as new. Nothing that had not recovered by the older reading is treated
// as recovered.
inline constexpr std::int64_t kRecent_us = 1'000;
inline std::int64_t recently(std::int64_t now) { return std::max<std::int64_t>(0, now - kRecent_us); }

// Whether a word of this number belongs to a floor, not to a key: see floor.h.
inline bool is_floor(const Word& word, const Known& known) { return name_of(word.tag) == known.floor_name; }

// What a slot is used for. A page keeps permits in flight and limits without a number: they are never evicted.
enum class SlotUse : std::uint8_t { none, ticket, kept, floor, key };

class SlotReader {
 public:
  SlotReader(Actor& actor, Registry& registry) : actor_(actor), registry_(registry) {}

  // read()
  //
  // The content of a slot with a key, not a ticket. Nothing if it is inconsistent: it changed meanwhile, or the table
  // is damaged.
  std::optional<Content> read(const Word& slot);

  // has_lapsed()
  //
  // Whether a slot decides like a key never seen, by a reading of the clock that is kRecent_us old. Such a slot has
  // expired.
  bool has_lapsed(const Word& slot, std::int64_t now) {
    const std::optional<bool> lapsed = has_lapsed_in_slot(slot, now);
    return lapsed ? *lapsed : has_lapsed_in_block(slot, now);
  }
  // The same if the slot itself has the answer, which is cheap. Otherwise nothing, and its block must be read.
  std::optional<bool> has_lapsed_in_slot(const Word& slot, std::int64_t now);
  // The same for a slot that contains its own state.
  static bool has_lapsed_in_slot(const Known& known, std::uint64_t state, std::int64_t now) {
    now = recently(now);
    if (known.packing.kind == Kind::bucket)
      return algorithm::bucket_debt(unpack_bucket(state), known.limit.rate, now) == 0;
    if (known.packing.kind == Kind::fixed) {
      const algorithm::FixedWindow window = unpack_fixed(state, known.packing);
      return window.count == 0 || algorithm::fixed_window_end(window, known.limit, now) <= now;
    }
    if (known.packing.kind == Kind::compact) {
      return algorithm::sliding_window_roll(unpack_compact(state, known.packing), known.limit.period_us, now).used() ==
             0;
    }
    return used_of(unpack_sliding(state, known.packing), known.limit.period_us, now) == 0;
  }
  bool has_lapsed_in_block(const Word& slot, std::int64_t now);

  // What a reservation's slot and block say. Nothing if they do not belong together: the table is damaged, or the
  // reservation was settled meanwhile.
  struct ReservationRead {
    Reserved reserved;
    std::optional<Block> block;
    Word block_word{};  // what the block's state unit contained
  };
  std::optional<ReservationRead> read_reservation(const Word& slot);

  SlotUse use_of(const Word& slot) {
    const std::uint32_t number = limit_of(slot.tag);
    if (slot.tag == 0) return SlotUse::none;
    if (is_ticket(number)) return SlotUse::ticket;
    const Known* const known = number == kInBlock ? nullptr : registry_.known(number);
    if (known == nullptr || known->packing.kind == Kind::holds) return SlotUse::kept;
    return is_floor(slot, *known) ? SlotUse::floor : SlotUse::key;
  }

  // The limit of a number; null if there is none.
  const Known* known(std::uint32_t number) { return registry_.known(number); }

  // The number of a limit's logs that are kept as two counts; 0 if they cannot be.
  std::uint32_t compact_number(const Known& known) {
    const bool fits = packing_of(known.limit, Form::compact).fits_slot;
    return fits ? registry_.number_of(known.limit, actor_.who(), known.family, Form::compact) : 0;
  }

  // find_hold()
  //
  // The unit of a hold in a block whose state unit contained `word`; null if the hold is no longer there.
  Unit* find_hold(const Block& block, const Word& word, std::string_view id);

  // The block that a slot refers to, if any.
  std::optional<Block> block_of(const Word& slot);

 private:
  std::optional<Limit> limit_in_block(const Block& block);
  std::optional<Block> block_at(std::uint64_t state);
  Content read_summary(const Known& known, std::uint64_t summary);
  // The limit of a slot that contains its own state.
  const Known* known_in_slot(const Word& slot) {
    const Known* known = registry_.known(limit_of(slot.tag));
    return known != nullptr && known->packing.fits_slot ? known : nullptr;
  }
  std::optional<TableCell::State> state_in_block(const Limit& limit, const Packing& packing, const Block& block,
                                                 const Word& word);
  algorithm::Holds read_holds(const Block& block, const Word& word);

  Actor& actor_;
  Registry& registry_;
};

// Permits in flight in a block: how many, and when the last expires; then a unit for each.
Word holds_word(const algorithm::Holds& holds);
void write_holds(Actor& actor, Line& block, const algorithm::Holds& holds);
unsigned holds_class(std::size_t count);
// The unit of a hold after it was released in place: only its end remains.
Word released_hold(const Word& hold);

// The limit that these numbers make, without a calendar. Nothing if they belong to no limit.
std::optional<Limit> made_again(const Limit& limit);

// A limit without a number, in the head of a block. A calendar's limit also takes the line after it.
void write_limit(Actor& actor, Line& head, const Limit& limit);

}  // namespace weir::table
