// The second half of a transaction: the next state of each key, as changes of words. See transaction.h.
//
// This writes only to blocks that belong to this participant alone. The changes wait for commit().

#include <algorithm>

#include "table/sweep.h"
#include "table/transaction.h"

// Tests that choose schedules define their own numbers.
#ifndef WEIR_TABLE_SPARE_PART
#define WEIR_TABLE_SPARE_PART 8
#define WEIR_TABLE_FREED_MAX 2
#endif

namespace weir::table {
namespace {

// When a retry makes sense: if blocks are missing, and if tickets have all the slots that they may have.
constexpr std::int64_t kNoBlockWait_us = 1'000'000, kTicketWaitMax_us = 60'000'000;

// The last eighth of the arena is for keys that grow, and for families with less than their part of the blocks. Keys
// that are never evicted get none of the last sixteenth. Logs in two counts get blocks again while a quarter is free.
constexpr std::uint64_t kSparePart = WEIR_TABLE_SPARE_PART, kSparePartOfKept = 2 * kSparePart;
constexpr std::uint64_t kAmplePart = kSparePart / 2;

// How often one request may make other keys give up their blocks. Otherwise it could empty a page without success.
std::size_t freed_max() { return WEIR_TABLE_FREED_MAX; }

// Never the same number twice in a row for one slot: a block that is reused under the same key must not look
// unchanged.
std::uint64_t next_change(Actor& actor, const Word& seen, bool has_block) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << (64 - kHandleBits)) - 1;
  if (has_block) return (change_of(seen.state) + 1) & kMask;
  return (actor.who() << 28 ^ load(actor.record().status)) & kMask;
}

unsigned class_of(const TableCell::State& state, const Limit& limit) {
  if (const auto* log = std::get_if<RingLog>(&state)) {
    // Grows by two sizes at a time, ending exactly at the last one: outgrown blocks stay unused when all keys grow.
    const unsigned needed = log_class(log->size(), log_format(limit));
    const unsigned last = log_class(std::min(limit.permits, limit.events_max), log_format(limit));
    return needed < last && (last - needed) % 2 != 0 ? needed + 1 : needed;
  }
  if (const auto* holds = std::get_if<algorithm::Holds>(&state)) return holds_class(holds->size());
  return 0;
}

// Whether the head of a block can represent this limit.
bool is_reproducible(const Limit& limit) {
  if (limit.calendar) {
    return limit.algorithm == Algorithm::fixed_window && limit.calendar->zone_name().size() <= kZoneMax &&
           limit.capacity == limit.permits;
  }
  const auto made = made_again(limit);
  return made && *made == limit;
}

}  // namespace

// The limit of the state to store: the previous one, or the version that admitted.
const Limit& Transaction::limit_of_next(const Case& one, const Debit& debit) {
  const Limit& own = one.content->cell.limit();
  return one.changed && one.outcome.converts && one.has_other_limit ? *debit.limit : own;
}

Transaction::Outcome Transaction::store(std::size_t i) {
  Case& one = cases_[i];
  const Debit& debit = debits_[i];
  if (!one.content || (!one.changed && !one.moved)) return stay(one);
  if (one.is_fresh()) return one.place.present ? replace_slot(i, {}, {}) : stay(one);
  if (one.place.unit == nullptr) return need_room(i, Eviction::Wanted::slot);
  if (one.counts() != nullptr) return store_compact(i);
  const Limit& limit = limit_of_next(one, debit);
  const bool is_own = &limit == &one.content->cell.limit();
  std::uint32_t number = is_own ? one.number : 0;
  if (number == 0) number = registry_.number_of(limit, actor_.who(), debit.family);
  if (number == 0) number = kInBlock;
  const Packing packing = is_own ? one.content->packing : packing_of(limit);
  if (number != kInBlock && packing.fits_slot) {
    return replace_slot(i, {tag_of(debit.name.name, number), next_in_slot(one, packing)}, {});
  }
  return store_next_in_block(i, number);
}

