// See memory_store.h. The order of a request: merge, lock, prepare, decide, reserve room, write, unlock.

#include "store/memory_store.h"

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

namespace weir {

// One key of a request: what it holds, what it is told, what it would become.
struct MemoryStore::Debit {
  CellName name;
  const Limit* limit;
  std::int64_t cost;
  Shard* shard = nullptr;
  Entry* entry = nullptr;  // null if the key is new; stays valid while others are added
  Cell fresh;              // what a new key is decided on
  bool is_copy = false;    // decided on a copy, which lives in `fresh`
  bool moved = false;
  Stepped<Proposal> outcome{};

  Cell& cell() { return entry == nullptr || is_copy ? fresh : entry->cell; }
  std::int64_t expires_us(std::int64_t now) const { return now + outcome.decision.reset_after.count(); }
};

// The shards of a set, in ascending order.
template <class Visit>
void MemoryStore::for_each_shard(std::deque<Shard>& shards, ShardSet set, Visit visit) {
  for (; set != 0; set &= set - 1) visit(shards[static_cast<std::size_t>(std::countr_zero(set))]);
}

// Locks in ascending order, so that two requests never wait for each other in a circle.
class MemoryStore::Locks {
 public:
  Locks(std::deque<Shard>& shards, ShardSet held) : shards_(shards), held_(held) {
    for_each_shard(shards_, held_, [](Shard& shard) { shard.mutex.lock(); });
  }
  ~Locks() {
    for_each_shard(shards_, held_, [](Shard& shard) { shard.mutex.unlock(); });
  }
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;

 private:
  std::deque<Shard>& shards_;
  const ShardSet held_;
};

// Counted in size_ until it goes away; what was not used by then is free again.
class MemoryStore::Room {
 public:
  Room() = default;
  Room(std::atomic<std::size_t>& size, std::size_t keys) : size_(&size), keys_(keys) {}
  Room(Room&& other) noexcept : size_(other.size_), keys_(std::exchange(other.keys_, 0)) {}
  Room& operator=(Room&&) = delete;
  ~Room() {
    if (keys_ > 0) size_->fetch_sub(keys_, std::memory_order_relaxed);
  }
  void use() { --keys_; }

 private:
  std::atomic<std::size_t>* size_ = nullptr;
  std::size_t keys_ = 0;
};

namespace {

std::int64_t add_saturating(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

SipKey random_key() {
  std::random_device random;
  const auto word = [&] { return std::uint64_t{random()} << 32 | random(); };
  return {word(), word()};
}

// The denial with the longest wait, else the limit with the smallest part left.
std::size_t binding_of(const Verdict& verdict) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < verdict.decisions.size(); ++i) {
    const Decision& a = verdict.decisions[i];
    const Decision& b = verdict.decisions[best];
    const bool tighter =
        verdict.allowed ? Wide{a.remaining} * b.limit < Wide{b.remaining} * a.limit : a.retry_after > b.retry_after;
    if (tighter) best = i;
  }
  return best;
}

}  // namespace

MemoryStore::MemoryStore(std::size_t keys_max, std::shared_ptr<const Clock> clock)
    : keys_max_(keys_max), clock_(std::move(clock)), hash_key_(random_key()) {
  // The shard is chosen under a key of its own: the keys of one shard fill all buckets of its map.
  const SipKey map_key = random_key();
  for (std::size_t i = 0; i < kShards; ++i) shards_.emplace_back(map_key);
}

std::size_t MemoryStore::NameHash::operator()(const CellName& name) const {
  return siphash13({key.k0, key.k1 ^ static_cast<std::uint64_t>(name.algorithm)}, name.key);
}

std::size_t MemoryStore::shard_of(const CellName& name) const { return NameHash{hash_key_}(name) % kShards; }

std::vector<MemoryStore::Debit> MemoryStore::merge(std::span<const Charge> charges, std::vector<std::size_t>& places) {
  std::vector<Debit> debits;
  debits.reserve(charges.size());
  for (const Charge& charge : charges) {
    const CellName name{charge.limit->algorithm, charge.key};
    const auto same = std::find_if(debits.begin(), debits.end(), [&](const Debit& d) {
      return d.name.key == name.key && d.name.algorithm == name.algorithm;
    });
    places.push_back(static_cast<std::size_t>(same - debits.begin()));
    if (same == debits.end()) {
      debits.push_back({.name = name, .limit = charge.limit, .cost = charge.cost, .fresh = Cell(*charge.limit)});
    } else {
      same->cost = add_saturating(same->cost, charge.cost);
    }
  }
  return debits;
}

