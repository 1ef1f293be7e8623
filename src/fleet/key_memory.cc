// Sets of four behind locks. See key_memory.h.
#include "fleet/key_memory.h"

#include <bit>
#include <tuple>

#include "algorithm/calendar.h"
#include "fleet/redis_key.h"
#include "table/table.h"

namespace weir::fleet {
namespace {

constexpr std::uint64_t kNoAlgorithm = 0xff;  // for a name without an algorithm's letter

// A denial that ends sooner is not worth caching.
constexpr Micros kDenialMin{1'000};
constexpr std::int64_t kOvertakenMax_us = 1'000'000;

}  // namespace

KeyMemory::KeyMemory(std::size_t keys, base::SipKey secret)
    : secret_{secret.k0, secret.k1}, sets_(std::bit_ceil((keys + kWays - 1) / kWays)) {}

void KeyMemory::share_secret(base::SipKey secret) {
  secret_[0].store(secret.k0, std::memory_order_relaxed);
  secret_[1].store(secret.k1, std::memory_order_relaxed);
}

KeyMark KeyMemory::mark_of(std::string_view name) const {
  const base::SipKey secret{secret_[0].load(std::memory_order_relaxed), secret_[1].load(std::memory_order_relaxed)};
  const std::optional<Algorithm> algorithm = name.empty() ? std::nullopt : algorithm_of(name.front());
  if (!algorithm) return mark_of(table::Table::hashed(secret, kNoAlgorithm, name));
  return mark_of(table::Table::hashed(secret, static_cast<std::uint64_t>(*algorithm), name.substr(1)));
}

// A hash of everything that a denial depends on. If two limits share a hash, one may get the cached denial of the
// other, until this node asks Redis again.
std::uint32_t KeyMemory::print_of(const Limit& limit) {
  std::uint64_t print = static_cast<std::uint64_t>(limit.algorithm);
  for (const std::int64_t part : {limit.permits, limit.period_us, limit.phase_us, limit.capacity, limit.rate,
                                  limit.weight, limit.events_max, limit.calendar ? limit.calendar->tag() : 0}) {
    print = (print ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15u;
    print ^= print >> 29;
  }
  return static_cast<std::uint32_t>(print);
}

KeyMemory::Entry* KeyMemory::find(Set& set, KeyMark mark, const Limit& limit) {
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set.marks[i] == mark && set.entries[i].period == period_of(limit)) return &set.entries[i];
  }
  return nullptr;
}

// Evicts the record that recovers first, and one with unsynced charges only if all have; null if calls about all of
// them are in flight.
KeyMemory::Entry* KeyMemory::make_room(Set& set, KeyMark mark, const Limit& limit) {
  const auto place = std::ranges::min_element(set.entries, {}, [](const Entry& entry) {
    return std::tuple(entry.calls > 0, entry.unsynced_most > 0, entry.reset_at);
  });
  if (place->calls > 0) return nullptr;
  set.marks[static_cast<std::size_t>(place - set.entries.begin())] = mark;
  *place = {};
  place->period = period_of(limit);
  return place;
}

// Also if the reply was about another version of the limit: what is used stays used.
std::int64_t KeyMemory::remaining_of(const Entry& entry, const Limit& limit, Micros now) {
  if (entry.reset_at <= now) return limit.capacity;
  return std::max<std::int64_t>(0, limit.capacity - entry.used);
}

std::optional<Decision> KeyMemory::denial_of(const Entry& entry, const Limit& limit, Micros now) {
  if (entry.denied_until <= now || entry.limit != print_of(limit)) return {};
  return Decision{.allowed = false,
                  .limit = limit.capacity,
                  .remaining = 0,
                  .retry_after = entry.denied_until - now,
                  .reset_after = std::max(Micros{0}, entry.reset_at - now)};
}

std::optional<Decision> KeyMemory::denial(KeyMark mark, const Limit& limit, std::int64_t cost, Micros now) {
  if (cost != 1 || !is_caching_.load(std::memory_order_relaxed)) return {};
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  const Entry* const entry = find(sets_[set], mark, limit);
  return entry == nullptr ? std::nullopt : denial_of(*entry, limit, now);
}

std::optional<Decision> KeyMemory::guess(KeyMark mark, const Limit& limit, std::int64_t cost, Micros now) {
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  const Entry* const entry = find(sets_[set], mark, limit);
  if (entry == nullptr || !entry->is_known || entry->limit != print_of(limit)) return {};
  const std::int64_t remaining = remaining_of(*entry, limit, now);
  if (cost > remaining) return {};
  return Decision{.allowed = true,
                  .limit = limit.capacity,
                  .remaining = remaining,
                  .reset_after = std::max(Micros{0}, entry->reset_at - now)};
}

std::optional<KnownUsage> KeyMemory::known_usage(KeyMark mark, const Limit& limit, Micros now) {
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  const Entry* const entry = find(sets_[set], mark, limit);
  if (entry == nullptr || entry->limit != print_of(limit) || entry->reset_at <= now) return {};
  return KnownUsage{remaining_of(*entry, limit, now), entry->reset_at, entry->used};
}

void KeyMemory::note(KeyMark mark, const Limit& limit, std::int64_t cost, const Decision& decision,
                     std::int64_t decided_us, const Asked& asked, std::size_t place, Micros now) {
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  Entry* entry = find(sets_[set], mark, limit);
  const bool is_new = entry == nullptr;
  if (is_new) entry = make_room(sets_[set], mark, limit);
  if (entry == nullptr) return;
  if ((asked.counted >> place & 1) != 0) end_call(*entry, cost);
  // A reply that a later one overtook says nothing new. A clock that is further behind belongs to another server. Two
  // replies of one call have the same time: the one that leaves less counts.
  const std::int64_t used = limit.capacity - decision.remaining;
  const bool is_overtaken =
      entry->is_known && decided_us < entry->said_us && entry->said_us - decided_us < kOvertakenMax_us;
  const bool is_beside = entry->is_known && decided_us == entry->said_us && used < entry->used;
  if (is_overtaken || is_beside) return;
  const std::uint32_t print = print_of(limit);
  const bool is_same = entry->limit == print;
  entry->limit = print;
  if (!is_sharing_.load(std::memory_order_relaxed)) {
    entry->seeded = 0;
  } else if (is_new) {
    entry->seeded = round_.load(std::memory_order_relaxed);  // its share may have begun as a whole one
  }
  // If nothing is left under this version of the limit, more than its capacity may be used under a higher one.
  const bool is_more_known = entry->is_known && decision.remaining <= 0 && entry->reset_at > now;
  entry->used = is_more_known ? std::max(used, entry->used) : used;
  entry->is_known = true;
  entry->reset_at = now + decision.reset_after;
  entry->said_us = decided_us;
  const bool is_void = dropped_[set % kLocks] > asked.drops || all_dropped_.load() > asked.drops;
  const bool is_kept = !decision.allowed && cost == 1 && decision.remaining == 0 && decision.retry_after != kNever &&
                       decision.retry_after >= kDenialMin && !is_void;
  if (is_kept) {
    entry->denied_until = asked.at + decision.retry_after;
  } else if (!is_same || decision.allowed ||
             decision.remaining > 0) {  // else a larger cost was denied, as one would be
    entry->denied_until = Micros{0};
  }
}

void KeyMemory::begin_call(Entry& entry, std::int64_t cost, Asked& asked, std::size_t place) {
  const std::uint32_t bit = std::uint32_t{1} << place;
  if (entry.unsynced_most > 0) asked.unsynced_places |= bit;
  if (entry.calls == UINT16_MAX) return;
  asked.counted |= bit;
  ++entry.calls;
  if (cost > 0) entry.in_flight += cost;
}

void KeyMemory::end_call(Entry& entry, std::int64_t cost) {
  if (entry.calls > 0) --entry.calls;
  if (cost > 0) entry.in_flight = std::max<std::int64_t>(0, entry.in_flight - cost);
  if (entry.calls == 0) entry.in_flight = 0;
}

void KeyMemory::mark_unsynced(KeyMark mark, const Limit& limit) {
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  Entry* entry = find(sets_[set], mark, limit);
  if (entry == nullptr) entry = make_room(sets_[set], mark, limit);
  if (entry != nullptr) entry->unsynced_most = kSome;
}

void KeyMemory::recount_unsynced(KeyMark mark, const Limit& limit) {
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  if (Entry* const entry = find(sets_[set], mark, limit)) entry->unsynced_most = kSome;
}

void KeyMemory::miss(KeyMark mark, const Limit& limit, std::int64_t cost, const Asked& asked, std::size_t place) {
  if ((asked.counted >> place & 1) == 0) return;
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  if (Entry* const entry = find(sets_[set], mark, limit)) end_call(*entry, cost);
}

void KeyMemory::set_sharing(bool is_sharing) {
  if (is_sharing_.exchange(is_sharing) == is_sharing) return;
  std::uint16_t next = static_cast<std::uint16_t>(round_.load() + 1);
  round_.store(next == 0 ? std::uint16_t{1} : next);
}

void KeyMemory::drop(KeyMark mark) {
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  dropped_[set % kLocks] = drops_.fetch_add(1) + 1;
  for (std::size_t i = 0; i < kWays; ++i) {
    if (sets_[set].marks[i] == mark) sets_[set].entries[i].denied_until = Micros{0};
  }
}

void KeyMemory::set_caching(bool is_heard) {
  if (is_heard == is_caching_.load()) return;
  if (is_heard) drop_all();
  is_caching_.store(is_heard);
}

void KeyMemory::drop_all() {
  all_dropped_.store(drops_.fetch_add(1) + 1);
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const std::lock_guard lock(lock_of(i));
    for (Entry& entry : sets_[i].entries) entry.denied_until = Micros{0};
  }
}

}  // namespace weir::fleet
