// See slot.h. Every number that is read from a block is bounded, because it may mix an old and a new content of the
// block.

#include "table/slot.h"

#include <algorithm>
#include <cstring>

#include "table/floor.h"

namespace weir::table {
namespace {

constexpr unsigned kPermitBits = 41, kPeriodBits = 49, kExpiryBits = 53, kCountBits = 17, kAlgorithmBits = 3;
constexpr unsigned kCalendarBits = 3, kZoneBits = 6;  // the unit + 1, and the bytes of the zone's name
constexpr unsigned kPhaseAt = kPermitBits + kAlgorithmBits, kCalendarAt = kPhaseAt + kPeriodBits;
constexpr std::size_t kZoneInUnit = 15;
static_assert(kCalendarAt + kCalendarBits + kZoneBits <= kBitsInWord && kZoneMax <= 4 * kZoneInUnit);
constexpr std::int64_t kTicketStep_us = 128'000'000;
constexpr unsigned kTicketStepShift = 41, kTicketStepBits = 22;
constexpr std::uint64_t kTicketStepMask = (std::uint64_t{1} << kTicketStepBits) - 1;
constexpr std::uint64_t kTimeless = std::uint64_t{1} << 63;  // a reservation with its amount in the slot
constexpr std::int64_t kTicketStepsMax = kPeriodMax.count() / kTicketStep_us + 2;  // of a new reservation
constexpr unsigned kChargedBits = 52, kRateBits = 12, kNameBits = 50;
static_assert(kTicketStepsMax < std::int64_t{1} << kTicketStepBits);
constexpr unsigned kIdBits = 62, kEndBits = 50, kCostBits = 14;  // of a hold
static_assert(kIdBits + kEndBits + kCostBits <= kBitsInWord);
Unit& hold_unit(Line& block, std::size_t i) { return (&block + 1 + i / 4)->units[i % 4]; }

std::uint64_t id_in_unit(std::string_view id) {
  std::uint64_t out = 0;
  std::memcpy(&out, id.data(), std::min(sizeof out, id.size()));
  return out;
}

// A state that takes one word.
TableCell::State unpack(Bits bits, const Packing& packing) {
  if (packing.kind == Kind::bucket) return unpack_bucket(bits);
  if (packing.kind == Kind::fixed) return unpack_fixed(bits, packing);
  if (packing.kind == Kind::compact) return unpack_compact(bits, packing);
  return unpack_sliding(bits, packing);
}

// As many as the state unit says, but at most the capacity of the block.
std::size_t holds_in(const Block& block, const Word& word) {
  const std::size_t room = std::min<std::size_t>(4 * ((std::size_t{1} << block.block_class) - 1), kConcurrentMax);
  return std::min<std::size_t>(field(bits_of(word), kExpiryBits, kCountBits), room);
}

// The name of a zone is in the line after the head, 15 bytes to a unit.
void write_zone(Actor& actor, Line& line, const std::string& zone) {
  for (std::size_t i = 0; i * kZoneInUnit < zone.size(); ++i) {
    Bits bits = 0;
    for (std::size_t j = 0; j < std::min(kZoneInUnit, zone.size() - i * kZoneInUnit); ++j) {
      bits |= Bits{static_cast<unsigned char>(zone[i * kZoneInUnit + j])} << (8 * j);
    }
    actor.put(line.units[i], word_of(bits));
  }
}

std::string read_zone(Actor& actor, Line& line, std::size_t bytes) {
  std::string zone(std::min(bytes, kZoneMax), '\0');
  Bits bits = 0;
  for (std::size_t i = 0; i < zone.size(); ++i) {
    if (i % kZoneInUnit == 0) bits = bits_of(actor.read(line.units[i / kZoneInUnit]));
    zone[i] = static_cast<char>(field(bits, static_cast<unsigned>(8 * (i % kZoneInUnit)), 8));
  }
  return zone;
}

}  // namespace

Counters counters_of(Actor& actor) {
  const Region& region = actor.region();
  Counters counters{.swept = load(region.header().swept)};
  for (std::uint64_t who = 0; who < kParticipants; ++who) {
    Participant& one = region.participant(who);
    counters.evicted += actor.read(one.tally).tag >> 2;
    counters.early += load(one.early);
    counters.no_room += load(one.no_room);
    counters.compacted += load(one.compacted);
  }
  return counters;
}

std::uint64_t reservation_state(std::uint64_t line, std::uint64_t change, std::int64_t expires_us) {
  constexpr std::uint64_t kChangeMask = (std::uint64_t{1} << (kTicketStepShift - kHandleBits)) - 1;
  const auto step = static_cast<std::uint64_t>(algorithm::div_ceil(expires_us, kTicketStep_us)) & kTicketStepMask;
  return line | (change & kChangeMask) << kHandleBits | step << kTicketStepShift;
}

// In version 1 the amount had the same 41 bits, and the step the 23 above them.
std::uint64_t reservation_without_time(std::uint64_t version_1_state) { return version_1_state | kTimeless; }

bool is_in_block(const Word& ticket) { return limit_of(ticket.tag) == kReservation && (ticket.state & kTimeless) == 0; }

bool is_ticket_over(std::uint32_t kind, std::uint64_t state, std::int64_t now) {
  if (kind == kRequest) return static_cast<std::int64_t>(state) <= now;
  const auto step = static_cast<std::uint64_t>(now / kTicketStep_us);
  const std::uint64_t left = ((state >> kTicketStepShift) - step) & kTicketStepMask;  // modulo 17 years
  return left == 0 || left > static_cast<std::uint64_t>(kTicketStepsMax);
}

std::int64_t ticket_left_us(std::uint32_t kind, std::uint64_t state, std::int64_t now) {
  if (kind == kRequest) return std::max<std::int64_t>(0, static_cast<std::int64_t>(state) - now);
  const auto step = static_cast<std::uint64_t>(now / kTicketStep_us);
  const auto left = static_cast<std::int64_t>(((state >> kTicketStepShift) - step) & kTicketStepMask);
  return left * kTicketStep_us - now % kTicketStep_us;
}

// The state unit contains the amount and the time. The other units say which ticket it belongs to and what was
// charged. The name reveals a block that a machine crash has left as another ticket's.
void write_reservation(Actor& actor, Line& block, std::uint64_t ticket, const Reserved& reserved) {
  const auto number = [](std::int64_t value) { return Bits{static_cast<std::uint64_t>(value)}; };
  actor.put(block.units[kParameters0],
            word_of(Bits{reserved.name >> kNameShift} | Bits{ticket >> kNameShift} << kNameBits));
  actor.put(block.units[kParameters1],
            word_of(number(reserved.charged.rate) | number(reserved.charged.weight) << kRateBits));
  actor.put(block.units[kState0], word_of(number(reserved.amount) | number(reserved.charged.at_us) << kPermitBits));
  actor.put(block.units[kState1], {0, 0});  // the smallest class
}

std::optional<SlotReader::ReservationRead> SlotReader::read_reservation(const Word& slot) {
  ReservationRead read;
  if (!is_in_block(slot)) {
    read.reserved.amount = static_cast<std::int64_t>(slot.state & ((std::uint64_t{1} << kPermitBits) - 1));
    return read;
  }
  read.block = block_of(slot);
  if (!read.block) return {};
  Line& line = actor_.region().line(read.block->line);
  read.block_word = actor_.read(line.units[kState0]);
  const Bits whose = bits_of(actor_.read(line.units[kParameters0]));
  const Bits drain = bits_of(actor_.read(line.units[kParameters1])), what = bits_of(read.block_word);
  if (actor_.is_damaged() || field(whose, kNameBits, kNameBits) != slot.tag >> kNameShift) return {};
  read.reserved = {.amount = static_cast<std::int64_t>(field(what, 0, kPermitBits)),
                   .charged = {.at_us = static_cast<std::int64_t>(field(what, kPermitBits, kChargedBits)),
                               .rate = static_cast<std::int64_t>(field(drain, 0, kRateBits)),
                               .weight = static_cast<std::int64_t>(field(drain, kRateBits, 53))},
                   .name = field(whose, 0, kNameBits) << kNameShift};
  return read;
}

Word holds_word(const algorithm::Holds& holds) {
  const std::int64_t last = holds.empty() ? 0 : holds.back().expires_us;
  return word_of(Bits{static_cast<std::uint64_t>(last)} | Bits{holds.size()} << kExpiryBits);
}

unsigned holds_class(std::size_t count) {
  unsigned block_class = 1;
  while (block_class < kClasses && 4 * ((std::size_t{1} << block_class) - 1) < count) ++block_class;
  return block_class;
}

// A hold in a unit: 62 bits of its id's hash, then its end and its cost.
void write_holds(Actor& actor, Line& block, const algorithm::Holds& holds) {
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const std::uint64_t id = id_in_unit(holds[i].id);
    const auto cost = static_cast<std::uint64_t>(holds[i].cost), end = static_cast<std::uint64_t>(holds[i].expires_us);
    actor.put(hold_unit(block, i),
              word_of(Bits{id} | Bits{cost << kEndBits | (end & ((std::uint64_t{1} << kEndBits) - 1))} << kIdBits));
  }
}

