// See memory_store.h. Names are 128 bits of a keyed hash; ids are hashed under their own domains. Any thread.

#include "store/memory_store.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace weir::store {
namespace {

using table::Act;
using table::Debit;
using table::Ruling;
using table::Ticket;

constexpr std::uint64_t kSweptPages = 128;     // per call; 5 us each where all slots are in use
constexpr std::uint32_t kHoldIds = 1'000'000;  // no kind of ticket: the hash domain of the ids of permits in flight

// Whether two requests have the same key and limit. For a hot key many do, and one exchange serves them all.
bool is_same(const Charge& a, const Charge& b) {
  return a.limit == b.limit && a.key.size() == b.key.size() &&
         (a.key.empty() || (a.key.back() == b.key.back() && a.key == b.key));
}

// The name of one key's part of a reservation. Lengths come first, because both parts are untrusted.
std::string reservation_of(std::string_view id, const Charge& charge) {
  std::string name = std::to_string(id.size()) + ':';
  name.append(id).push_back(static_cast<char>('a' + static_cast<int>(charge.limit->algorithm)));
  return name.append(charge.key);
}

// 62 bits of the hash of an id, as the table stores it.
std::array<char, 8> hold_id(const table::Table& table, std::string_view id) {
  const std::uint64_t hash = table.ticket_name(kHoldIds, id).place >> 2;
  std::array<char, 8> bytes;
  std::memcpy(bytes.data(), &hash, sizeof hash);
  return bytes;
}

}  // namespace

Result<std::unique_ptr<MemoryStore>> MemoryStore::open(StoreOptions options, std::shared_ptr<const Clock> clock) {
  auto table = table::Table::open({.file = std::move(options.file),
                                   .keys = options.keys,
                                   .arena_bytes = options.log_bytes,
                                   .memory = options.memory,
                                   .clock = std::move(clock),
                                   .find_calendar = std::move(options.find_calendar)});
  if (!table) return fail(table.error());
  return std::unique_ptr<MemoryStore>(new MemoryStore(*std::move(table)));
}

Result<Decision> MemoryStore::check(const Charge& charge, std::int64_t now) {
  return check(table_->key_name(*charge.limit, charge.key), charge, now);
}

table::Name MemoryStore::find(const Charge& charge) const {
  const table::Name place = table_->key_name(*charge.limit, charge.key);
  table_->prefetch(place);
  return place;
}

Result<Decision> MemoryStore::check(const table::Name& place, const Charge& charge, std::int64_t now) {
  Debit debit{.name = place, .limit = charge.limit, .cost = charge.cost, .family = charge.family};
  if (table_->charge_fast(debit, now)) return debit.decision;
  if (const auto ruling = table_->charge({&debit, 1}, {}, now); !ruling) return fail(ruling.error());
  return debit.decision;
}

// Prepares the debits of as many requests as are hashed together. It hashes all keys, then prefetches all their
// lines: when the last prefetch is issued, the first line has arrived.
inline void MemoryStore::prepare(std::span<const Charge> charges, Debit* debits) const {
  std::array<base::SipInput, base::kSipLanes> keys;
  std::array<base::Hash128, base::kSipLanes> hashes;
  std::array<std::uint8_t, base::kSipLanes> places;  // of a request's key among those that are hashed
  std::size_t different = 0;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Charge& charge = charges[i];
    if (i == 0 || !is_same(charge, charges[i - 1])) {
      keys[different++] = {charge.key.data(), charge.key.size(), static_cast<std::uint64_t>(charge.limit->algorithm)};
    }
    places[i] = static_cast<std::uint8_t>(different - 1);
  }
  table_->hash_keys({keys.data(), different}, hashes.data());
  for (std::size_t i = 0; i < charges.size(); ++i) {
    Debit& debit = debits[i];
    debit.name = table::Table::named(table::Table::named(hashes[places[i]]), *charges[i].limit);
    debit.limit = charges[i].limit;
    debit.cost = charges[i].cost;
    debit.family = charges[i].family;
    table_->prefetch(debit.name);
  }
}

