// The table: what every key has spent, in one region of fixed size that threads and processes share.
//
// A key that is there and whose state fits its slot is charged by one 16-byte exchange; everything else is a
// transaction. Nobody waits for anybody, alive, stopped or dead. The keys themselves are not stored, so they cannot be
// listed; the limits are, so that each slot can be read on its own. All members may be called from any thread, and from
// a child after fork(). Tested by tests/store_contract_test.cc and all that stands there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "table/seats.h"
#include "table/siphash_many.h"
#include "table/transaction.h"

namespace weir::table {

struct TableOptions {
  std::string file{};             // empty: in memory
  std::uint64_t keys = 0;         // 0: a million, or what the file has room for
  std::uint64_t arena_bytes = 0;  // for logs, permits in flight and large limits; 0: 32 a key
  std::uint64_t memory = 0;       // of the whole, in bytes: what was left at 0 above follows from it; 0: no matter
  std::shared_ptr<const Clock> clock{};  // null: the table's own, which all its processes share
  FindCalendar find_calendar{};
};

struct Counters {
  std::uint64_t evicted = 0;    // keys that gave their place to others before they had recovered
  std::uint64_t early = 0;      // requests of new keys that were denied for what evicted ones had used
  std::uint64_t no_room = 0;    // requests that were denied for want of room
  std::uint64_t compacted = 0;  // logs that became two counts for want of a block
  std::uint64_t swept = 0;      // keys that had recovered and were removed
};

class Table {
 public:
  static Result<std::unique_ptr<Table>> open(TableOptions options);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // The state that a key has under a limit: versions of the limit share it. Tickets have a name of their own.
  Name key_name(const Limit& limit, std::string_view key) const { return named(key_name(limit.algorithm, key), limit); }
  // The same of an algorithm whose states belong to no period; else the name that all periods begin with.
  Name key_name(Algorithm algorithm, std::string_view key) const {
    return hashed(static_cast<std::uint64_t>(algorithm), key);
  }
  static Name named(const Name& key, const Limit& limit) {
    return {key.place, key.name ^ (period_print(limit) & kHomeMask)};
  }
  // The same under the secret of any table.
  static Name hashed(SipKey secret, std::uint64_t tweak, std::string_view key) {
    return named(siphash13({secret.k0, secret.k1 ^ tweak}, key));
  }
  SipKey secret() const { return hash_key_; }
  // Of several keys at once; the tweak of each is its algorithm.
  void hash_keys(std::span<const SipInput> keys, Hash128* hashes) const { siphash13_many(hash_key_, keys, hashes); }
  static Name named(const Hash128& hash) { return {hash.low, hash.high & kNameMask}; }
  Name ticket_name(std::uint32_t kind, std::string_view key) const { return hashed(kind, key); }

  // Brings the key's line into the cache. Inlined by force: g++ 12 takes a function that only prefetches for one
  // without effect, and drops the call.
  [[gnu::always_inline]] void prefetch(const Name& name) const {
    __builtin_prefetch(page(name).slots[home_line(name.name)], 1, 3);
  }

  // spot()
  //
  // The slot of the key's home line that may hold it, as a hint. Null for the few keys that lie elsewhere; then the
  // lines where they are looked for next come into the cache.
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
  // One debit whose key is there, under the same limit, in its slot: decided by one exchange. False if it takes more
  // than that; then nothing has happened. The same for requests of one debit each, all of one key, in their order.
  // `spotted` is what spot() said, or null.
  bool charge_fast(Debit& debit, std::int64_t now, Unit* spotted = nullptr);
  bool charge_run(std::span<Debit> debits, std::int64_t now, Unit* spotted);

  // charge()
  //
  // All debits or none, with all tickets.
  Result<Ruling> charge(std::span<Debit> debits, std::span<Ticket> tickets, std::int64_t now);

  // forget()
  //
  // Removes what a key holds under an algorithm, of whatever period. True if there was anything.
  Result<bool> forget(Algorithm algorithm, std::string_view key, std::int64_t now);

  // sweep()
  //
  // Removes lapsed keys from so many pages, going on where the last call stopped, and ends what dead processes left.
  // Only one process of a table does that at a time; the others return at once. True if a whole round was finished.
  bool sweep(std::int64_t now, std::uint64_t pages_max);
  // The shortest of the limits that this process has met; very long if it has met none.
  std::int64_t shortest_period_us() const { return registry_.shortest_period_us(); }

  // Keys that are there, lapsed ones that no sweep has met yet included; off by some after a kill, until a repair.
  std::uint64_t size();
  std::uint64_t capacity() const { return mapping_.region().pages() * kSlots; }
  std::uint64_t pages() const { return mapping_.region().pages(); }
  Counters counters();
  const std::shared_ptr<const Clock>& clock() const { return clock_; }
  const Region& region() const { return mapping_.region(); }

 private:
  Table(Mapping mapping, TableOptions options);
  // The slot that may hold the key, and what its word becomes, without a transaction.
  Unit* look(const Name& name) const;
  bool propose(Debit& debit, const Word& word, std::int64_t now, std::uint64_t& next) const;
  static bool propose_nothing(Debit& debit, const Word& word, const Card& card, std::int64_t now);
  [[gnu::noinline]] bool stands(Unit& unit, const Word& before, const Word& after, const Debit& debit);
  bool charge_all_fast(Actor& actor, std::span<Debit> debits, std::int64_t now);
  Name hashed(std::uint64_t tweak, std::string_view key) const { return hashed(hash_key_, tweak, key); }
  Page& page(const Name& name) const { return region_.page(region_.page_of(name.place, name.name)); }

  Mapping mapping_;
  const Region region_;
  const SipKey hash_key_;
  const bool has_own_clock_;
  std::shared_ptr<const Clock> clock_;
  Registry registry_;
  Seats seats_;
};

// repair()
//
// For a table that nobody else uses: ends every operation that was left, gives what a crash of the machine has torn the
// worst reading (a slot that cannot be read is spent), and lays the arena's free blocks out anew.
void repair(const Region& region, Registry& registry, std::int64_t now, bool is_torn);

}  // namespace weir::table
