// See transaction.h. This half decides; transaction_store.cc turns decisions into changes of words.

#include "table/transaction.h"

#include <algorithm>
#include <new>

namespace weir::table {
namespace {

constexpr std::int64_t kNoRoomWait_us = 1'000'000;  // when a retry makes sense
constexpr unsigned kRoomTriesMax = 10'000;          // in a sound page, a key can be evicted after some tries

std::int64_t in_range(std::int64_t now) { return std::clamp<std::int64_t>(now, 0, kTimeEnd - 1); }

// A key's name determines its algorithm: only damage combines it with a state of another algorithm.
bool suits(const Debit& debit, const Content& content) {
  const bool in_flight = content.packing.kind == Kind::holds;
  if (debit.act != Act::forget && in_flight != (debit.act == Act::acquire || debit.act == Act::release)) return false;
  return debit.limit == nullptr || debit.limit->algorithm == content.cell.limit().algorithm;
}

}  // namespace

Transaction::Transaction(Actor& actor, Registry& registry, const Clock& clock, std::span<Debit> debits,
                         std::span<Ticket> tickets, std::int64_t now)
    : actor_(actor),
      registry_(registry),
      clock_(clock),
      debits_(debits),
      tickets_(tickets),
      now_(in_range(now)),
      reader_(actor, registry),
      finder_(actor, reader_),
      eviction_(actor, reader_, finder_) {
  WEIR_ASSERT(debits.size() <= kChargesMax && tickets.size() <= kChargesMax);
  for (const Debit& debit : debits) names_.add(debit.name);
  for (const Ticket& ticket : tickets) names_.add(ticket.name);
}

// Returns blocks that were not needed.
void Transaction::give_blocks() {
  if (!has_blocks_) return;
  for (std::uint32_t i = 0; i < debits_.size() + tickets_.size(); ++i) give_block(actor_, i);
}

Result<Ruling> Transaction::run() {
  const Region& region = actor_.region();
  for (Name* name = names_.begin(); name != names_.end(); ++name) {
    const auto is_same = [&](const Name& other) {
      return other.name == name->name &&
             region.page_of(other.place, other.name) == region.page_of(name->place, name->name);
    };
    if (std::find_if(names_.begin(), name, is_same) != name) {
      return fail(ErrorCode::invalid_argument,
                  "the table cannot distinguish two keys of the request: their hashes collide");
    }
  }
  Outcome outcome = Outcome::again;
  try {
    for (unsigned tries = 0; outcome == Outcome::again; ++tries) outcome = attempt(tries);
  } catch (const std::bad_alloc&) {
    give_blocks();
    throw;
  }
  give_blocks();
  if (outcome == Outcome::failed) return fail(*std::move(error_));
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    debits_[i].decision = cases_[i].decision();
    debits_[i].found = cases_[i].was_alive;
    debits_[i].returned = cases_[i].returned;
    if (outcome == Outcome::done && cases_[i].is_compact) count_compacted(cases_[i]);
  }
  if (outcome == Outcome::denied) count_denial();
  if (outcome == Outcome::missing) return Ruling::missing;
  if (is_repeated_) return Ruling::repeated;
  return outcome == Outcome::done ? Ruling::allowed : Ruling::denied;
}

Transaction::Outcome Transaction::attempt(unsigned tries) {
  changes_.clear();
  cases_.clear();
  keys_added_ = 0;
  rebind_denied_ = is_repeated_ = false;
  need_.reset();
  no_room_.reset();
  if (const Outcome outcome = look_at_tickets(); outcome != Outcome::done) return outcome;
  bool allowed = true;
  for (std::size_t i = 0; i < debits_.size(); ++i) {
    if (const Outcome outcome = look_at(i); outcome != Outcome::done) return outcome;
    decide(cases_[i], debits_[i]);
    if (actor_.is_damaged() || !makes_sense(cases_[i], debits_[i])) return fail_unless_moved(cases_[i]);
    allowed = allowed && cases_[i].decision().allowed;
    // Stored before the next key is looked at, so that it does not take the same slot.
    const Outcome outcome = allowed ? store(i) : Outcome::done;
    if (outcome != Outcome::done && outcome != Outcome::denied) return outcome;
    allowed = allowed && outcome == Outcome::done;
  }
  if (!allowed || no_room_) return deny(tries);
  if (need_) return make_room(tries);
  if (!tickets_.empty()) {
    const Outcome outcome = issue_reservations();
    if (outcome != Outcome::done) return outcome == Outcome::denied ? deny(tries) : outcome;
  }
  if (commit(tries)) return Outcome::done;
  if (actor_.is_damaged()) return fail_damaged();
  return rebind_denied_ ? deny(tries) : Outcome::again;
}

