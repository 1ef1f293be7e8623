// See registry.h. Entry 0 is never used: the number 0 means no limit.

#include "table/registry.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace weir::table {
namespace {

enum Guard : std::uint64_t { kFree = 0, kWriting = 1, kReady = 2 };

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

std::uint64_t hash_of(const Limit& limit) {
  std::uint64_t hash = static_cast<std::uint64_t>(limit.algorithm);
  for (const std::int64_t value : {limit.permits, limit.period_us, limit.capacity, limit.rate, limit.weight}) {
    hash = mix(hash, static_cast<std::uint64_t>(value));
  }
  if (limit.phase_us != 0) hash = mix(hash, static_cast<std::uint64_t>(limit.phase_us));
  return limit.calendar ? mix(hash, static_cast<std::uint64_t>(limit.calendar->tag())) : hash;
}

Windows windows_of(const Limit& limit) {
  if (limit.calendar) return kByCalendar;
  return limit.phase_us != 0 ? kByPhase : kByPeriod;
}

std::string zone_of(const RegistryEntry& entry) {
  return {entry.zone, std::min<std::size_t>(entry.zone_bytes, sizeof entry.zone)};
}

std::int64_t phase_of(const RegistryEntry& entry) {
  std::int64_t phase_us = 0;
  if (entry.windows == kByPhase) std::memcpy(&phase_us, entry.zone, sizeof phase_us);
  return phase_us;
}

void write(RegistryEntry& entry, const Limit& limit) {
  entry.permits = limit.permits;
  entry.period_us = limit.period_us;
  entry.capacity = limit.capacity;
  entry.rate = limit.rate;
  entry.weight = limit.weight;
  entry.events_max = limit.events_max;
  entry.algorithm = static_cast<std::uint8_t>(limit.algorithm);
  entry.windows = windows_of(limit);
  entry.calendar_unit = 0;  // a program that knows no phases sees a calendar, whose period it refuses
  if (entry.windows == kByPhase) std::memcpy(entry.zone, &limit.phase_us, sizeof limit.phase_us);
  if (!limit.calendar) return;
  entry.calendar_unit = static_cast<std::uint8_t>(limit.calendar->unit());
  const std::string& zone = limit.calendar->zone_name();
  entry.zone_bytes = static_cast<std::uint8_t>(zone.size());
  std::memcpy(entry.zone, zone.data(), zone.size());
}

}  // namespace

Registry::~Registry() {
  for (auto& known : known_) delete known.load(std::memory_order_relaxed);
}

const Known* Registry::keep(std::uint32_t number, const Limit& limit) {
  auto fresh = std::make_unique<const Known>(Known{limit, packing_of(limit)});
  const Known* none = nullptr;
  if (known_[number].compare_exchange_strong(none, fresh.get(), std::memory_order_acq_rel)) return fresh.release();
  return none;  // another thread was first
}

const Known* Registry::learn(std::uint32_t number) {
  if (number == 0 || number > kLimitsMax) return nullptr;
  const RegistryEntry& entry = region_.limit(number);
  if (load(entry.guard).tag != kReady << 2) return nullptr;
  Limit limit{.algorithm = static_cast<Algorithm>(entry.algorithm),
              .permits = entry.permits,
              .period_us = entry.period_us,
              .phase_us = phase_of(entry),
              .capacity = entry.capacity,
              .rate = entry.rate,
              .weight = entry.weight,
              .events_max = entry.events_max};
  if (entry.windows == kByCalendar && entry.calendar_unit <= static_cast<std::uint8_t>(CalendarUnit::year)) {
    const auto unit = static_cast<CalendarUnit>(entry.calendar_unit);
    if (find_calendar_) limit.calendar = find_calendar_(unit, zone_of(entry));
    // Without the zone's rules its states can still be read: a window is known by its end.
    if (!limit.calendar) limit.calendar = std::make_shared<const Calendar>(unit, zone_of(entry), Zone{});
  }
  if (entry.windows > kByPhase || !is_sound(limit)) return nullptr;  // the file is damaged
  return keep(number, limit);
}

bool Registry::holds(const RegistryEntry& entry, const Limit& limit) const {
  const bool same = entry.algorithm == static_cast<std::uint8_t>(limit.algorithm) && entry.permits == limit.permits &&
                    entry.period_us == limit.period_us && phase_of(entry) == limit.phase_us &&
                    entry.capacity == limit.capacity && entry.rate == limit.rate && entry.weight == limit.weight &&
                    entry.events_max == limit.events_max && entry.windows == windows_of(limit);
  return same && (!limit.calendar || (entry.calendar_unit == static_cast<std::uint8_t>(limit.calendar->unit()) &&
                                      zone_of(entry) == limit.calendar->zone_name()));
}

std::uint32_t Registry::number_of(const Limit& limit, std::uint64_t who) {
  if (limit.calendar && limit.calendar->zone_name().size() > sizeof(RegistryEntry::zone)) return 0;
  const std::uint64_t hash = hash_of(limit);
  for (std::uint32_t probe = 0; probe < kLimitsMax; ++probe) {
    const auto number = static_cast<std::uint32_t>((hash + probe) % kLimitsMax + 1);
    RegistryEntry& entry = region_.limit(number);
    Word guard = load(entry.guard);
    if (guard == Word{} && exchange(entry.guard, guard, {kWriting << 2, who})) {
      write(entry, limit);
      replace(entry.guard, {kWriting << 2, who}, {kReady << 2, hash});
      keep(number, limit);
      return number;
    }
    if (guard == Word{kReady << 2, hash} && holds(entry, limit)) {
      if (met(number) == nullptr) keep(number, limit);
      return number;
    }
  }
  return 0;
}

void Registry::recover(std::uint64_t who) {
  for (std::uint32_t number = 1; number <= kLimitsMax; ++number) {
    RegistryEntry& entry = region_.limit(number);
    if (load(entry.guard) == Word{kWriting << 2, who}) replace(entry.guard, {kWriting << 2, who}, {});
  }
}

bool Registry::has_writers() const {
  for (std::uint32_t number = 1; number <= kLimitsMax; ++number) {
    if (load(region_.limit(number).guard).tag == kWriting << 2) return true;
  }
  return false;
}

void Registry::forget_unused() {
  if (size() <= kLimitsMax / 2) return;
  std::vector<bool> is_used(kLimitBits + 1, false);
  for (std::uint64_t i = 0; i < region_.pages(); ++i) {
    Page& page = region_.page(i);
    for (const Unit& unit : page.overflow) is_used[limit_of(load(unit.tag))] = true;
    for (const auto& line : page.slots) {
      for (const Unit& unit : line) is_used[limit_of(load(unit.tag))] = true;
    }
  }
  for (std::uint32_t number = 1; number <= kLimitsMax; ++number) {
    if (is_used[number]) continue;
    Unit& guard = region_.limit(number).guard;
    replace(guard, load(guard), {});
    delete known_[number].exchange(nullptr);
  }
}

std::int64_t Registry::shortest_period_us() const {
  std::int64_t shortest = INT64_MAX;
  for (std::uint32_t number = 1; number <= kLimitsMax; ++number) {
    const Known* known = met(number);
    if (known != nullptr && known->limit.period_us > 0) shortest = std::min(shortest, known->limit.period_us);
  }
  return shortest;
}

std::uint32_t Registry::size() const {
  std::uint32_t count = 0;
  for (std::uint32_t number = 1; number <= kLimitsMax; ++number) {
    if (load(region_.limit(number).guard).tag == kReady << 2) ++count;
  }
  return count;
}

}  // namespace weir::table
