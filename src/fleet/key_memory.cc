// Sets of four behind locks. See key_memory.h.
#include "fleet/key_memory.h"

#include <bit>
#include <limits>
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
constexpr std::int64_t kFull = std::numeric_limits<std::int64_t>::max();

}  // namespace

KeyMemory::KeyMemory(std::size_t keys, base::SipKey secret, IsLasting is_lasting)
    : is_lasting_(std::move(is_lasting)),
      secret_{secret.k0, secret.k1},
      sets_(std::bit_ceil((keys + kWays - 1) / kWays)) {}

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
KeyMemory::Entry* KeyMemory::make_room(Set& set, KeyMark mark, const Limit& limit, Micros now) {
  const auto place = std::ranges::min_element(set.entries, {}, [](const Entry& entry) {
    return std::tuple(entry.calls > 0, entry.unsynced_most > 0, entry.is_known ? entry.reset_at : Micros{0});
  });
  if (place->calls > 0) return nullptr;
  set.marks[static_cast<std::size_t>(place - set.entries.begin())] = mark;
  Entry entry{.period = period_of(limit), .used = set.evicted_used, .reset_at = set.evicted_until};
  evict(set, *place, now);
  *place = entry;
  return place;
}

// One number for all evicted records of the set: at least what each of their keys had used. A new record starts with
// it.
void KeyMemory::evict(Set& set, const Entry& entry, Micros now) {
  if (!entry.is_known || entry.reset_at <= now) return;
  if (set.evicted_until <= now) set.evicted_used = 0;
  set.evicted_used = std::max(set.evicted_used, entry.is_full ? kFull : entry.used);
  set.evicted_until = std::max(set.evicted_until, entry.reset_at);
}

// Also if the reply was about another version of the limit: what is used stays used. If nothing was left, a higher
// version is full, too.
std::int64_t KeyMemory::remaining_of(const Entry& entry, const Limit& limit, Micros now) {
  if (entry.reset_at <= now) return limit.capacity;
  if (entry.is_full) return 0;
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
  const base::MutexLock lock(lock_of(set));
  const Entry* const entry = find(sets_[set], mark, limit);
  return entry == nullptr ? std::nullopt : denial_of(*entry, limit, now);
}

std::optional<Decision> KeyMemory::guess(KeyMark mark, const Limit& limit, std::int64_t cost, Micros now) {
  const std::size_t set = set_of(mark);
  const base::MutexLock lock(lock_of(set));
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
  const base::MutexLock lock(lock_of(set));
  const Entry* const entry = find(sets_[set], mark, limit);
  if (entry == nullptr || entry->limit != print_of(limit) || entry->reset_at <= now) return {};
  return KnownUsage{remaining_of(*entry, limit, now), entry->reset_at, entry->used};
}

void KeyMemory::note(KeyMark mark, const Limit& limit, std::int64_t cost, const Decision& decision,
                     std::int64_t decided_us, const Asked& asked, std::size_t place, Micros now, bool is_lasting) {
  const std::size_t set = set_of(mark);
  const base::MutexLock lock(lock_of(set));
  Entry* entry = find(sets_[set], mark, limit);
  const bool is_new = entry == nullptr;
  end_call(sets_[set], entry, cost, asked, place);
  if (is_new) entry = make_room(sets_[set], mark, limit, now);
  if (entry == nullptr) {
    Entry known;
    store(known, limit, decision, now);
    return evict(sets_[set], known, now);
  }
  // A reply may be older than the last one: a later one overtook it, or the clock of Redis ran back. What it reports
  // counts if it is more, unless it has recovered since. A clock that is further behind belongs to another server. Two
  // replies of one call have the same time: the one that leaves less counts.
  const std::int64_t behind_us = entry->is_known ? entry->said_us - decided_us : -1;
  const bool is_older = behind_us > 0 && (asked.is_late || behind_us < kOvertakenMax_us);
  if (is_older && decision.reset_after.count() <= behind_us) return;
  if (behind_us == 0 && limit.capacity - decision.remaining < entry->used) return;
  if (!is_sharing_.load(std::memory_order_relaxed)) {
    entry->seeded = 0;
  } else if (is_new && is_lasting) {
    entry->seeded = round_.load(std::memory_order_relaxed);
  }
  if (is_older) return store_older(*entry, limit, decision, now);
  store(*entry, limit, decision, now);
  entry->said_us = decided_us;
  const std::uint32_t print = print_of(limit);
  const bool is_same = entry->limit == print;
  entry->limit = print;
  const bool is_void = dropped_[set % kLocks] > asked.drops || all_dropped_.load() > asked.drops;
  const bool is_kept = !decision.allowed && cost == 1 && decision.remaining == 0 && decision.retry_after != kNever &&
                       decision.retry_after >= kDenialMin && !is_void;
  if (is_kept) {
    entry->denied_until = asked.at + decision.retry_after;
  } else if (!is_same || decision.allowed || decision.remaining > 0) {
    entry->denied_until = Micros{0};
  }  // else nothing is left, so an earlier denial of cost 1 is still right
}

