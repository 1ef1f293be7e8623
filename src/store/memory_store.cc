// See memory_store.h. Names are 128 bits of a keyed hash; ids are hashed under their own domains. Any thread.

#include "store/memory_store.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "algorithm/binding.h"

namespace weir {
namespace {

using table::Act;
using table::Debit;
using table::Ruling;
using table::Ticket;

constexpr std::uint64_t kSweptPages = 128;     // per call; 5 us each where all slots are in use
constexpr std::uint32_t kHoldIds = 1'000'000;  // no kind of ticket: the hash domain of the ids of permits in flight

std::int64_t add_saturating(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

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

}  // namespace

// The charges of a request as debits, one per key.
class MemoryStore::Batch {
 public:
  Result<void> add(const table::Table& table, std::span<const Charge> charges) {
    if (charges.size() > table::kChargesMax) {
      return fail(ErrorCode::out_of_range, "a request can be charged to at most " + std::to_string(table::kChargesMax) +
                                               " limits; this one names " + std::to_string(charges.size()));
    }
    charges_ = charges.size();
    for (std::size_t i = 0; i < charges_; ++i) {
      const Charge& charge = charges[i];
      const table::Name name = table.key_name(*charge.limit, charge.key);
      std::size_t same = 0;
      while (same < debits_.size() && debits_[same].name.place != name.place) ++same;
      places_[i] = same;
      if (same == debits_.size()) {
        first_[same] = i;
        Debit& debit = debits_.add();  // field by field: copying the whole struct would stall on the single stores
        debit.name = name;
        debit.limit = charge.limit;
        debit.cost = charge.cost;
        debit.family = charge.family;
        table.prefetch(name);
        continue;
      }
      if (!(*debits_[same].limit == *charge.limit)) {
        return fail(ErrorCode::invalid_argument,
                    "a key is given twice with different limits: two limits need two keys, such as user:42/second and "
                    "user:42/hour");
      }
      debits_[same].cost = add_saturating(debits_[same].cost, charge.cost);
    }
    return {};
  }

  std::span<Debit> debits() { return debits_.all(); }
  // The index of the charge that first named the debit's key.
  std::size_t first_of(std::size_t debit) const { return first_[debit]; }

  // Allocates the decisions before anything is charged: if memory runs out, nothing is charged.
  void make_room() { verdict_.decisions.resize(charges_); }

  // Writes what each charge had reserved, from the tickets of its debits, into the array allocated before.
  void tell_reserved(std::span<const Ticket> tickets) {
    for (std::size_t i = 0; i < charges_; ++i) verdict_.reserved[i] = tickets[places_[i]].read.reserved.amount;
  }
  void tell_returned(std::span<Returned> returned) const {
    for (std::size_t i = 0; i < returned.size(); ++i) {
      const Debit& debit = debits_[places_[i]];
      returned[i] = {debit.returned, debit.charged == nullptr ? 0 : debit.charged->at_us};
    }
  }
  void make_room_for_reserved() { verdict_.reserved.resize(charges_); }
  void tell_repeated(bool is_repeated) { verdict_.repeated = is_repeated; }

  Verdict answer(bool allowed) {
    verdict_.allowed = allowed;
    verdict_.binding = tell(allowed, verdict_.decisions);
    return std::move(verdict_);
  }

  // Writes one decision per charge; returns the index of the binding one.
  std::size_t tell(bool allowed, std::span<Decision> decisions) const {
    for (std::size_t i = 0; i < charges_; ++i) decisions[i] = debits_[places_[i]].decision;
    return binding_of(decisions.first(charges_), allowed);
  }

 private:
  std::size_t charges_ = 0;
  Verdict verdict_;
  Few<Debit, table::kChargesMax> debits_;
  std::array<std::size_t, table::kChargesMax> places_, first_;
};

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
  std::array<table::SipInput, table::kSipLanes> keys;
  std::array<table::Hash128, table::kSipLanes> hashes;
  std::array<std::uint8_t, table::kSipLanes> places;  // of a request's key among those that are hashed
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
    for (std::size_t i = 0; i < count; i += table::kSipLanes) {
      prepare(charges.subspan(begin + i, std::min(table::kSipLanes, count - i)), &debits[i]);
    }
    std::array<table::Unit*, kBatch> units;
    for (std::size_t i = 0; i < count; ++i) units[i] = table_->spot(debits[i].name);
    for (std::size_t i = 0, end = 1; i < count; i = end++) {
      while (end < count && debits[end].name == debits[i].name && debits[end].limit == debits[i].limit) ++end;
      check_run({&debits[i], end - i}, now, units[i], answers.subspan(begin + i));
    }
  }
}