// Holds have been changed in place. For all others, the outcome has the state to store if anything was charged.
Transaction::Outcome Transaction::store_next_in_block(std::size_t i, std::uint32_t number) {
  const Case& one = cases_[i];
  if (!one.changed || one.content->packing.kind == Kind::holds) {
    return store_in_block(i, one.content->cell.state(), number);
  }
  TableCell next = one.content->cell;
  next.commit(next.limit(), one.outcome);
  return store_in_block(i, next.state(), number);
}

// The two counts stay, unless they grow and blocks are available again.
Transaction::Outcome Transaction::store_compact(std::size_t i) {
  Case& one = cases_[i];
  const Debit& debit = debits_[i];
  const algorithm::CompactLog counts = one.changed ? std::get<algorithm::CompactLog>(one.outcome.next) : *one.counts();
  const Limit& limit = limit_of_next(one, debit);
  const bool fits = packing_of(limit, Form::compact).fits_slot;
  if (one.changed && one.cost > 0 && (!fits || !is_scarce(actor_, kAmplePart))) {
    if (const auto outcome = store_expanded(i, limit)) return *outcome;
  }
  if (const auto outcome = store_counts(i, counts)) return *outcome;
  // No number is free for this version of the limit.
  return debit.act == Act::charge ? deny_for_room(i, kNoBlockWait_us) : change_nothing(i);
}

// Stores a log whose events have the latest times that they may have had. `now_` may be earlier than those, so the
// charge counts from a new reading of the clock: what is admitted now is admitted then. If that is much later, the
// request starts again, so that its other keys are charged at that time, too. Nothing if the limit has no number.
std::optional<Transaction::Outcome> Transaction::store_expanded(std::size_t i, const Limit& limit) {
  Case& one = cases_[i];
  const Debit& debit = debits_[i];
  const std::uint32_t number = registry_.number_of(limit, actor_.who(), debit.family);
  if (number == 0) return {};
  const std::int64_t at = std::max(now_, read_clock());
  if (at - now_ > kRecent_us) {
    now_ = at;
    return Outcome::again;
  }
  one.charged_us = at;
  const auto counts = std::get<algorithm::CompactLog>(one.content->cell.decide(*debit.limit, at, one.cost).next);
  const RingLog log = algorithm::expand<RingLog>(counts, limit.period_us, at);
  answer_from(i, log);
  return store_in_block(i, log, number);
}

// Nothing if the limit gets no number for this form, or if its counts do not fit a slot.
std::optional<Transaction::Outcome> Transaction::store_counts(std::size_t i, const algorithm::CompactLog& counts) {
  Case& one = cases_[i];
  const Debit& debit = debits_[i];
  const Limit& limit = limit_of_next(one, debit);
  if (!packing_of(limit, Form::compact).fits_slot) return {};
  const bool is_own = one.counts() != nullptr && one.number != 0 && &limit == &one.content->cell.limit();
  // A log that stays under its limit keeps its family, because a settlement may not know it.
  const Known* const known = &limit == &one.content->cell.limit() ? reader_.known(one.number) : nullptr;
  const std::uint64_t family = known != nullptr ? known->family : debit.family;
  const std::uint32_t number = is_own ? one.number : registry_.number_of(limit, actor_.who(), family, Form::compact);
  if (number == 0) return {};
  one.is_compact = true;
  answer_from(i, counts);
  return replace_slot(i, {tag_of(debit.name.name, number), pack_compact(counts, limit)}, {});
}

// Answers with the remaining permits and the reset time of the state that is stored instead of the one that decided.
void Transaction::answer_from(std::size_t i, TableCell::State state) {
  Case& one = cases_[i];
  const Debit& debit = debits_[i];
  if (!one.changed) return;
  const TableCell cell(limit_of_next(one, debit), std::move(state));
  const Decision left = cell.decide(debit.limit != nullptr ? *debit.limit : cell.limit(), now_, 0).decision;
  one.decision().remaining = left.remaining;
  one.decision().reset_after = left.reset_after;
}