Transaction::Outcome Transaction::look_at_tickets() {
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    Ticket& ticket = tickets_[i];
    Place& place = ticket.place;
    place = finder_.find(ticket.name, now_, changes_, names_.all(), 0);
    if (actor_.is_damaged()) return fail_damaged();
    const bool valid = place.present && limit_of(place.seen.tag) == ticket.kind &&
                       !is_ticket_over(ticket.kind, place.seen.state, now_);
    if (ticket.take) {
      if (!valid) return Outcome::missing;
      if (const Outcome outcome = look_at_ticket(ticket); outcome != Outcome::done) return outcome;
    } else if (valid) {
      is_repeated_ = true;
    }
    // If there is no slot for the ticket, the request is denied, but only once the results of its debits are known.
    const Outcome outcome = store_ticket(i);
    if (outcome != Outcome::done && outcome != Outcome::denied) return outcome;
  }
  if (is_repeated_) {  // the other tickets are not issued either
    changes_.clear();
    keys_added_ = 0;
    need_.reset();
    no_room_.reset();
  }
  return Outcome::done;
}

// Reads what a reservation charged, and when. If that is ahead of now, `now_` is an old reading, and a bucket would
// get no refund.
Transaction::Outcome Transaction::look_at_ticket(Ticket& ticket) {
  const auto read = reader_.read_reservation(ticket.place.seen);
  if (actor_.is_damaged()) return fail_damaged();
  if (!read) return actor_.read(*ticket.place.unit) == ticket.place.seen ? Outcome::missing : Outcome::again;
  ticket.read = *read;
  const std::int64_t latest = read->reserved.charged.at_us > now_ ? read_clock() : now_;
  if (latest <= now_) return Outcome::done;
  now_ = latest;
  return Outcome::again;
}

Transaction::Outcome Transaction::look_at(std::size_t i) {
  Debit& debit = debits_[i];
  Case& one = cases_.add();
  one.cost = is_repeated_ ? 0 : debit.cost;
  if (i < tickets_.size() && tickets_[i].take) {
    const Reserved& reserved = tickets_[i].read.reserved;
    one.cost -= reserved.amount;
    if (one.cost < 0 && reserved.name != debit.name.name) one.cost = 0;  // another state was charged, not this one
    debit.charged = &reserved.charged;
  }
  const Known* const known = debit.limit != nullptr ? registry_.recall(*debit.limit, debit.family) : nullptr;
  const std::uint64_t family = known != nullptr         ? known->floor_name
                               : debit.limit != nullptr ? floor_name(debit.family, *debit.limit)
                                                        : 0;
  one.place = finder_.find(debit.name, now_, changes_, names_.all(), family);
  if (actor_.is_damaged()) return fail_damaged();
  if (!one.place.present) return debit.limit == nullptr ? Outcome::done : look_at_absent(one, debit, known);
  one.content = reader_.read(one.place.seen);
  if (!one.content || !suits(debit, *one.content)) return fail_unless_moved(one);
  if (debit.limit != nullptr && !algorithm::shares_state(*debit.limit, one.content->cell.limit())) {
    if (!is_still_there(one)) return Outcome::again;  // its block has another owner now
    return fail_with(
        ErrorCode::invalid_argument,
        "the table cannot distinguish two periods of this key: their hashes collide; use another key for one");
  }
  return bring_to_now(one, debit);
}

// A new key starts full, unless keys of its family were evicted here: it may be one of them.
Transaction::Outcome Transaction::look_at_absent(Case& one, const Debit& debit, const Known* known) {
  const Limit& limit = *debit.limit;
  const Packing packing = known != nullptr ? known->packing : packing_of(limit);
  if (!packing.fits_block)
    return fail_with(ErrorCode::out_of_range, "the table cannot store this number of permits with a period this short");
  one.content.emplace(Content{packing, {}, {}, TableCell(limit)});
  start_from_floors(one, limit);
  if (actor_.is_damaged()) return fail_damaged();
  if (known != nullptr && !one.is_from_floor) one.number = known->number;
  if (const Outcome outcome = catch_up(one); outcome != Outcome::done || !one.is_from_floor) return outcome;
  const Outcome outcome = bring_to_now(one, debit);
  one.moved = false;  // the floor stays as it is
  return outcome;
}

