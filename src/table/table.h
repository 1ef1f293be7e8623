// The table: what every key has used, in one region of fixed size that threads and processes share.
//
// If a key is present and its state fits its slot, one 16-byte exchange charges it. Everything else is a transaction.
// No thread ever waits for another one, even if that one is stopped or killed. The keys themselves are not stored, so
// they cannot be listed. The limits are stored, so each slot can be read on its own. Any thread may call all members,
// also in a child after fork(). Tested by tests/store_contract_test.cc and the tests beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/siphash_many.h"
#include "table/seats.h"
#include "table/transaction.h"

namespace weir::table {

struct TableOptions {
  std::string file{};                    // empty: in memory
  std::uint64_t keys = 0;                // 0: a million, or what the file was created for
  std::uint64_t arena_bytes = 0;         // for logs, permits in flight and large limits; 0: 32 per key
  std::uint64_t memory = 0;              // bytes of the whole table: determines what is 0 above; 0: unspecified
  std::shared_ptr<const Clock> clock{};  // null: the table's own, shared by all its processes
  FindCalendar find_calendar{};
};

class Table {
 public:
  static Result<std::unique_ptr<Table>> open(TableOptions options);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // The name of a key's state under a limit: versions of the limit share it. Tickets have names of their own.
  Name key_name(const Limit& limit, std::string_view key) const { return named(key_name(limit.algorithm, key), limit); }
  // The same for an algorithm whose states belong to no period; otherwise the name that the names of all periods
  // derive from.
  Name key_name(Algorithm algorithm, std::string_view key) const {
    return hashed(static_cast<std::uint64_t>(algorithm), key);
  }
  static Name named(const Name& key, const Limit& limit) {
    return {key.place, key.name ^ (algorithm::period_print(limit) & kHomeMask)};
  }
  // The same under the secret of any table.
  static Name hashed(base::SipKey secret, std::uint64_t tweak, std::string_view key) {
    return named(base::siphash13({secret.k0, secret.k1 ^ tweak}, key));
  }
  base::SipKey secret() const { return hash_key_; }
  // Hashes several keys at once; the tweak of each is its algorithm.
  void hash_keys(std::span<const base::SipInput> keys, base::Hash128* hashes) const {
    base::siphash13_many(hash_key_, keys, hashes);
  }
  static Name named(const base::Hash128& hash) { return {hash.low, hash.high & kNameMask}; }
  Name ticket_name(std::uint32_t kind, std::string_view key) const { return hashed(kind, key); }

  // Brings the key's line into the cache. Inlined by force, because g++ 12 considers a function that only prefetches
  // to have no effect, and drops the call.
  [[gnu::always_inline]] void prefetch(const Name& name) const {
    __builtin_prefetch(page(name).slots[home_line(name.name)], 1, 3);
  }

  // spot()
  //
  // The slot in the key's home line that may contain the key, as a hint. Null for the few keys that are elsewhere.
  // Then it prefetches where the search continues.
  [[gnu::always_inline]] Unit* spot(const Name& name) const {
    Page& home = page(name);
    const std::uint32_t line = home_line(name.name);
    Unit* unit = match(home.slots[line], name.name);
    if (unit == nullptr) [[unlikely]] {
      __builtin_prefetch(&home.version, 1, 3);
      __builtin_prefetch(home.slots[next_line(line)], 1, 3);
    }
    return unit;
  }

  // charge_fast(), charge_run()
  //
  // charge_fast() decides one debit whose key is present, under the same limit, in its slot, by one exchange. False
  // if it takes more than that; then nothing has happened. charge_run() does the same for requests of one debit each,
  // all of one key, in their order. `spotted` is the result of spot(), or null.
  bool charge_fast(Debit& debit, std::int64_t now, Unit* spotted = nullptr);
  bool charge_run(std::span<Debit> debits, std::int64_t now, Unit* spotted);

  // charge()
  //
  // Charges all debits or none, with all tickets.
  Result<Ruling> charge(std::span<Debit> debits, std::span<Ticket> tickets, std::int64_t now);

  // forget()
  //
  // Removes a key's states under an algorithm, of all periods. True if there were any.
  Result<bool> forget(Algorithm algorithm, std::string_view key, std::int64_t now);

  // sweep()
  //
  // Removes expired keys from at most `pages_max` pages, continuing where the last call stopped, and completes what
  // dead processes left. Only one process of a table sweeps at a time; in the others this returns immediately.
  // Returns true at the end of a round, and also if it did not sweep.
  bool sweep(std::int64_t now, std::uint64_t pages_max);
  // The shortest period among the limits that this process has met; very long if none.
  std::int64_t shortest_period_us() const { return registry_.shortest_period_us(); }

  // The number of keys, including expired ones that no sweep has removed yet. Slightly wrong after a kill, until a
  // repair.
  std::uint64_t size();
  std::uint64_t capacity() const { return mapping_.region().pages() * kSlots; }
  std::uint64_t pages() const { return mapping_.region().pages(); }
  Counters counters();
  const std::shared_ptr<const Clock>& clock() const { return clock_; }
  const Region& region() const { return mapping_.region(); }

 private:
  Table(Mapping mapping, TableOptions options);
  // The slot that may contain the key, and the next value of its word, without a transaction.
  Unit* look(const Name& name) const;
  bool propose(Debit& debit, const Word& word, std::int64_t now, std::uint64_t& next) const;
  static bool propose_nothing(Debit& debit, const Word& word, const Card& card, std::int64_t now);
  [[gnu::noinline]] bool stands(Unit& unit, const Word& before, const Word& after, const Debit& debit);
  bool charge_all_fast(Actor& actor, std::span<Debit> debits, std::int64_t now);
  Name hashed(std::uint64_t tweak, std::string_view key) const { return hashed(hash_key_, tweak, key); }
  Page& page(const Name& name) const { return region_.page(region_.page_of(name.place, name.name)); }

  Mapping mapping_;
  const Region region_;
  const base::SipKey hash_key_;
  const bool has_own_clock_;
  std::shared_ptr<const Clock> clock_;
  Registry registry_;
  Seats seats_;
};

// repair()
//
// For a table without other users. Completes every operation that was left. Gives what a machine crash has torn the
// worst interpretation: a slot that cannot be read counts as used up. Lays out the arena's free blocks again.
void repair(const Region& region, Registry& registry, std::int64_t now, bool is_torn);

}  // namespace weir::table