std::uint64_t Transaction::next_in_slot(const Case& one, const Packing& packing) {
  return static_cast<std::uint64_t>(one.changed ? pack(one.outcome.next, packing)
                                                : pack(one.content->cell.state(), packing));
}

Transaction::Outcome Transaction::store_in_block(std::size_t i, const TableCell::State& state, std::uint32_t number) {
  Case& one = cases_[i];
  const Debit& debit = debits_[i];
  const Limit& limit = limit_of_next(one, debit);
  const Packing packing = &limit == &one.content->cell.limit() ? one.content->packing : packing_of(limit);
  if (number == kInBlock && !is_reproducible(limit)) {
    return fail_with(ErrorCode::exhausted,
                     "too many different limits are in use: the table cannot store this one; "
                     "use fewer limits");
  }
  const auto* log = std::get_if<RingLog>(&state);
  // The head of a block names the limit if the slot does not.
  const bool is_head_right =
      number == kInBlock ? one.number == kInBlock && &limit == &one.content->cell.limit() : one.number != kInBlock;
  const bool is_in_place = !log || (log->fits() && log->format() == log_format(limit));
  if (one.content->block && is_head_right && packing.kind != Kind::holds && is_in_place) {
    return store_in_place(one, state, packing, number);
  }
  const bool is_kept = number == kInBlock || packing.kind == Kind::holds;
  if (!one.place.present) {
    const Outcome outcome = spare_blocks(i, is_kept);
    if (outcome != Outcome::done || need_) return outcome;
  }
  has_blocks_ = true;
  const unsigned block_class = std::max(class_of(state, limit), number == kInBlock && limit.calendar ? 1u : 0u);
  if (block_class >= kClasses || !take_block_or_reclaim(static_cast<std::uint32_t>(i), block_class)) {
    if (actor_.is_damaged()) return fail_damaged();
    if (debit.act == Act::release && one.content->block) return release_in_place(i);
    if (!one.place.present && !is_kept && freed_ < freed_max()) {
      ++freed_;
      return need_room(i, Eviction::Wanted::block);
    }
    if (log && !is_kept) {
      if (const auto outcome = store_counts(i, algorithm::compact_log_of(*log, limit.period_us, now_))) return *outcome;
    }
    if (log && one.content->block && debit.act == Act::charge) return deny_growth(i, limit);
    if (debit.act == Act::charge || debit.act == Act::acquire) return deny_for_room(i, kNoBlockWait_us);
    return change_nothing(i);
  }
  const Block block = *pending_block(actor_, static_cast<std::uint32_t>(i));
  Line& head = actor_.region().line(block.line);
  if (number == kInBlock) write_limit(actor_, head, limit);
  actor_.put(head.units[kState1], {std::uint64_t{block_class} << 2, 0});
  if (log) {
    actor_.put(head.units[kState0], log->copy(actor_, head, log_format(limit)));
  } else if (const auto* holds = std::get_if<algorithm::Holds>(&state)) {
    write_holds(actor_, head, *holds);
    actor_.put(head.units[kState0], holds_word(*holds));
  } else {
    actor_.put(head.units[kState0], word_of(pack(state, packing)));
  }
  const std::uint64_t change = next_change(actor_, one.place.seen, one.content->block.has_value());
  return replace_slot(i, {tag_of(debit.name.name, number), block_state(block.line, change)}, block);
}

// A new key is about to take a block.
Transaction::Outcome Transaction::spare_blocks(std::size_t i, bool is_kept) {
  if (is_kept) return are_blocks_scarce(kSparePartOfKept) ? deny_for_room(i, kNoBlockWait_us) : Outcome::done;
  if (spared_ == debits_.size() || !are_blocks_scarce(kSparePart)) return Outcome::done;
  ++spared_;
  return need_room(i, Eviction::Wanted::own_block);
}

bool Transaction::are_blocks_scarce(std::uint64_t part) {
  if (!is_scarce(actor_, part)) return false;
  if (!reclaim_blocks(actor_, reader_, now_)) return true;
  if (!is_scarce(actor_, part)) return false;
  rest_from_reclaiming(actor_.region(), now_);
  return true;
}