void Transaction::start_from_floors(Case& one, const Limit& limit) {
  for (const Floor& floor : finder_.floors()) {
    if (!algorithm::shares_state(limit, floor.known->limit)) continue;
    auto content = reader_.read(floor.word);
    if (!content) continue;
    if (one.is_from_floor) content->cell = join_cells(one.content->cell, content->cell, now_);
    one.content = std::move(content);
    one.content->packing = packing_of(one.content->cell.limit());
    one.is_from_floor = true;
  }
}

// The key may have been here until it had recovered, which an old `now` does not know. A charge at that `now` would
// recover immediately. The key was removed by an earlier reading of the clock than this one.
Transaction::Outcome Transaction::catch_up(const Case& one) {
  if (one.cost == 0) return Outcome::done;
  const std::int64_t latest = read_clock();
  if (latest - now_ <= kRecent_us) return Outcome::done;
  now_ = latest;
  return Outcome::again;  // its other keys are charged at that time, too
}

// A new reading. Everything that was read from the table was written before it, unless the clock was set back.
std::int64_t Transaction::read_clock() const { return in_range(clock_.now().count()); }

Transaction::Outcome Transaction::bring_to_now(Case& one, const Debit& debit) {
  Content& content = *one.content;
  const Limit& limit = ruling_limit(debit, content);
  const bool is_ahead = !content.cell.is_current(now_);
  const bool is_other = !(limit == content.cell.limit());
  if (is_ahead || is_other) {
    // Read after the slot was: a state ahead of this was written by a clock that was set back since.
    const std::int64_t latest = read_clock();
    const bool explains = is_ahead && content.cell.is_current(latest);
    if (latest > now_ && (explains || latest - now_ > kRecent_us)) {
      now_ = latest;
      return Outcome::again;
    }
  }
  if (one.place.present) one.number = limit_of(one.place.seen.tag);
  const bool moved = content.cell.prepare(limit, now_);
  one.has_other_limit = is_other && !(limit == content.cell.limit());
  const bool is_peek =
      debit.act == Act::look || (one.cost == 0 && (debit.act == Act::charge || debit.act == Act::acquire));
  one.moved = moved && !is_peek;
  if (is_other && !packing_of(limit).fits_block)
    return fail_with(ErrorCode::out_of_range, "the table cannot store this number of permits with a period this short");
  return Outcome::done;
}

void Transaction::decide(Case& one, const Debit& debit) {
  if (!one.content) return;  // nothing to release or to forget
  TableCell& cell = one.content->cell;
  const Limit& limit = ruling_limit(debit, *one.content);
  switch (debit.act) {
    case Act::charge:
    case Act::look:
      one.outcome = cell.decide(limit, now_, one.cost);
      one.changed = one.decision().allowed && one.cost != 0;
      if (debit.act == Act::look) only_look(one, limit);
      return;
    case Act::overdraw:
      return overdraw(one, limit);
    case Act::settle:
      return one.cost < 0 ? refund(one, debit, limit) : overdraw(one, limit);
    case Act::refund:
      return refund(one, debit, limit);
    case Act::acquire: {
      const bool is_other = !(cell.limit() == limit);
      one.decision() = cell.acquire(limit, now_, debit.id, one.cost);
      one.changed = one.decision().allowed && one.cost != 0;
      if (is_other && cell.limit() == limit) one.number = 0;
      return;
    }
    case Act::release:
      one.decision() = cell.release(now_, debit.id);
      one.was_alive = one.changed = one.decision().allowed;
      return;
    case Act::forget:
      one.decision() = one.content->packing.kind == Kind::holds ? cell.acquire(limit, now_, {}, 0)
                                                                : cell.decide(limit, now_, 0).decision;
      one.was_alive = !one.is_fresh();
      one.decision().allowed = true;
      one.decision().reset_after = Micros{0};
      one.changed = true;
      return;
  }
}