// If nothing is left under this version of the limit, any number of permits may be used under a higher one, unless the
// record has that number.
void KeyMemory::store(Entry& entry, const Limit& limit, const Decision& decision, Micros now) {
  const bool does_count = entry.is_known && entry.reset_at > now;
  const Micros reset_at = now + decision.reset_after;
  entry.is_known = true;
  if (decision.remaining <= 0 && reset_at > now && does_count && (entry.is_full || entry.used >= limit.capacity)) {
    entry.used = std::max(entry.used, limit.capacity);
    entry.reset_at = std::max(entry.reset_at, reset_at);
    return;
  }
  entry.used = limit.capacity - decision.remaining;
  entry.is_full = decision.remaining <= 0;
  entry.reset_at = reset_at;
}

// Takes what an older reply reports only if that is more.
void KeyMemory::store_older(Entry& entry, const Limit& limit, const Decision& decision, Micros now) {
  const Entry last = entry;
  const bool does_count = last.reset_at > now;
  if (does_count && decision.remaining > 0 && limit.capacity - decision.remaining <= last.used) return;
  store(entry, limit, decision, now);
  if (!does_count) return;
  entry.is_full = entry.is_full || last.is_full;
  entry.reset_at = std::max(entry.reset_at, last.reset_at);
}

void KeyMemory::begin_call(Set& set, Entry& entry, std::int64_t cost, Asked& asked, std::size_t place) {
  const std::uint32_t bit = std::uint32_t{1} << place;
  if (entry.unsynced_most > 0) asked.unsynced_places |= bit;
  if (entry.calls == UINT16_MAX) return begin_call(set, cost, asked, place);
  asked.counted |= bit;
  ++entry.calls;
  if (cost > 0) entry.in_flight += cost;
}

void KeyMemory::begin_call(Set& set, std::int64_t cost, Asked& asked, std::size_t place) {
  asked.counted |= std::uint32_t{1} << place;
  asked.without_record |= std::uint32_t{1} << place;
  ++set.calls;
  if (cost > 0) set.in_flight += cost;
}

// The record of a call that is counted there is never evicted.
void KeyMemory::end_call(Set& set, Entry* entry, std::int64_t cost, const Asked& asked, std::size_t place) {
  if ((asked.counted >> place & 1) == 0) return;
  const auto end = [cost](auto& its) {
    if (its.calls > 0) --its.calls;
    if (cost > 0) its.in_flight = std::max<std::int64_t>(0, its.in_flight - cost);
    if (its.calls == 0) its.in_flight = 0;
  };
  if ((asked.without_record >> place & 1) != 0) return end(set);
  if (entry != nullptr) end(*entry);
}

void KeyMemory::mark_unsynced(KeyMark mark, const Limit& limit) {
  const std::size_t set = set_of(mark);
  const base::MutexLock lock(lock_of(set));
  Entry* entry = find(sets_[set], mark, limit);
  if (entry == nullptr) entry = make_room(sets_[set], mark, limit, Micros::min());
  if (entry != nullptr) entry->unsynced_most = kSome;
}

void KeyMemory::recount_unsynced(KeyMark mark, const Limit& limit) {
  const std::size_t set = set_of(mark);
  const base::MutexLock lock(lock_of(set));
  if (Entry* const entry = find(sets_[set], mark, limit)) entry->unsynced_most = kSome;
}

void KeyMemory::miss(KeyMark mark, const Limit& limit, std::int64_t cost, const Asked& asked, std::size_t place) {
  if ((asked.counted >> place & 1) == 0) return;
  const std::size_t set = set_of(mark);
  const base::MutexLock lock(lock_of(set));
  end_call(sets_[set], find(sets_[set], mark, limit), cost, asked, place);
}

void KeyMemory::set_sharing(bool is_sharing) {
  if (is_sharing_.exchange(is_sharing) == is_sharing) return;
  std::uint16_t next = static_cast<std::uint16_t>(round_.load() + 1);
  round_.store(next == 0 ? std::uint16_t{1} : next);
}

void KeyMemory::drop(KeyMark mark) {
  const std::size_t set = set_of(mark);
  const base::MutexLock lock(lock_of(set));
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
    const base::MutexLock lock(lock_of(i));
    for (Entry& entry : sets_[i].entries) entry.denied_until = Micros{0};
  }
}

}  // namespace weir::fleet