// A refund rewrites the log in another block. Without a block, the permits stay used.
Transaction::Outcome Transaction::change_nothing(std::size_t i) {
  Case& one = cases_[i];
  one.changed = false;
  one.returned = 0;
  charge_nothing(one, ruling_limit(debits_[i], *one.content));
  return store(i);
}

bool Transaction::take_block_or_reclaim(std::uint32_t place, unsigned block_class) {
  if (take_block(actor_, place, block_class)) return true;
  if (actor_.is_damaged()) return false;
  if (!reclaim_blocks(actor_, reader_, now_)) return false;
  if (take_block(actor_, place, block_class)) return true;
  rest_from_reclaiming(actor_.region(), now_);
  return false;
}

// The block stays, and something in it changes. The slot gets another word, so that a thread that has read the block
// notices.
bool Transaction::change_slot_of_block(const Case& one, std::uint64_t tag) {
  const Word& seen = one.place.seen;
  const Word next{tag, block_state(one.content->block->line, next_change(actor_, seen, true))};
  return changes_.set(actor_.region().number_of(*one.place.unit), seen, next);
}

Transaction::Outcome Transaction::store_in_place(Case& one, const TableCell::State& state, const Packing& packing,
                                                 std::uint32_t number) {
  if (!change_slot_of_block(one, tag_of(name_of(one.place.seen.tag), number))) return Outcome::again;
  const Region& region = actor_.region();
  Line& head = region.line(one.content->block->line);
  const auto* log = std::get_if<RingLog>(&state);
  const Word word = log ? log->state() : word_of(pack(state, packing));
  if (!changes_.set(region.number_of(head.units[kState0]), one.content->block_word, word)) return Outcome::again;
  if (!log) return Outcome::done;
  for (const Patch& patch : log->patches()) {
    const std::uint64_t unit = region.number_of(*patch.unit);
    const Entry* entry = changes_.find(unit);
    const Word old = entry != nullptr ? entry->old : actor_.read(*patch.unit);
    if (!changes_.set(unit, old, patch(entry != nullptr ? entry->next : old))) return Outcome::again;
  }
  return actor_.is_damaged() ? fail_damaged() : Outcome::done;
}

// For a release without a block for the remaining holds: the released hold loses its id and its cost in place. A
// reader of the block skips it, and a writer that copies the holds into another block drops it.
Transaction::Outcome Transaction::release_in_place(std::size_t i) {
  const Case& one = cases_[i];
  Unit* const hold = reader_.find_hold(*one.content->block, one.content->block_word, debits_[i].id);
  if (hold == nullptr) return actor_.is_damaged() ? fail_damaged() : Outcome::again;
  const Word held = actor_.read(*hold);
  if (!change_slot_of_block(one, one.place.seen.tag)) return Outcome::again;
  const std::uint64_t unit = actor_.region().number_of(*hold);
  return changes_.set(unit, held, released_hold(held)) ? Outcome::done : Outcome::again;
}

// The slot gets another word, and its previous content is removed. Its old block goes to this participant's pending
// unit, in exchange for the new one.
Transaction::Outcome Transaction::replace_slot(std::size_t i, const Word& next,
                                               const std::optional<Block>& fresh_block) {
  Case& one = cases_[i];
  const Region& region = actor_.region();
  const Word& old = one.place.seen;
  const auto old_block = reader_.block_of(old);
  if (fresh_block || old_block) {
    const Outcome outcome = set_pending(static_cast<std::uint32_t>(i), fresh_block, old_block);
    if (outcome != Outcome::done) return outcome;
  }
  if (!changes_.set(region.number_of(*one.place.unit), old, next)) return Outcome::again;
  keys_added_ += int{is_key(next.tag)} - int{is_key(old.tag)};
  if (one.place.present) return Outcome::done;
  const bool is_held = limit_of(next.tag) == kInBlock || one.content->packing.kind == Kind::holds;
  return insert_under_version(one.place, is_held ? Inserted::held : Inserted::key, i);
}

