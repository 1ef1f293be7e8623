// See registry.h. Entry 0 is never used: the number 0 means no limit.

#include "table/registry.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <tuple>

namespace weir::table {
namespace {

// How far from its place a limit is searched: a registry that is nearly full must not make each new key slow.
constexpr std::uint32_t kProbesMax = 64;
constexpr std::size_t kCardBytes = (kLimitBits + 1) * sizeof(Card);

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

// Where recall() looks for a limit, which needs no good hash.
std::size_t recent_place(const Limit& limit, std::uint64_t family) {
  const auto numbers = static_cast<std::uint64_t>(limit.permits ^ limit.period_us ^ limit.rate);
  return ((numbers ^ family) * 0x9e3779b97f4a7c15) >> 56;
}

Windows windows_of(const Limit& limit, Form form) {
  if (form == Form::compact) return kCompact;
  if (limit.calendar) return kByCalendar;
  return limit.phase_us != 0 ? kByPhase : kByPeriod;
}

// The numbers of a limit, in the registry or in memory.
template <class Numbered>
auto numbers_of(Numbered& limit) {
  return std::tie(limit.permits, limit.period_us, limit.capacity, limit.rate, limit.weight, limit.events_max);
}

// Cheaper than ==, because a calendar must be the same object.
bool are_same(const Limit& a, const Limit& b) {
  return numbers_of(a) == numbers_of(b) && a.phase_us == b.phase_us && a.algorithm == b.algorithm &&
         a.calendar == b.calendar;
}

std::string zone_of(const RegistryEntry& entry) {
  return {entry.zone, std::min<std::size_t>(entry.zone_bytes, sizeof entry.zone)};
}

std::int64_t phase_of(const RegistryEntry& entry) {
  std::int64_t phase_us = 0;
  if (entry.windows == kByPhase) std::memcpy(&phase_us, entry.zone, sizeof phase_us);
  return phase_us;
}

void recover_entry(RegistryEntry& entry, std::uint64_t who) {
  const Word guard = load(entry.guard);
  if (state_of(guard) == kWriting && guard.state == who) {
    replace(entry.guard, guard, {guard_tag(kFree, generation_of(guard)), 0});
  }
}

}  // namespace

void Registry::write(RegistryEntry& entry, const Meaning& meaning) {
  const Limit& limit = meaning.limit;
  entry.family = meaning.family;
  numbers_of(entry) = numbers_of(limit);
  entry.algorithm = static_cast<std::uint8_t>(limit.algorithm);
  entry.windows = windows_of(limit, meaning.form);
  entry.calendar_unit = 0;  // a program that does not know phases sees a calendar, and refuses its period
  if (entry.windows == kByPhase) std::memcpy(entry.zone, &limit.phase_us, sizeof limit.phase_us);
  if (!limit.calendar) return;
  entry.calendar_unit = static_cast<std::uint8_t>(limit.calendar->unit());
  const std::string& zone = limit.calendar->zone_name();
  entry.zone_bytes = static_cast<std::uint8_t>(zone.size());
  std::memcpy(entry.zone, zone.data(), zone.size());
}

std::uint64_t floor_name(std::uint64_t family, const Limit& limit) {
  std::uint64_t hash = family;
  if (family == 0) {
    hash = hash_of(limit);
  } else {
    hash = mix(hash, static_cast<std::uint64_t>(limit.algorithm));
    if (!algorithm::is_bucket(limit.algorithm)) hash = mix(hash, static_cast<std::uint64_t>(limit.period_us));
    if (limit.calendar) hash = mix(hash, static_cast<std::uint64_t>(limit.calendar->tag()));
  }
  const std::uint64_t name = mix(hash, 0x666c6f6f72) & kNameMask;
  return name != 0 ? name : std::uint64_t{1} << kNameShift;
}

void Card::fill(const Known& known) {
  std::uint64_t empty = kEmpty;
  if (!__atomic_compare_exchange_n(&life_, &empty, known.generation << 2 | kBeingWritten, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED)) {
    return;
  }
  const auto set = [](auto& place, auto value) { __atomic_store_n(&place, value, __ATOMIC_RELAXED); };
  const Limit& limit = known.limit;
  const Packing& packing = known.packing;
  set(permits_, limit.permits);
  set(period_us_, limit.period_us);
  set(phase_us_, limit.phase_us);
  set(capacity_, limit.capacity);
  set(rate_, limit.rate);
  set(weight_, limit.weight);
  set(events_max_, limit.events_max);
  set(calendar_, limit.calendar.get());
  set(bits_, static_cast<std::uint64_t>(limit.algorithm) | static_cast<std::uint64_t>(packing.kind) << 8 |
                 std::uint64_t{packing.count_bits} << 16 | std::uint64_t{packing.window_bits} << 24 |
                 std::uint64_t{packing.fits_slot && packing.kind != Kind::compact} << 32);
  __atomic_store_n(&life_, known.generation << 2 | kWritten, __ATOMIC_RELEASE);
}

void Card::clear(std::uint64_t generation) {
  std::uint64_t written = generation << 2 | kWritten;
  __atomic_compare_exchange_n(&life_, &written, std::uint64_t{kEmpty}, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

// The cards come from the system as zeros, and take memory only as they are used.
Registry::Registry(const Region& region, FindCalendar find_calendar)
    : region_(region),
      epoch_(region.header().limits_epoch),
      find_calendar_(std::move(find_calendar)),
      caught_up_(load(epoch_)) {
  void* cards = ::mmap(nullptr, kCardBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (cards == MAP_FAILED) throw std::bad_alloc();
  cards_ = static_cast<Card*>(cards);
}

Registry::~Registry() {
  ::munmap(cards_, kCardBytes);
  for (auto& known : known_) delete known.load(std::memory_order_relaxed);
  for (auto& known : before_) delete known.load(std::memory_order_relaxed);
}

const Known* Registry::keep(std::uint32_t number, std::uint64_t generation, const Meaning& meaning) {
  const Limit& limit = meaning.limit;
  auto fresh = std::make_unique<const Known>(Known{limit, packing_of(limit, meaning.form), number, generation,
                                                   floor_name(meaning.family, limit), meaning.family});
  const Known* kept = nullptr;
  if (known_[number].compare_exchange_strong(kept, fresh.get(), std::memory_order_acq_rel)) kept = fresh.release();
  cards_[number].fill(*kept);
  return kept;
}

void Registry::catch_up_with(std::uint64_t epoch) {
  for (std::uint32_t number = 1; number <= limits_max(); ++number) {
    const Known* known = met(number);
    if (known == nullptr || is_of(number, known->generation)) continue;
    cards_[number].clear(known->generation);
    if (known_[number].compare_exchange_strong(known, nullptr, std::memory_order_acq_rel)) {
      delete before_[number].exchange(known, std::memory_order_acq_rel);
    }
  }
  caught_up_.store(epoch, std::memory_order_release);
}

const Known* Registry::learn(std::uint32_t number) {
  if (number == 0 || number > kLimitsMax) return nullptr;
  const RegistryEntry& entry = region_.limit(number);
  const Word guard = load(entry.guard);
  if (state_of(guard) != kReady && state_of(guard) != kClosing) return nullptr;
  Limit limit{.algorithm = static_cast<Algorithm>(entry.algorithm), .phase_us = phase_of(entry)};
  numbers_of(limit) = numbers_of(entry);
  if (entry.windows == kByCalendar && entry.calendar_unit <= static_cast<std::uint8_t>(CalendarUnit::year)) {
    limit.calendar = calendar_of(static_cast<CalendarUnit>(entry.calendar_unit), zone_of(entry));
  }
  const Form form = entry.windows == kCompact ? Form::compact : Form::usual;
  // Otherwise the file is damaged, or a later program has written it.
  if (entry.windows > kCompact || !algorithm::is_sound(limit)) return nullptr;
  if (form == Form::compact && (limit.algorithm != Algorithm::sliding_log || !packing_of(limit, form).fits_slot)) {
    return nullptr;
  }
  const bool has_families = region_.header().version > 1;
  return keep(number, generation_of(guard), {limit, has_families ? entry.family : 0, form});
}

// Remembers the last calendar, since the zone comes from a file.
std::shared_ptr<const algorithm::Calendar> Registry::calendar_of(CalendarUnit unit, const std::string& zone) const {
  struct Last {
    const Registry* of = nullptr;
    std::shared_ptr<const algorithm::Calendar> calendar{};
  };
  thread_local Last last;
  if (last.of == this && last.calendar->unit() == unit && last.calendar->zone_name() == zone) return last.calendar;
  auto found = find_calendar_ ? find_calendar_(unit, zone) : nullptr;
  // Without the zone's rules its states can still be read: a window is identified by its end.
  if (!found) found = std::make_shared<const algorithm::Calendar>(unit, zone, algorithm::Zone{});
  last = {this, found};
  return found;
}

bool Registry::holds(const RegistryEntry& entry, const Meaning& meaning) {
  const Limit& limit = meaning.limit;
  const bool same = entry.family == meaning.family && entry.algorithm == static_cast<std::uint8_t>(limit.algorithm) &&
                    numbers_of(entry) == numbers_of(limit) && phase_of(entry) == limit.phase_us &&
                    entry.windows == windows_of(limit, meaning.form);
  return same && (!limit.calendar || (entry.calendar_unit == static_cast<std::uint8_t>(limit.calendar->unit()) &&
                                      zone_of(entry) == limit.calendar->zone_name()));
}

const Known* Registry::recall(const Limit& limit, std::uint64_t family) const {
  const std::uint32_t number = recent_[recent_place(limit, family)].load(std::memory_order_relaxed);
  const Known* const known = met(number);
  if (known == nullptr || known->family != family || known->packing.kind == Kind::compact) return nullptr;
  if (!are_same(limit, known->limit)) return nullptr;
  const std::uint64_t tag = load(region_.limit(number).guard.tag);
  return tag == guard_tag(kReady, known->generation) ? known : nullptr;
}

std::uint32_t Registry::number_of(const Limit& limit, std::uint64_t who, std::uint64_t family, Form form) {
  if (form == Form::usual) {
    if (const Known* const known = recall(limit, family)) return known->number;
  }
  if (limit.calendar && limit.calendar->zone_name().size() > kZoneMax) return 0;
  const Meaning meaning{limit, family, form};
  std::uint64_t hash = family == 0 ? hash_of(limit) : mix(hash_of(limit), family);
  if (form == Form::compact) hash = mix(hash, kCompact);
  std::uint32_t number = 0;
  if (family != 0) number = number_within(ad_hoc_max(), limits_max() - ad_hoc_max(), hash, meaning, who);
  if (number == 0) number = number_within(0, ad_hoc_max(), hash, meaning, who);
  if (form == Form::usual) recent_[recent_place(limit, family)].store(number, std::memory_order_relaxed);
  return number;
}

std::uint32_t Registry::number_within(std::uint32_t first, std::uint32_t count, std::uint64_t hash,
                                      const Meaning& meaning, std::uint64_t who) {
  for (std::uint32_t probe = 0; probe < std::min(kProbesMax, count); ++probe) {
    const auto number = static_cast<std::uint32_t>(first + (hash + probe) % count + 1);
    RegistryEntry& entry = region_.limit(number);
    const Word guard = load(entry.guard);
    const std::uint64_t generation = generation_of(guard);
    if (state_of(guard) == kFree) {
      store(region_.participant(who).writing, number);
      const Word writing{guard_tag(kWriting, generation), who};
      const bool is_ours = replace(entry.guard, guard, writing);
      if (is_ours) {
        write(entry, meaning);
        replace(entry.guard, writing, {guard_tag(kReady, generation), hash});
        keep(number, generation, meaning);
      }
      store(region_.participant(who).writing, 0);
      if (is_ours) return number;
    } else if (state_of(guard) == kReady && guard.state == hash && holds(entry, meaning)) {
      if (met(number) == nullptr) keep(number, generation, meaning);
      return number;
    }
  }
  return 0;
}

void Registry::recover(std::uint64_t who) {
  const std::uint64_t number = load(region_.participant(who).writing);
  if (number == 0) return;
  if (number <= kLimitsMax) recover_entry(region_.limit(static_cast<std::uint32_t>(number)), who);
  store(region_.participant(who).writing, 0);
}

void Registry::recover_everywhere(std::uint64_t who) {
  for (std::uint32_t number = 1; number <= limits_max(); ++number) recover_entry(region_.limit(number), who);
}

bool Registry::has_writers() const {
  for (std::uint32_t number = 1; number <= limits_max(); ++number) {
    if (state_of(load(region_.limit(number).guard)) == kWriting) return true;
  }
  return false;
}

void Registry::forget_unused() {
  store(region_.header().recycling, 0);
  if (!is_crowded()) return;
  NumberSet used;
  for (std::uint64_t i = 0; i < region_.pages(); ++i) {
    Page& page = region_.page(i);
    for (const Unit& unit : page.floors) note_numbers(load(unit), used);
    for (const Unit& unit : slots_of(page)) note_numbers(load(unit), used);
  }
  for (std::uint32_t number = 1; number <= limits_max(); ++number) {
    if (used.has(number)) continue;
    Unit& guard = region_.limit(number).guard;
    const Word word = load(guard);
    if (state_of(word) != kFree) replace(guard, word, {guard_tag(kFree, generation_of(word) + 1), 0});
  }
  store(region_.header().limits_epoch, load(region_.header().limits_epoch) + 1);
  catch_up();
}

std::int64_t Registry::shortest_period_us() const {
  std::int64_t shortest = INT64_MAX;
  for (std::uint32_t number = 1; number <= limits_max(); ++number) {
    if (met(number) == nullptr) continue;  // its card has no memory yet
    if (const std::int64_t period = cards_[number].period_us(); period > 0) shortest = std::min(shortest, period);
  }
  return shortest;
}

std::uint32_t Registry::size() const {
  std::uint32_t count = 0;
  for (std::uint32_t number = 1; number <= limits_max(); ++number) {
    if (state_of(load(region_.limit(number).guard)) != kFree) ++count;
  }
  return count;
}

bool Registry::is_crowded() const {
  std::uint32_t ad_hoc = 0, rules = 0;
  for (std::uint32_t number = 1; number <= limits_max(); ++number) {
    if (state_of(load(region_.limit(number).guard)) != kFree) ++(number <= ad_hoc_max() ? ad_hoc : rules);
  }
  return ad_hoc > ad_hoc_max() / 2 || rules > (limits_max() - ad_hoc_max()) / 2;
}

}  // namespace weir::table