algorithm::Holds SlotReader::read_holds(const Block& block, const Word& word) {
  const Bits bits = bits_of(word);
  const auto last = static_cast<std::int64_t>(field(bits, 0, kExpiryBits));
  algorithm::Holds holds(holds_in(block, word));
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const Bits hold = bits_of(actor_.read(hold_unit(actor_.region().line(block.line), i)));
    const std::uint64_t id = field(hold, 0, kIdBits);
    const std::int64_t before =  // ends are stored modulo 2^50, relative to the last
        static_cast<std::int64_t>((static_cast<std::uint64_t>(last) - field(hold, kIdBits, kEndBits)) &
                                  ((std::uint64_t{1} << kEndBits) - 1));
    holds[i].expires_us = std::max<std::int64_t>(0, last - before);
    holds[i].cost = static_cast<std::int64_t>(field(hold, kIdBits + kEndBits, kCostBits));
    holds[i].id.assign(reinterpret_cast<const char*>(&id), sizeof id);
  }
  std::erase_if(holds, [](const algorithm::Hold& hold) { return hold.cost == 0; });  // released in place
  return holds;
}

// Searches from the end, because an expired hold may have the same id.
Unit* SlotReader::find_hold(const Block& block, const Word& word, std::string_view id) {
  const std::uint64_t wanted = id_in_unit(id);
  for (std::size_t i = holds_in(block, word); i > 0; --i) {
    Unit& unit = hold_unit(actor_.region().line(block.line), i - 1);
    const Bits hold = bits_of(actor_.read(unit));
    if (field(hold, 0, kIdBits) == wanted && field(hold, kIdBits + kEndBits, kCostBits) != 0) return &unit;
  }
  return nullptr;
}