// An insertion raises the version of its page; two of one request raise it once. Counts the key that it evicts.
Transaction::Outcome Transaction::insert_under_version(const Place& place, Inserted what, std::size_t debit) {
  const Region& region = actor_.region();
  const std::uint64_t version = region.number_of(place.page->version);
  const Entry* entry = changes_.find(version);
  Word next = entry != nullptr ? entry->next : place.version;
  if ((next.tag & kVersionMask) == (place.version.tag & kVersionMask)) next.tag = next_version(next.tag);
  if (what != Inserted::key) {
    const Outcome outcome = count_kept(place, what, debit, next.tag);
    if (outcome != Outcome::done) return outcome;
  }
  if (entry == nullptr) next.state = place.is_turn ? finder_.lines_passed(*place.page) | kFull : place.lines;
  next.state |= place.passed;
  if (!changes_.set(version, place.version, next)) return Outcome::again;
  if (!place.alive) return Outcome::done;
  Unit& tally = actor_.record().tally;
  const Entry* counted = changes_.find(region.number_of(tally));
  const Word old = counted != nullptr ? counted->old : actor_.read(tally);
  const Word base = counted != nullptr ? counted->next : old;
  return changes_.set(region.number_of(tally), old, {base.tag + 4, 0}) ? Outcome::done : Outcome::again;
}

// Slots that are never evicted may take at most a part of the page. The counts may be too high. So when the part
// seems used up, the slots are counted.
Transaction::Outcome Transaction::count_kept(const Place& place, Inserted what, std::size_t debit, std::uint64_t& tag) {
  const bool is_ticket = what == Inserted::ticket;
  const std::uint64_t most = is_ticket ? kTicketsMax : kHeldMax;
  std::uint64_t held = held_in(tag), tickets = tickets_in(tag);
  std::uint64_t& count = is_ticket ? tickets : held;
  if (count >= most) {
    // The tag already includes what this request itself is about to insert, but the slots do not.
    const std::uint64_t own_held = held_in(tag) - std::min(held_in(tag), held_in(place.version.tag));
    const std::uint64_t own_tickets = tickets_in(tag) - std::min(tickets_in(tag), tickets_in(place.version.tag));
    const Eviction::Kept kept = eviction_.recount(*place.page, now_);
    held = kept.held + own_held;
    tickets = kept.tickets + own_tickets;
    if (count >= most) {
      return deny_for_room(debit, is_ticket ? std::min(kept.wait_us, kTicketWaitMax_us) : kNoBlockWait_us);
    }
  }
  ++count;
  tag = with_counts(tag, held, tickets);
  return Outcome::done;
}

// Changes nothing, but what was read must still be true when the request takes effect.
Transaction::Outcome Transaction::stay(const Case& one) {
  if (!one.place.present) return stay_absent(one.place);
  const std::uint64_t number = actor_.region().number_of(*one.place.unit);
  const Entry* entry = changes_.find(number);
  const Word next = entry != nullptr ? entry->next : one.place.seen;
  return changes_.set(number, one.place.seen, next) ? Outcome::done : Outcome::again;
}

Transaction::Outcome Transaction::stay_absent(const Place& place) {
  const std::uint64_t number = actor_.region().number_of(place.page->version);
  const Entry* entry = changes_.find(number);
  return changes_.set(number, place.version, entry != nullptr ? entry->next : place.version) ? Outcome::done
                                                                                             : Outcome::again;
}

// A pending unit has the participant's block `before` the operation, and the freed one `after` it.
Transaction::Outcome Transaction::set_pending(std::uint32_t place, const std::optional<Block>& before,
                                              const std::optional<Block>& after) {
  if (!before && !after) return Outcome::done;
  has_blocks_ = true;
  if (!before) give_block(actor_, place);  // taken by an earlier try
  const Word old = before ? pending_word(*before) : Word{}, next = after ? pending_word(*after) : Word{};
  return changes_.set(actor_.region().number_of(actor_.record().pending[place]), old, next) ? Outcome::done
                                                                                            : Outcome::again;
}