// Decides requests of one key, or one request, like check(), with the spot known.
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

Result<Verdict> MemoryStore::charge(std::span<const Charge> charges, std::int64_t now, RequestId id) {
  Batch batch;
  if (auto added = batch.add(*table_, charges); !added) return fail(added.error());
  batch.make_room();
  Ticket ticket{.kind = table::kRequest, .expires_us = now + id.lasts.count()};
  if (!id.name.empty()) ticket.name = table_->ticket_name(table::kRequest, id.name);
  const auto ruling = table_->charge(batch.debits(), {&ticket, id.name.empty() ? 0u : 1u}, now);
  if (!ruling) return fail(ruling.error());
  batch.tell_repeated(*ruling == Ruling::repeated);
  return batch.answer(*ruling != Ruling::denied);
}

Result<MemoryStore::Judgement> MemoryStore::judge(std::span<const Charge> charges, std::int64_t now,
                                                  std::span<Decision> decisions) {
  Batch batch;
  if (auto added = batch.add(*table_, charges); !added) return fail(added.error());
  const auto ruling = table_->charge(batch.debits(), {}, now);
  if (!ruling) return fail(ruling.error());
  const bool allowed = *ruling != Ruling::denied;
  return Judgement{allowed, batch.tell(allowed, decisions)};
}

Result<Decision> MemoryStore::preview(const Charge& charge, std::int64_t now) {
  Debit debit{.name = table_->key_name(*charge.limit, charge.key),
              .limit = charge.limit,
              .cost = charge.cost,
              .act = Act::look,
              .family = charge.family};
  if (const auto ruling = table_->charge({&debit, 1}, {}, now); !ruling) return fail(ruling.error());
  return debit.decision;
}

Result<Verdict> MemoryStore::overdraw(std::span<const Charge> charges, std::int64_t now) {
  Batch batch;
  if (auto added = batch.add(*table_, charges); !added) return fail(added.error());
  batch.make_room();
  for (Debit& debit : batch.debits()) debit.act = Act::overdraw;
  const auto ruling = table_->charge(batch.debits(), {}, now);
  if (!ruling) return fail(ruling.error());
  return batch.answer(true);
}

Result<Verdict> MemoryStore::reserve(std::span<const Charge> charges, std::string_view id, Micros lasts,
                                     std::int64_t now) {
  return settle(charges, id, lasts, now, false, {});
}

Result<Verdict> MemoryStore::commit(std::span<const Charge> actual, std::string_view id, std::int64_t now,
                                    std::span<Returned> returned) {
  return settle(actual, id, Micros{0}, now, true, returned);
}

Result<Verdict> MemoryStore::refund(std::span<const Charge> charges, std::int64_t charged_us, std::int64_t now,
                                    std::span<Returned> returned) {
  Batch batch;
  if (auto added = batch.add(*table_, charges); !added) return fail(added.error());
  batch.make_room();
  std::array<Charged, table::kChargesMax> charged;
  const std::span<Debit> debits = batch.debits();
  for (std::size_t i = 0; i < debits.size(); ++i) {
    charged[i] = charged_at(*debits[i].limit, charged_us);
    debits[i].cost = -debits[i].cost;
    debits[i].act = Act::refund;
    debits[i].charged = &charged[i];
  }
  const auto ruling = table_->charge(debits, {}, now);
  if (!ruling) return fail(ruling.error());
  batch.tell_returned(returned);
  return batch.answer(true);
}