Word released_hold(const Word& hold) { return word_of(Bits{field(bits_of(hold), kIdBits, kEndBits)} << kIdBits); }

void write_limit(Actor& actor, Line& head, const Limit& limit) {
  const auto permits = static_cast<std::uint64_t>(limit.permits), period = static_cast<std::uint64_t>(limit.period_us);
  const auto capacity = static_cast<std::uint64_t>(limit.capacity);
  actor.put(head.units[kParameters0], word_of(Bits{permits} | Bits{period} << kPermitBits));
  const auto algorithm = static_cast<std::uint64_t>(limit.algorithm),
             phase = static_cast<std::uint64_t>(limit.phase_us);
  const std::uint64_t calendar = limit.calendar ? static_cast<std::uint64_t>(limit.calendar->unit()) + 1 : 0;
  const std::uint64_t zone_bytes = limit.calendar ? limit.calendar->zone_name().size() : 0;
  actor.put(head.units[kParameters1],
            word_of(Bits{capacity} | Bits{algorithm} << kPermitBits | Bits{phase} << kPhaseAt |
                    Bits{calendar} << kCalendarAt | Bits{zone_bytes} << (kCalendarAt + kCalendarBits)));
  if (limit.calendar) write_zone(actor, *(&head + 1), limit.calendar->zone_name());
}

std::optional<Limit> made_again(const Limit& limit) {
  auto made = algorithm::is_bucket(limit.algorithm)
                  ? algorithm::make_bucket(limit.algorithm, limit.permits, limit.period_us, limit.capacity)
                  : algorithm::make_window(limit.algorithm, limit.permits, limit.period_us);
  if (made && limit.phase_us != 0) made = phased(*made, limit.phase_us);
  return made ? std::optional(*std::move(made)) : std::nullopt;
}

std::optional<Limit> SlotReader::limit_in_block(const Block& block) {
  Line& head = actor_.region().line(block.line);
  const Bits first = bits_of(actor_.read(head.units[kParameters0]));
  const Bits second = bits_of(actor_.read(head.units[kParameters1]));
  const auto permits = static_cast<std::int64_t>(field(first, 0, kPermitBits));
  const auto period = static_cast<std::int64_t>(field(first, kPermitBits, kPeriodBits));
  const auto capacity = static_cast<std::int64_t>(field(second, 0, kPermitBits));
  const std::uint64_t algorithm = field(second, kPermitBits, kAlgorithmBits);
  const auto phase = static_cast<std::int64_t>(field(second, kPhaseAt, kPeriodBits));
  if (const std::uint64_t calendar = field(second, kCalendarAt, kCalendarBits); calendar != 0) {
    if (calendar > static_cast<std::uint64_t>(CalendarUnit::year) + 1 || block.block_class == 0) return {};
    const std::size_t zone_bytes = field(second, kCalendarAt + kCalendarBits, kZoneBits);
    const std::string zone = read_zone(actor_, *(&head + 1), zone_bytes);
    Limit limit{.algorithm = Algorithm::fixed_window,
                .permits = permits,
                .capacity = permits,
                .calendar = registry_.calendar_of(static_cast<CalendarUnit>(calendar - 1), zone)};
    if (!algorithm::is_sound(limit)) return {};
    return limit;
  }
  if (algorithm >= std::size(kAlgorithms) || period <= 0) return {};
  return made_again({.algorithm = static_cast<Algorithm>(algorithm),
                     .permits = permits,
                     .period_us = period,
                     .phase_us = phase,
                     .capacity = capacity});
}