// Reserves the slot of a ticket, so that no key takes it. issue_reservations() writes a reservation's content, once
// it is known that one is issued.
Transaction::Outcome Transaction::store_ticket(std::size_t i) {
  const Ticket& ticket = tickets_[i];
  const Place& place = ticket.place;
  const Region& region = actor_.region();
  if (is_repeated_) return Outcome::done;
  if (ticket.take) return take_ticket(i);
  if (place.unit == nullptr) return need_room(0, place, ticket.name, 0, Eviction::Wanted::slot);
  const bool is_id = ticket.kind == kRequest;
  if (is_id) {  // the slot's previous content may have had a block
    const auto pending = static_cast<std::uint32_t>(debits_.size() + i);
    const Outcome outcome = set_pending(pending, {}, reader_.block_of(place.seen));
    if (outcome != Outcome::done) return outcome;
  }
  const Word next{tag_of(ticket.name.name, ticket.kind), is_id ? static_cast<std::uint64_t>(ticket.expires_us) : 0};
  if (!changes_.set(region.number_of(*place.unit), place.seen, next)) return Outcome::again;
  keys_added_ -= int{is_key(place.seen.tag)};
  return place.present ? Outcome::done : insert_under_version(place, Inserted::ticket, 0);
}

// The operation takes effect only if the slot and its block are still what was read.
Transaction::Outcome Transaction::take_ticket(std::size_t i) {
  const Ticket& ticket = tickets_[i];
  const Region& region = actor_.region();
  if (!changes_.set(region.number_of(*ticket.place.unit), ticket.place.seen, {})) return Outcome::again;
  const auto& block = ticket.read.block;
  if (!block) return Outcome::done;
  const Word& word = ticket.read.block_word;
  if (!changes_.set(region.number_of(region.line(block->line).units[kState0]), word, word)) return Outcome::again;
  return set_pending(static_cast<std::uint32_t>(debits_.size() + i), {}, block);
}

// Each reservation gets a block that says what was charged: its debit, as of now.
Transaction::Outcome Transaction::issue_reservations() {
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    const Ticket& ticket = tickets_[i];
    if (is_repeated_ || ticket.take || ticket.kind != kReservation) continue;
    const auto pending = static_cast<std::uint32_t>(debits_.size() + i);
    has_blocks_ = true;
    if (are_blocks_scarce(kSparePartOfKept) || !take_block_or_reclaim(pending, 0)) {
      if (actor_.is_damaged()) return fail_damaged();
      return deny_for_room(0, kNoBlockWait_us);
    }
    const Block block = *pending_block(actor_, pending);
    const Debit& debit = debits_[i];
    write_reservation(
        actor_, actor_.region().line(block.line), ticket.name.name,
        {debit.cost, algorithm::charged_at(*debit.limit, std::max(now_, cases_[i].charged_us)), debit.name.name});
    const Place& place = ticket.place;
    const std::uint64_t change = next_change(actor_, place.seen, false);
    const Word next{tag_of(ticket.name.name, ticket.kind), reservation_state(block.line, change, ticket.expires_us)};
    if (!changes_.set(actor_.region().number_of(*place.unit), place.seen, next)) return Outcome::again;
    if (const Outcome outcome = set_pending(pending, block, reader_.block_of(place.seen)); outcome != Outcome::done) {
      return outcome;
    }
  }
  return Outcome::done;
}

// The arena is full, so this log cannot store more events than now: one more waits until the oldest leaves. If its
// block has capacity but cannot store this limit, it waits for another block.
Transaction::Outcome Transaction::deny_growth(std::size_t i, const Limit& limit) {
  Case& one = cases_[i];
  Limit crowded = limit;
  crowded.events_max = std::get<RingLog>(one.content->cell.state()).capacity();
  one.outcome = one.content->cell.decide(crowded, now_, one.cost);
  return one.decision().allowed ? deny_for_room(i, kNoBlockWait_us) : Outcome::denied;
}

}  // namespace weir::table