void MemoryStore::check_many(std::span<const Charge> charges, std::int64_t now, std::span<Result<Decision>> answers) {
  std::array<Debit, kBatch> debits;
  for (std::size_t begin = 0; begin < charges.size(); begin += kBatch) {
    const std::size_t count = std::min(kBatch, charges.size() - begin);
    for (std::size_t i = 0; i < count; i += base::kSipLanes) {
      prepare(charges.subspan(begin + i, std::min(base::kSipLanes, count - i)), &debits[i]);
    }
    std::array<table::Unit*, kBatch> units;
    for (std::size_t i = 0; i < count; ++i) units[i] = table_->spot(debits[i].name);
    for (std::size_t i = 0, end = 1; i < count; i = end++) {
      while (end < count && debits[end].name == debits[i].name && debits[end].limit == debits[i].limit) ++end;
      check_run({&debits[i], end - i}, now, units[i], answers.subspan(begin + i));
    }
  }
}

// Like check(), for several requests of one key, or for one request. `spotted` is the result of Table::spot() for the
// key.
inline void MemoryStore::check_run(std::span<Debit> debits, std::int64_t now, table::Unit* spotted,
                                   std::span<Result<Decision>> answers) {
  const bool done = debits.size() > 1 && table_->charge_run(debits, now, spotted);
  for (std::size_t i = 0; i < debits.size(); ++i) {
    if (!done && !table_->charge_fast(debits[i], now, spotted)) {
      if (auto ruling = table_->charge({&debits[i], 1}, {}, now); !ruling) {
        answers[i] = fail(ruling.error());
        continue;
      }
    }
    answers[i] = debits[i].decision;
  }
}

// The debits of a request, one per charge. Fills field by field: copying the whole struct would stall on the single
// stores.
inline void MemoryStore::add_debits(std::span<const Charge> charges, Debits& debits) const {
  for (const Charge& charge : charges) {
    Debit& debit = debits.add();
    debit.name = table_->key_name(*charge.limit, charge.key);
    debit.limit = charge.limit;
    debit.cost = charge.cost;
    debit.family = charge.family;
    table_->prefetch(debit.name);
  }
}

Result<table::Ruling> MemoryStore::decide_all(const Request& request, std::span<Decision> decisions,
                                              std::span<std::int64_t> reserved) {
  WEIR_ASSERT(request.charges.size() <= table::kChargesMax);
  WEIR_ASSERT(request.charges.size() <= decisions.size());
  if (request.what != Request::What::charge || !request.id.empty()) return settle(request, decisions, reserved);
  Debits debits;
  add_debits(request.charges, debits);
  auto ruling = table_->charge(debits.all(), {}, request.now);
  if (!ruling) return ruling;
  for (std::size_t i = 0; i < debits.size(); ++i) decisions[i] = debits[i].decision;
  return ruling;
}

// All but the plain charge. Tickets: one for an idempotency id, or one per debit for a reservation, which reserve()
// issues and commit() takes.
Result<table::Ruling> MemoryStore::settle(const Request& request, std::span<Decision> decisions,
                                          std::span<std::int64_t> reserved) {
  using What = Request::What;
  const bool is_reservation = request.what == What::reserve || request.what == What::commit;
  if (is_reservation && request.charges.size() > kReservedMax) {
    return fail(ErrorCode::out_of_range, "at most " + std::to_string(kReservedMax) + " limits can be reserved at once");
  }
  Debits debits;
  base::Few<Ticket, kReservedMax> tickets;
  base::Few<algorithm::Charged, table::kChargesMax> charged;
  add_debits(request.charges, debits);
  for (std::size_t i = 0; i < debits.size(); ++i) {
    const Charge& charge = request.charges[i];
    Debit& debit = debits[i];
    if (request.what == What::overdraw) debit.act = Act::overdraw;
    if (request.what == What::commit) debit.act = Act::settle;
    if (request.what == What::refund) {
      debit.cost = -charge.cost;
      debit.act = Act::refund;
      debit.charged = &charged.add(algorithm::charged_at(*charge.limit, request.charged_us));
    }
    if (!is_reservation) continue;
    if (charge.cost < 0 || charge.cost > kPermitsMax) {
      return fail(ErrorCode::out_of_range,
                  "the cost of a reservation must be 0 to " + std::to_string(kPermitsMax) + " permits");
    }
    tickets.add(Ticket{.name = table_->ticket_name(table::kReservation, reservation_of(request.id, charge)),
                       .kind = table::kReservation,
                       .take = request.what == What::commit,
                       .expires_us = request.now + request.lasts.count()});
  }
  if (request.what == What::charge && !request.id.empty()) {
    tickets.add(Ticket{.name = table_->ticket_name(table::kRequest, request.id),
                       .kind = table::kRequest,
                       .expires_us = request.now + request.lasts.count()});
  }
  const auto ruling = table_->charge(debits.all(), tickets.all(), request.now);
  if (!ruling) return ruling;
  if (*ruling == Ruling::missing) return fail(not_reserved());
  if (is_reservation && *ruling == Ruling::repeated) return fail(reserved_already());
  for (std::size_t i = 0; i < debits.size(); ++i) {
    const Debit& debit = debits[i];
    decisions[i] = debit.decision;
    if (!reserved.empty()) reserved[i] = tickets[i].read.reserved.amount;
    if (!request.returned.empty()) {
      request.returned[i] = {debit.returned, debit.charged == nullptr ? 0 : debit.charged->at_us};
    }
    if (request.what == What::commit) refund_elsewhere(debit, tickets[i], request.now);
  }
  return ruling;
}