Result<Verdict> MemoryStore::charge(std::span<const Charge> charges, std::int64_t now) {
  Verdict verdict;
  verdict.decisions.reserve(charges.size());
  std::vector<std::size_t> places;
  std::vector<Debit> debits = merge(charges, places);
  ShardSet held = 0;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    Debit& debit = debits[places[i]];
    if (!(*debit.limit == *charges[i].limit)) {
      return fail(ErrorCode::invalid_argument,
                  "a key is given twice with different limits: two limits need two keys, such as user:42/second and "
                  "user:42/hour");
    }
    debit.shard = &shards_[shard_of(debit.name)];
    held |= ShardSet{1} << shard_of(debit.name);
  }

  const Locks locks(shards_, held);
  now = time_of(held, now);
  verdict.allowed = true;
  for (Debit& debit : debits) {
    prepare(debit, now);
    debit.outcome = debit.cell().decide(now, debit.cost);
    verdict.allowed = verdict.allowed && debit.outcome.decision.allowed;
  }
  if (verdict.allowed) {
    auto room = reserve(debits, held, now);
    if (!room) {
      for (Debit& debit : debits) settle(debit, now);
      return fail(room.error());
    }
    for (Debit& debit : debits) take(debit, *room, now);
  } else {
    for (Debit& debit : debits) settle(debit, now);
  }
  for (const std::size_t place : places) verdict.decisions.push_back(debits[place].outcome.decision);
  verdict.binding = binding_of(verdict);
  return verdict;
}

// The time of a request whose shards are locked. Only a clock that was really set back makes it run backwards.
std::int64_t MemoryStore::time_of(ShardSet held, std::int64_t now) {
  std::int64_t latest = 0;
  for_each_shard(shards_, held, [&](const Shard& shard) { latest = std::max(latest, shard.latest_us); });
  if (now < latest) now = clock_->now().count();
  now = std::clamp<std::int64_t>(now, 0, kTimeEnd - 1);
  for_each_shard(shards_, held, [&](Shard& shard) { shard.latest_us = now; });
  return now;
}

// Finds the key's cell and brings it to now.
void MemoryStore::prepare(Debit& debit, std::int64_t now) {
  const auto found = debit.shard->entries.find(debit.name);
  if (found == debit.shard->entries.end()) return;
  debit.entry = &found->second;
  // A lapsed entry is not swept while it is in use.
  debit.entry->expires_us = std::max(debit.entry->expires_us, now + 1);
  debit.shard->earliest_us = std::min(debit.shard->earliest_us, debit.entry->expires_us);
  if (debit.cost != 0 || debit.entry->cell.is_current(*debit.limit, now)) {
    debit.moved = debit.entry->cell.prepare(*debit.limit, now);
    if (debit.moved && debit.limit->algorithm != Algorithm::concurrency) {  // known before anything can go wrong
      const std::int64_t reset = debit.entry->cell.decide(now, 0).decision.reset_after.count();
      debit.entry->expires_us = std::max(debit.entry->expires_us, now + reset);
    }
  } else {  // a peek is told what would become of the state, and leaves it as it is
    debit.fresh = debit.entry->cell;
    debit.fresh.prepare(*debit.limit, now);
    debit.is_copy = true;
  }
}

// Room for the keys that this request will add.
Result<MemoryStore::Room> MemoryStore::reserve(std::span<Debit> debits, ShardSet held, std::int64_t now) {
  std::size_t added = 0;
  for (const Debit& debit : debits) added += debit.entry == nullptr && debit.expires_us(now) > now ? 1u : 0u;
  if (added == 0) return Room{};
  const bool fits = size_.fetch_add(added, std::memory_order_relaxed) + added <= keys_max_;
  Room room(size_, added);
  if (fits || make_room(held, now)) return room;
  return fail(ErrorCode::exhausted, "all " + std::to_string(keys_max_) +
                                        " keys are in use and none has recovered yet; raise the number of keys");
}

// Writes what an allowed request makes of a key.
void MemoryStore::take(Debit& debit, Room& room, std::int64_t now) {
  if (debit.cost != 0) debit.cell().commit(debit.outcome.next);
  if (debit.cost != 0 || debit.moved) keep(debit, room, now);
}

// After a denial: nothing is charged, and who would have passed says what it holds.
void MemoryStore::settle(Debit& debit, std::int64_t now) {
  if (debit.outcome.decision.allowed) {
    debit.outcome = debit.cell().decide(now, 0);
    debit.outcome.decision.allowed = true;  // also where a lowered limit would deny even a peek
    debit.outcome.decision.retry_after = Micros{0};
  }
  Room none;
  if (debit.moved) keep(debit, none, now);
}

