// Sets of four behind locks. See key_memory.h.
#include "fleet/key_memory.h"

#include <algorithm>
#include <bit>

#include "algorithm/calendar.h"
#include "store/redis_key.h"
#include "table/table.h"

namespace weir {
namespace {

constexpr std::uint64_t kNoAlgorithm = 0xff;  // of a name that is none

// A denial that ends this soon is not worth a place.
constexpr Micros kDenialMin{1'000};

}  // namespace

KeyMemory::KeyMemory(std::size_t keys, table::SipKey secret)
    : secret_{secret.k0, secret.k1}, sets_(std::bit_ceil((keys + kWays - 1) / kWays)) {}

void KeyMemory::share_secret(table::SipKey secret) {
  secret_[0].store(secret.k0, std::memory_order_relaxed);
  secret_[1].store(secret.k1, std::memory_order_relaxed);
}

KeyMark KeyMemory::mark_of(std::string_view name) const {
  const table::SipKey secret{secret_[0].load(std::memory_order_relaxed), secret_[1].load(std::memory_order_relaxed)};
  const std::optional<Algorithm> algorithm = name.empty() ? std::nullopt : algorithm_of(name.front());
  if (!algorithm) return mark_of(table::Table::hashed(secret, kNoAlgorithm, name));
  return mark_of(table::Table::hashed(secret, static_cast<std::uint64_t>(*algorithm), name.substr(1)));
}

// Of what a decision depends on; two limits with one print are told apart by Redis at the next question.
std::uint32_t KeyMemory::print_of(const Limit& limit) {
  std::uint64_t print = static_cast<std::uint64_t>(limit.algorithm);
  for (const std::int64_t part : {limit.permits, limit.period_us, limit.phase_us, limit.capacity, limit.rate,
                                  limit.weight, limit.events_max, limit.calendar ? limit.calendar->tag() : 0}) {
    print = (print ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15u;
    print ^= print >> 29;
  }
  return static_cast<std::uint32_t>(print);
}

KeyMemory::Entry* KeyMemory::find(Set& set, KeyMark mark) {
  const auto found = std::ranges::find(set.marks, mark);
  return found == set.marks.end() ? nullptr : &set.entries[static_cast<std::size_t>(found - set.marks.begin())];
}

// Whoever is full again first goes first.
KeyMemory::Entry& KeyMemory::make_room(Set& set, KeyMark mark) {
  const auto place = std::ranges::min_element(set.entries, {}, &Entry::reset_at);
  set.marks[static_cast<std::size_t>(place - set.entries.begin())] = mark;
  *place = {};
  return *place;
}

std::optional<Decision> KeyMemory::denial(KeyMark mark, const Limit& limit, std::int64_t cost, Micros now) {
  if (cost != 1 || !is_believed_.load(std::memory_order_relaxed)) return {};
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  const Entry* const entry = find(sets_[set], mark);
  if (entry == nullptr || entry->denied_until <= now || entry->limit != print_of(limit)) return {};
  return Decision{.allowed = false,
                  .limit = limit.capacity,
                  .remaining = 0,
                  .retry_after = entry->denied_until - now,
                  .reset_after = std::max(Micros{0}, entry->reset_at - now)};
}

std::optional<Decision> KeyMemory::guess(KeyMark mark, const Limit& limit, std::int64_t cost, Micros now) {
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  const Entry* const entry = find(sets_[set], mark);
  if (entry == nullptr || entry->limit != print_of(limit)) return {};
  const bool is_full = entry->reset_at <= now;
  const std::int64_t remaining = is_full ? limit.capacity : entry->remaining;
  if (cost > remaining) return {};
  return Decision{.allowed = true,
                  .limit = limit.capacity,
                  .remaining = remaining,
                  .reset_after = is_full ? Micros{0} : entry->reset_at - now};
}

std::optional<Said> KeyMemory::said(KeyMark mark, const Limit& limit, Micros now) {
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  const Entry* const entry = find(sets_[set], mark);
  if (entry == nullptr || entry->limit != print_of(limit) || entry->reset_at <= now) return {};
  return Said{entry->remaining, entry->reset_at};
}

void KeyMemory::note(KeyMark mark, const Limit& limit, std::int64_t cost, const Decision& decision, const Asked& asked,
                     Micros now) {
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  Entry* entry = find(sets_[set], mark);
  if (entry == nullptr) entry = &make_room(sets_[set], mark);
  const std::uint32_t print = print_of(limit);
  const bool is_same = entry->limit == print;
  entry->limit = print;
  entry->is_seeded = false;
  entry->remaining = decision.remaining;
  entry->reset_at = now + decision.reset_after;
  const bool is_void = dropped_[set % kLocks] > asked.voids || all_dropped_.load() > asked.voids;
  const bool is_kept = !decision.allowed && cost == 1 && decision.remaining == 0 && decision.retry_after != kNever &&
                       decision.retry_after >= kDenialMin && !is_void;
  if (is_kept) {
    entry->denied_until = asked.at + decision.retry_after;
  } else if (!is_same || decision.allowed ||
             decision.remaining > 0) {  // else a larger cost was denied, as one would be
    entry->denied_until = Micros{0};
  }
}

void KeyMemory::drop(KeyMark mark) {
  const std::size_t set = set_of(mark);
  const std::lock_guard lock(lock_of(set));
  dropped_[set % kLocks] = voids_.fetch_add(1) + 1;
  Set& places = sets_[set];
  Entry* const entry = find(places, mark);
  if (entry == nullptr) return;
  *entry = {};
  places.marks[static_cast<std::size_t>(entry - places.entries.data())] = {};
}

void KeyMemory::believe(bool is_heard) {
  if (is_heard == is_believed_.load()) return;
  if (is_heard) drop_all();
  is_believed_.store(is_heard);
}

void KeyMemory::drop_all() {
  all_dropped_.store(voids_.fetch_add(1) + 1);
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const std::lock_guard lock(lock_of(i));
    for (Entry& entry : sets_[i].entries) entry.denied_until = Micros{0};
  }
}

}  // namespace weir