// Both ends of a reservation. reserve() issues a ticket per key with the charges; commit() takes the tickets while it
// settles.
Result<Verdict> MemoryStore::settle(std::span<const Charge> charges, std::string_view id, Micros lasts,
                                    std::int64_t now, bool take, std::span<Returned> returned) {
  Batch batch;
  if (auto added = batch.add(*table_, charges); !added) return fail(added.error());
  batch.make_room();
  if (take) batch.make_room_for_reserved();
  const std::span<Debit> debits = batch.debits();
  if (debits.size() > kReservedMax) {
    return fail(ErrorCode::out_of_range, "at most " + std::to_string(kReservedMax) + " limits can be reserved at once");
  }
  std::array<Ticket, kReservedMax> tickets;
  for (std::size_t i = 0; i < debits.size(); ++i) {
    if (debits[i].cost < 0 || debits[i].cost > kPermitsMax) {
      return fail(ErrorCode::out_of_range,
                  "the cost of a reservation must be 0 to " + std::to_string(kPermitsMax) + " permits");
    }
    const std::string name = reservation_of(id, charges[batch.first_of(i)]);
    tickets[i] = {.name = table_->ticket_name(table::kReservation, name),
                  .kind = table::kReservation,
                  .take = take,
                  .expires_us = now + lasts.count()};
    if (take) debits[i].act = Act::settle;
  }
  const auto ruling = table_->charge(debits, {tickets.data(), debits.size()}, now);
  if (!ruling) return fail(ruling.error());
  if (*ruling == Ruling::missing) {
    return fail(not_reserved());
  }
  if (*ruling == Ruling::repeated) {
    return fail(reserved_already());
  }
  if (!take) return batch.answer(*ruling == Ruling::allowed);
  batch.tell_reserved(tickets);
  batch.tell_returned(returned);
  for (std::size_t i = 0; i < debits.size(); ++i) refund_elsewhere(debits[i], tickets[i], now);
  return batch.answer(true);
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

namespace {

// 62 bits of the hash of an id, as the table stores it.
std::array<char, 8> hold_id(const table::Table& table, std::string_view id) {
  const std::uint64_t hash = table.ticket_name(kHoldIds, id).place >> 2;
  std::array<char, 8> bytes;
  std::memcpy(bytes.data(), &hash, sizeof hash);
  return bytes;
}

}  // namespace

Result<Decision> MemoryStore::acquire(const Charge& charge, std::string_view id, std::int64_t now) {
  const auto bytes = hold_id(*table_, id);
  Debit debit{.name = table_->key_name(*charge.limit, charge.key),
              .limit = charge.limit,
              .cost = charge.cost,
              .act = Act::acquire,
              .id = {bytes.data(), bytes.size()},
              .family = charge.family};
  if (const auto ruling = table_->charge({&debit, 1}, {}, now); !ruling) return fail(ruling.error());
  return debit.decision;
}

Result<bool> MemoryStore::release(std::string_view key, std::string_view id, std::int64_t now) {
  const auto bytes = hold_id(*table_, id);
  Debit debit{.name = table_->key_name(Algorithm::concurrency, key),
              .cost = -1,
              .act = Act::release,
              .id = {bytes.data(), bytes.size()}};
  if (const auto ruling = table_->charge({&debit, 1}, {}, now); !ruling) return fail(ruling.error());
  return debit.found;
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

Result<bool> MemoryStore::forget(Algorithm algorithm, std::string_view key, std::int64_t now) {
  return table_->forget(algorithm, key, now);
}

Result<bool> MemoryStore::forget(const Limit& limit, std::string_view key, std::int64_t now) {
  Debit debit{.name = table_->key_name(limit, key), .cost = -1, .act = Act::forget};
  if (const auto ruling = table_->charge({&debit, 1}, {}, now); !ruling) return fail(ruling.error());
  return debit.found;
}

bool MemoryStore::sweep(std::int64_t now) { return table_->sweep(now, kSweptPages); }

Micros MemoryStore::sweep_rest() const {
  constexpr std::int64_t kRoundMin = 1'000'000, kRoundMax = 8'000'000, kRestMin = 1'000;
  const std::int64_t round = std::clamp(table_->shortest_period_us(), kRoundMin, kRoundMax);
  const auto slices = static_cast<std::int64_t>((table_->pages() + kSweptPages - 1) / kSweptPages);
  return Micros{std::max(round / slices, kRestMin)};
}

}  // namespace weir