// Keeps the cell for as long as it differs from a fresh one. Room for a new one is reserved already.
void MemoryStore::keep(Debit& debit, Room& room, std::int64_t now) {
  Shard& shard = *debit.shard;
  const std::int64_t expires_us = debit.expires_us(now);
  if (expires_us <= now) {
    if (debit.entry != nullptr) forget(shard, debit.name);
    return;
  }
  shard.earliest_us = std::min(shard.earliest_us, expires_us);
  if (debit.entry != nullptr) {
    debit.entry->expires_us = expires_us;
    return;
  }
  if (shard.entries.size() >= shard.sweep_at) sweep(shard, now);
  shard.entries.emplace(StoredName{debit.name.algorithm, std::string(debit.name.key)},
                        Entry{std::move(debit.fresh), expires_us});
  room.use();
}

Result<Decision> MemoryStore::acquire(const Charge& charge, std::string_view id, std::int64_t now) {
  Debit debit{.name = {charge.limit->algorithm, charge.key},
              .limit = charge.limit,
              .cost = charge.cost,
              .fresh = Cell(*charge.limit)};
  const std::size_t shard = shard_of(debit.name);
  const ShardSet held = ShardSet{1} << shard;
  debit.shard = &shards_[shard];
  const Locks locks(shards_, held);
  now = time_of(held, now);
  prepare(debit, now);
  debit.outcome.decision = debit.cell().acquire(now, id, charge.cost);
  auto room = reserve({&debit, 1}, held, now);
  if (!room) return fail(room.error());
  if (debit.moved || (debit.outcome.decision.allowed && charge.cost != 0)) keep(debit, *room, now);
  return debit.outcome.decision;
}

bool MemoryStore::release(std::string_view key, std::string_view id, std::int64_t now) {
  const CellName name{Algorithm::concurrency, key};
  const ShardSet held = ShardSet{1} << shard_of(name);
  Shard& shard = shards_[shard_of(name)];
  const Locks locks(shards_, held);
  now = time_of(held, now);
  const auto found = shard.entries.find(name);
  if (found == shard.entries.end()) return false;
  const Limit limit = found->second.cell.limit();
  Debit debit{.name = name, .limit = &limit, .cost = -1, .shard = &shard, .fresh = Cell(limit)};
  prepare(debit, now);
  debit.outcome.decision = debit.cell().release(now, id);
  Room none;
  if (debit.moved || debit.outcome.decision.allowed) keep(debit, none, now);
  return debit.outcome.decision.allowed;
}

bool MemoryStore::reset(std::string_view key, std::int64_t now) {
  bool found = false;
  for (const Algorithm algorithm : kAlgorithms) {
    const CellName name{algorithm, key};
    Shard& shard = shards_[shard_of(name)];
    const std::lock_guard lock(shard.mutex);
    const auto entry = shard.entries.find(name);
    if (entry == shard.entries.end()) continue;
    found |= entry->second.expires_us > now;
    forget(shard, name);
  }
  return found;
}

void MemoryStore::forget(Shard& shard, const CellName& name) {
  shard.entries.erase(shard.entries.find(name));
  size_.fetch_sub(1, std::memory_order_relaxed);
}

// Frees at least one key if any has lapsed, here first, then in shards that nobody is using.
bool MemoryStore::make_room(ShardSet held, std::int64_t now) {
  const auto fits = [&] { return size() <= keys_max_; };
  for_each_shard(shards_, held, [&](Shard& shard) { sweep(shard, now); });
  for (std::size_t i = 0; i < kShards && !fits(); ++i) {
    if ((held >> i & 1) != 0 || !shards_[i].mutex.try_lock()) continue;
    const std::lock_guard lock(shards_[i].mutex, std::adopt_lock);
    sweep(shards_[i], now);
  }
  return fits();
}

void MemoryStore::sweep(Shard& shard, std::int64_t now) {
  if (shard.earliest_us <= now) {
    shard.earliest_us = INT64_MAX;
    for (auto entry = shard.entries.begin(); entry != shard.entries.end();) {
      if (entry->second.expires_us <= now) {
        entry = shard.entries.erase(entry);
        size_.fetch_sub(1, std::memory_order_relaxed);
      } else {
        shard.earliest_us = std::min(shard.earliest_us, entry->second.expires_us);
        ++entry;
      }
    }
  }
  shard.sweep_at = std::max<std::size_t>(64, 2 * shard.entries.size());
}

}  // namespace weir