void Transaction::overdraw(Case& one, const Limit& limit) {
  const TableCell& cell = one.content->cell;
  one.outcome = cell.decide(limit, now_, one.cost);
  if (!one.decision().allowed) {
    one.cost = std::min(one.cost, cell.decide(limit, now_, 0).decision.remaining);
    one.outcome = cell.decide(limit, now_, one.cost);
    algorithm::admit(one.decision());
  }
  one.changed = one.cost != 0;
}

// Two counts do not say whether this charge is among them. With an old `now`, a charge that was already dropped could
// be refunded.
void Transaction::refund(Case& one, const Debit& debit, const Limit& limit) {
  const std::int64_t now = one.counts() != nullptr ? std::max(now_, read_clock()) : now_;
  const TableCell::Refund refund = one.content->cell.refund(limit, now, *debit.charged, -one.cost);
  one.outcome = refund.outcome;
  one.changed = refund.changed;
  one.returned = one.changed ? refund.permits : 0;
}

// Reports the current state, like an allowed request of cost 0.
void Transaction::charge_nothing(Case& one, const Limit& limit) const {
  one.outcome = one.content->cell.decide(limit, now_, 0);
  algorithm::admit(one.decision());
}

// A request that would pass reports the state before it, and its delay.
void Transaction::only_look(Case& one, const Limit& limit) {
  one.changed = false;
  if (!one.decision().allowed) return;
  const Micros delay = one.decision().delay;
  charge_nothing(one, limit);
  one.decision().delay = delay;
}

// Charges nothing; a debit that would have passed reports the current state. Corrections stay.
Transaction::Outcome Transaction::deny(unsigned tries) {
  if (!are_cases_unchanged() || !are_tickets_unchanged()) return Outcome::again;
  changes_.clear();
  keys_added_ = 0;
  bool any = false;
  for (std::size_t i = 0; i < debits_.size(); ++i) {
    Case& one = cases_[i];
    if (!one.content) continue;
    if (debits_[i].act == Act::charge && one.decision().allowed) {
      charge_nothing(one, ruling_limit(debits_[i], *one.content));
    }
    one.changed = false;
    if (!one.moved) continue;
    if (const Outcome outcome = store(i); outcome != Outcome::done) return outcome;
    any = true;
  }
  if (any && !commit(tries)) return actor_.is_damaged() ? fail_damaged() : Outcome::again;
  if (std::ranges::any_of(cases_.all(), [](Case& one) { return !one.decision().allowed; })) no_room_.reset();
  if (no_room_) {
    Decision& decision = cases_[no_room_->debit].decision();
    algorithm::refuse(decision, Micros{std::max<std::int64_t>(1, no_room_->wait_us)});
    decision.decided_by = DecidedBy::no_room;
  }
  return Outcome::denied;
}

Transaction::Outcome Transaction::need_room(std::size_t debit, const Place& place, const Name& name,
                                            std::uint64_t family, Eviction::Wanted wanted) {
  if (!need_) need_ = {debit, {place.page, home_line(name.name), family, wanted}};
  return stay_absent(place);
}

Transaction::Outcome Transaction::need_room(std::size_t i, Eviction::Wanted wanted) {
  const Debit& debit = debits_[i];
  const Limit& limit = ruling_limit(debit, *cases_[i].content);
  return need_room(i, cases_[i].place, debit.name, floor_name(debit.family, limit), wanted);
}

// All debits are allowed, but one of them has no slot or block. After one is freed, the request starts again.
Transaction::Outcome Transaction::make_room(unsigned tries) {
  const bool is_made = eviction_.make_room(need_->room, now_, {names_.all(), changes_});
  if (actor_.is_damaged()) return fail_damaged();
  if (is_made && tries < kRoomTriesMax) return Outcome::again;
  if (need_->room.wanted == Eviction::Wanted::block && freed_ < SIZE_MAX) {
    freed_ = SIZE_MAX;  // no key has a block to give up: decide without one
    return Outcome::again;
  }
  deny_for_room(need_->debit, kNoRoomWait_us);
  return deny(tries);
}

Transaction::Outcome Transaction::deny_for_room(std::size_t debit, std::int64_t wait_us) {
  if (debits_.empty()) {
    return fail_with(ErrorCode::exhausted, "no capacity to store the id of this request; raise the number of keys");
  }
  if (!no_room_) no_room_ = {debit, wait_us};
  return Outcome::denied;
}