std::optional<Block> SlotReader::block_at(std::uint64_t state) {
  const std::uint64_t line = line_of(state);
  if (line >= actor_.region().arena_lines()) return {};
  const std::uint64_t block_class = actor_.read(actor_.region().line(line).units[kState1]).tag >> 2;
  const Block block{line, static_cast<unsigned>(std::min<std::uint64_t>(block_class, kClasses))};
  if (!is_block(actor_.region(), block)) return {};
  return block;
}

std::optional<TableCell::State> SlotReader::state_in_block(const Limit& limit, const Packing& packing,
                                                           const Block& block, const Word& word) {
  if (packing.kind == Kind::holds) return read_holds(block, word);
  if (packing.kind == Kind::compact) return {};
  if (packing.kind != Kind::log) return unpack(bits_of(word), packing);
  auto log = RingLog::read(actor_, actor_.region().line(block.line), word, block.block_class, log_format(limit));
  if (!log) return {};
  return *log;
}

std::optional<Content> SlotReader::read(const Word& slot) {
  const std::uint32_t number = limit_of(slot.tag);
  if (const Known* known = known_in_slot(slot)) {
    return Content{known->packing, {}, {}, TableCell(known->limit, unpack(slot.state, known->packing))};
  }
  const Known* const known = number == kInBlock ? nullptr : registry_.known(number);
  if (known != nullptr && is_floor(slot, *known)) return read_summary(*known, slot.state);
  const auto block = block_at(slot.state);
  if (!block) return {};
  Line& head = actor_.region().line(block->line);
  std::optional<Limit> limit;
  if (number == kInBlock) {
    limit = limit_in_block(*block);
  } else if (known != nullptr) {
    limit = known->limit;
  }
  if (!limit) return {};
  const Packing packing = packing_of(*limit);
  const Word word = actor_.read(head.units[kState0]);
  auto state = state_in_block(*limit, packing, *block, word);
  if (!state || actor_.is_damaged()) return {};
  return Content{packing, block, word, TableCell(*limit, *std::move(state))};
}

std::optional<Block> SlotReader::block_of(const Word& slot) {
  const std::uint32_t number = limit_of(slot.tag);
  if (is_in_block(slot)) {
    const auto block = block_at(slot.state);
    return block && block->block_class == 0 ? block : std::nullopt;
  }
  if (slot.tag == 0 || is_ticket(number) || known_in_slot(slot) != nullptr) return {};
  const Known* const known = number == kInBlock ? nullptr : registry_.known(number);
  if (number != kInBlock && (known == nullptr || is_floor(slot, *known))) return {};
  return block_at(slot.state);
}

// The whole count as one charge, at the latest time that any part of it can have.
Content SlotReader::read_summary(const Known& known, std::uint64_t summary) {
  const Summary floor = unpack_summary(summary);
  const std::int64_t count = std::min(floor.count, known.limit.capacity);
  if (known.packing.kind == Kind::fixed) {  // a calendar's time is by its own clock
    const Limit& limit = known.limit;
    const algorithm::Window window = limit.period_us == 0
                                         ? limit.calendar->window_at(std::min(floor.at_us, kTimeEnd - 1))
                                         : algorithm::fixed_window_at(limit, floor.at_us);
    return Content{
        known.packing, {}, {}, TableCell(limit, algorithm::FixedWindow{count > 0 ? window.end_us : 0, count})};
  }
  TableCell cell(known.limit);
  if (count > 0) cell.commit(known.limit, cell.decide(floor.at_us, count));
  return Content{known.packing, {}, {}, std::move(cell)};
}

bool SlotReader::has_lapsed_in_block(const Word& slot, std::int64_t now) {
  now = recently(now);
  auto content = read(slot);
  if (!content) return false;
  if (content->packing.kind == Kind::holds) {
    return static_cast<std::int64_t>(field(bits_of(content->block_word), 0, kExpiryBits)) <= now;
  }
  content->cell.prepare(now);
  return content->cell.decide(now, 0).decision.reset_after.count() == 0 && !actor_.is_damaged();
}

std::optional<bool> SlotReader::has_lapsed_in_slot(const Word& slot, std::int64_t now) {
  const std::uint32_t number = limit_of(slot.tag);
  if (is_ticket(number)) return is_ticket_over(number, slot.state, recently(now));
  const Known* known = known_in_slot(slot);
  if (known == nullptr) return {};
  return has_lapsed_in_slot(*known, slot.state, now);
}

}  // namespace weir::table