// If the limit had another period at the reservation, another state was charged. That state is refunded here, as a
// separate event: a crash before it leaves the permits used.
void MemoryStore::refund_elsewhere(const Debit& settled, const Ticket& ticket, std::int64_t now) {
  const table::Reserved& reserved = ticket.read.reserved;
  const std::int64_t unused = reserved.amount - settled.cost;
  if (reserved.name == 0 || reserved.name == settled.name.name || unused <= 0) return;
  Debit refund{
      .name = {settled.name.place, reserved.name}, .cost = -unused, .act = Act::refund, .charged = &reserved.charged};
  static_cast<void>(table_->charge({&refund, 1}, {}, now));
}

Debit MemoryStore::debit_of(const Charge& charge, Act act) const {
  return {.name = table_->key_name(*charge.limit, charge.key),
          .limit = charge.limit,
          .cost = charge.cost,
          .act = act,
          .family = charge.family};
}

// A request of one debit, as it is afterwards.
Result<Debit> MemoryStore::charge_alone(Debit debit, std::int64_t now) {
  if (const auto ruling = table_->charge({&debit, 1}, {}, now); !ruling) return fail(ruling.error());
  return debit;
}

Result<Decision> MemoryStore::preview(const Charge& charge, std::int64_t now) {
  return charge_alone(debit_of(charge, Act::look), now).map(&Debit::decision);
}

Result<Decision> MemoryStore::acquire(const Charge& charge, std::string_view id, std::int64_t now) {
  const auto bytes = hold_id(*table_, id);
  Debit debit = debit_of(charge, Act::acquire);
  debit.id = {bytes.data(), bytes.size()};
  return charge_alone(debit, now).map(&Debit::decision);
}

Result<bool> MemoryStore::release(std::string_view key, std::string_view id, std::int64_t now) {
  const auto bytes = hold_id(*table_, id);
  const Debit debit{.name = table_->key_name(Algorithm::concurrency, key),
                    .cost = -1,
                    .act = Act::release,
                    .id = {bytes.data(), bytes.size()}};
  return charge_alone(debit, now).map(&Debit::found);
}

Result<bool> MemoryStore::reset(std::string_view key, std::int64_t now) {
  bool found = false;
  for (const Algorithm algorithm : kAlgorithms) {
    const auto one = forget(algorithm, key, now);
    if (!one) return one;
    found = found || *one;
  }
  return found;
}

Result<bool> MemoryStore::forget(const Limit& limit, std::string_view key, std::int64_t now) {
  return charge_alone({.name = table_->key_name(limit, key), .cost = -1, .act = Act::forget}, now).map(&Debit::found);
}

bool MemoryStore::sweep(std::int64_t now) { return table_->sweep(now, kSweptPages); }

Micros MemoryStore::sweep_rest() const {
  constexpr std::int64_t kRoundMin = 1'000'000, kRoundMax = 8'000'000, kRestMin = 1'000;
  const std::int64_t round = std::clamp(table_->shortest_period_us(), kRoundMin, kRoundMax);
  const auto slices = static_cast<std::int64_t>((table_->pages() + kSweptPages - 1) / kSweptPages);
  return Micros{std::max(round / slices, kRestMin)};
}

}  // namespace weir::store