void Transaction::count_denial() {
  Participant& own = actor_.record();
  if (no_room_) return weir::table::store(own.no_room, load(own.no_room) + 1);
  for (std::size_t i = 0; i < debits_.size(); ++i) {
    const Case& one = cases_[i];
    if (!one.is_from_floor || one.outcome.decision.allowed || debits_[i].act != Act::charge) continue;
    if (!TableCell(*debits_[i].limit).decide(now_, one.cost).decision.allowed) continue;
    return weir::table::store(own.early, load(own.early) + 1);
  }
}

void Transaction::count_compacted(const Case& one) {
  if (one.counts() != nullptr && one.place.present) return;  // it was already
  Participant& own = actor_.record();
  weir::table::store(own.compacted, load(own.compacted) + 1);
}

// The contents of a block were not read at one moment, nor were a page and its floors. So a denial counts only if the
// slot, or the page's version, is unchanged.
bool Transaction::are_cases_unchanged() {
  for (std::size_t i = 0; i < debits_.size(); ++i) {
    const Case& one = cases_[i];
    if (!one.content) continue;
    if (one.content->block && !(actor_.read(*one.place.unit) == one.place.seen)) return false;
    if (!one.place.present && !(actor_.read(one.place.page->version) == one.place.version)) return false;
  }
  return true;
}

// A denial is true at one moment only if no request with the same id had been admitted by then.
bool Transaction::are_tickets_unchanged() {
  for (const Ticket& ticket : tickets_) {
    const Place& place = ticket.place;
    const bool same =
        place.present ? actor_.read(*place.unit) == place.seen : actor_.read(place.page->version) == place.version;
    if (!same) return false;
  }
  return true;
}

bool Transaction::commit(unsigned tries) {
  const std::span<Entry> entries = changes_.entries();
  if (entries.empty()) return true;
  const bool done = actor_.change(entries, way_after(tries), entries.size() > 1 ? this : nullptr);
  if (done) count_keys(actor_, keys_added_);
  return done;
}

// A word has changed before it was acquired. If it is a key's slot, decide on it again instead of starting over.
bool Transaction::rebind(Entry& entry, const Word& seen) {
  const Unit* unit = &actor_.region().unit(entry.unit);
  for (std::size_t i = 0; i < debits_.size(); ++i) {
    Case& one = cases_[i];
    if (one.place.unit == unit) return rebind(one, debits_[i], entry, seen);
  }
  return false;
}

bool Transaction::rebind(Case& one, const Debit& debit, Entry& entry, const Word& seen) {
  if (!one.place.present || one.moved || one.content->block || debit.act != Act::charge || seen.tag != entry.old.tag) {
    return false;
  }
  if (one.counts() != nullptr) return false;  // it may become a log
  auto content = reader_.read(seen);
  if (!content || content->block || !content->cell.is_current(now_)) return false;
  if (!(content->cell.limit() == *debit.limit)) return false;
  one.content = std::move(content);
  one.place.seen = seen;
  decide(one, debit);
  rebind_denied_ = !one.decision().allowed;
  if (rebind_denied_ || one.is_fresh()) return false;
  entry.old = seen;
  entry.next = {seen.tag, one.changed ? next_in_slot(one, one.content->packing) : seen.state};
  return true;
}

Transaction::Outcome Transaction::fail_with(ErrorCode code, std::string message) {
  error_ = Error{code, std::move(message)};
  return Outcome::failed;
}

// A log whose times are in disorder yields a wait that is not positive.
bool Transaction::makes_sense(const Case& one, const Debit& debit) {
  const Decision& decision = one.outcome.decision;
  return !one.content || debit.act != Act::charge || decision.allowed || decision.retry_after > Micros{0};
}

bool Transaction::is_still_there(const Case& one) {
  return one.place.unit == nullptr || load(*one.place.unit) == one.place.seen;
}

// The words that were read are inconsistent: another thread changed them meanwhile, or they are damaged.
Transaction::Outcome Transaction::fail_unless_moved(const Case& one) {
  return actor_.is_damaged() || is_still_there(one) ? fail_damaged() : Outcome::again;
}

Transaction::Outcome Transaction::fail_damaged() {
  actor_.note_damage();
  return fail_with(ErrorCode::unavailable,
                   "the table is damaged: stop all processes that use its file, then run `weir state inspect FILE`");
}

}  // namespace weir::table
