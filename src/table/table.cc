// See table.h. The fast path is here; transactions, the sweep and the repair have files of their own.

#include "table/table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "table/take_over.h"

namespace weir::table {
namespace {

// Copies field by field: a copy in vector registers would wait until the single fields have arrived in the cache.
inline void assign(Decision& to, const Decision& from) {
  to.allowed = from.allowed;
  to.limit = from.limit;
  to.remaining = from.remaining;
  to.retry_after = from.retry_after;
  to.reset_after = from.reset_after;
  to.delay = from.delay;
}

// Decides under `limit` on a state of `own`; `next` is the value of the word if the request is admitted. False if the
// state is ahead of now. The caller passes one reference twice if both are the same limit: see bucket_step().
template <class State>
[[gnu::always_inline]] inline bool decide_in_slot(Debit& debit, const State& state, const Limit& limit,
                                                  const Limit& own, const Packing& packing, std::int64_t now,
                                                  std::uint64_t& next) {
  if (algorithm::settle_state(state, own, now).moved) return false;
  const auto stepped = algorithm::step_state(state, limit, now, debit.cost, own);
  assign(debit.decision, stepped.decision);
  next = static_cast<std::uint64_t>(pack(stepped.next, packing));
  return true;
}

}  // namespace

Result<std::unique_ptr<Table>> Table::open(TableOptions options) {
  if (!has_wide_atomics()) {
    return fail(ErrorCode::unavailable, "this processor has no 16-byte atomic loads (AVX), which the table needs");
  }
  if (options.memory != 0) {
    const auto fitting = fit_into(options.memory, options.keys, options.arena_bytes);
    if (!fitting) return fail(fitting.error());
    options.keys = keys_of(fitting->pages);
    options.arena_bytes = fitting->arena_lines * sizeof(Line);
  }
  if (!options.file.empty()) {
    if (auto taken = take_over(options.file, options.find_calendar); !taken) return fail(taken.error());
  }
  auto mapping = options.file.empty() ? map_memory(options.keys, options.arena_bytes)
                                      : open_file({options.file, options.keys, options.arena_bytes});
  if (!mapping) return fail(mapping.error());
  return std::unique_ptr<Table>(new Table(*std::move(mapping), std::move(options)));
}

Table::Table(Mapping mapping, TableOptions options)
    : mapping_(std::move(mapping)),
      region_(mapping_.region()),
      hash_key_{region_.header().hash_key[0], region_.header().hash_key[1]},
      has_own_clock_(options.clock == nullptr),
      clock_(options.clock ? std::move(options.clock)
                           : make_shared_clock(region_.header().clock_offset_us, region_.header().latest_us)),
      registry_(region_, std::move(options.find_calendar)),
      seats_(mapping_, registry_) {
  if (!mapping_.is_sole()) return;
  const algorithm::ShiftedCalendar shifted(calendar_shift(region_.header()));
  if (!mapping_.was_clean()) repair(region_, registry_, clock_->now().count(), mapping_.is_torn());
  registry_.forget_unused();
  mapping_.share();
}

Table::~Table() {
  if (!seats_.is_born() || !mapping_.try_alone()) return;
  seats_.recover_dead();
  mapping_.mark_clean();
}

Unit* Table::look(const Name& name) const {
  Page& home = page(name);
  std::uint32_t line = home_line(name.name);
  Unit* unit = match(home.slots[line], name.name);
  if (unit != nullptr) [[likely]]
    return unit;
  const Word version = load(home.version);
  if (mark_of(version) != kPlain) return nullptr;
  for (std::uint32_t i = 1; unit == nullptr && i < kLines && (version.state >> line & 1) != 0; ++i) {
    line = next_line(line);
    unit = match(home.slots[line], name.name);
  }
  return unit;
}

// The slot belongs to another version of the debit's limit. Denials and peeks change nothing, so they need only the
// word. An admitted request turns the state into its own version, and that takes a transaction.
bool Table::propose_nothing(Debit& debit, const Word& word, const Card& card, std::int64_t now) {
  Limit own;  // of the slot; it has no calendar
  if (!card.copy(own)) return false;
  const Packing packing = card.packing(own);
  if (!packing.fits_slot || !algorithm::shares_state(own, *debit.limit)) return false;
  std::uint64_t unused = 0;
  const auto decide = [&](const auto& state) {
    return decide_in_slot(debit, state, *debit.limit, own, packing, now, unused);
  };
  const bool is_decided = packing.kind == Kind::bucket  ? decide(unpack_bucket(word.state))
                          : packing.kind == Kind::fixed ? decide(unpack_fixed(word.state, packing))
                                                        : decide(unpack_sliding(word.state, packing));
  return is_decided && (!debit.decision.allowed || debit.cost == 0);
}

// The next value of a word that was read from the key's slot. False if the word alone is not enough.
inline bool Table::propose(Debit& debit, const Word& word, std::int64_t now, std::uint64_t& next) const {
  if (mark_of(word) != kPlain || name_of(word.tag) != debit.name.name) return false;
  const Limit& limit = *debit.limit;
  const Card& card = registry_.card(limit_of(word.tag));
  if (!card.is_of(limit)) [[unlikely]]
    return propose_nothing(debit, word, card, now);
  const Packing packing = card.packing(limit);
  if (!packing.fits_slot) return false;
  const auto decide = [&](const auto& state) __attribute__((always_inline)) {
    return decide_in_slot(debit, state, limit, limit, packing, now, next);
  };
  if (packing.kind == Kind::bucket) return decide(unpack_bucket(word.state));
  if (packing.kind != Kind::fixed) return decide(unpack_sliding(word.state, packing));
  if (limit.period_us != 0) return decide(unpack_fixed(word.state, packing));
  const algorithm::ShiftedCalendar shifted(calendar_shift(region_.header()));
  return decide(unpack_fixed(word.state, packing));
}

// The epoch of the limits is read before the word, before the exchange and after it: see registry.h.
//
// A twin of charge_run() on purpose: one function for both cost a single check 15 ns.
bool Table::charge_fast(Debit& debit, std::int64_t now, Unit* spotted) {
  Unit* unit = spotted != nullptr ? spotted : look(debit.name);
  if (unit == nullptr || now < 0 || now >= kTimeEnd) return false;
  const std::uint64_t epoch = registry_.epoch();
  Word word = load(*unit);
  std::uint64_t next = 0;
  while (propose(debit, word, now, next)) {
    if (!debit.decision.allowed || debit.cost == 0) return registry_.is_current(epoch);
    if (debit.decision.reset_after.count() == 0) return false;  // the key is to be removed
    if (!registry_.is_current(epoch)) return false;  // the word may be one of a limit that this process does not know
    const Word after{word.tag, next};
    if (exchange(*unit, word, after)) return registry_.is_current(epoch) || stands(*unit, word, after, debit);
  }
  return false;
}

bool Table::charge_run(std::span<Debit> debits, std::int64_t now, Unit* spotted) {
  Unit* unit = spotted != nullptr ? spotted : look(debits.front().name);
  if (unit == nullptr || now < 0 || now >= kTimeEnd) return false;
  const std::uint64_t epoch = registry_.epoch();
  Word word = load(*unit);
  for (;;) {
    Word after = word;
    bool changed = false;
    for (Debit& debit : debits) {
      std::uint64_t next = 0;
      if (!propose(debit, after, now, next)) return false;
      if (!debit.decision.allowed || debit.cost == 0) continue;
      if (debit.decision.reset_after.count() == 0) return false;
      after.state = next;
      changed = true;
    }
    if (!registry_.is_current(epoch)) return false;
    if (!changed) return true;
    if (exchange(*unit, word, after)) {
      return registry_.is_current(epoch) || stands(*unit, word, after, debits.front());
    }
  }
}

// The thread was suspended between reading the slot and the exchange, for so long that numbers of limits were reused.
// If the slot's number is one of them, the word was equal only by chance, and its previous value is restored.
bool Table::stands(Unit& unit, const Word& before, const Word& after, const Debit& debit) {
  const auto seat = seats_.sit_down();
  if (!seat) return true;
  const Known* known = registry_.known(limit_of(before.tag));
  if (known != nullptr && known->limit == *debit.limit) return true;
  return !replace(unit, after, before);
}

// The usual verdict: all keys are present, in their slots, and all allow.
bool Table::charge_all_fast(Actor& actor, std::span<Debit> debits, std::int64_t now) {
  if (debits.size() > 8 || now < 0 || now >= kTimeEnd) return false;
  std::array<Entry, 8> entries;
  std::size_t count = 0;
  for (Debit& debit : debits) {
    if (debit.act != Act::charge || debit.cost <= 0 || debit.limit == nullptr) return false;
    Unit* unit = look(debit.name);
    if (unit == nullptr) return false;
    const Word word = load(*unit);
    std::uint64_t next = 0;
    if (!propose(debit, word, now, next) || !debit.decision.allowed || debit.decision.reset_after.count() == 0)
      return false;
    const std::uint64_t number = region_.number_of(*unit);
    std::size_t at = count++;
    for (; at > 0 && entries[at - 1].unit > number; --at) entries[at] = entries[at - 1];
    if (at > 0 && entries[at - 1].unit == number) return false;
    entries[at].unit = number;
    entries[at].old.tag = word.tag;
    entries[at].old.state = word.state;
    entries[at].next.tag = word.tag;
    entries[at].next.state = next;
  }
  return actor.change({entries.data(), count}, Way::solo, nullptr);
}

Result<Ruling> Table::charge(std::span<Debit> debits, std::span<Ticket> tickets, std::int64_t now) {
  auto seat = seats_.sit_down();
  if (!seat) return fail(seat.error());
  if (tickets.empty() && debits.size() > 1 && charge_all_fast(seat->actor(), debits, now)) return Ruling::allowed;
  const algorithm::ShiftedCalendar shifted(calendar_shift(region_.header()));
  auto ruling = Transaction(seat->actor(), registry_, *clock_, debits, tickets, now).run();
  if (seat->actor().has_met_damage()) mapping_.note_damage();
  return ruling;
}

// Reads all slots of the page, because the key's periods are not known otherwise.
Result<bool> Table::forget(Algorithm algorithm, std::string_view key, std::int64_t now) {
  auto seat = seats_.sit_down();
  if (!seat) return fail(seat.error());
  const algorithm::ShiftedCalendar shifted(calendar_shift(region_.header()));
  const Name base = key_name(algorithm, key);
  SlotReader reader(seat->actor(), registry_);
  bool found = false;
  for (Unit& unit : slots_of(page(base))) {
    const Word word = seat->actor().read(unit);
    const bool is_near = is_key(word.tag) && ((name_of(word.tag) ^ base.name) & ~kHomeMask) == 0;
    const auto content = is_near ? reader.read(word) : std::nullopt;
    if (!content) continue;
    Debit debit{.name = named(base, content->cell.limit()), .cost = -1, .act = Act::forget};
    if (debit.name.name != name_of(word.tag)) continue;
    auto ruling = Transaction(seat->actor(), registry_, *clock_, {&debit, 1}, {}, now).run();
    if (!ruling) return fail(std::move(ruling.error()));
    found = found || debit.found;
  }
  if (seat->actor().has_met_damage()) mapping_.note_damage();
  return found;
}

std::uint64_t Table::size() {
  std::uint64_t keys = 0;
  for (std::uint64_t who = 0; who < kParticipants; ++who) keys += load(region_.participant(who).keys);
  return std::min(keys, capacity());  // a count that a kill left too low would wrap to a very large one
}

Counters Table::counters() {
  auto seat = seats_.sit_down();
  return seat ? counters_of(seat->actor()) : Counters{.swept = load(region_.header().swept)};
}

}  // namespace weir::table
