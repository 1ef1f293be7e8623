// The limits that slots refer to by number, so that a slot can be read on its own.
//
// In the region it is a hash table of limits. An entry is claimed, written, then made ready. If its writer dies, the
// entry stays unused until the writer's record is recovered. No thread waits for it: the limit is registered a second
// time, which does no harm. Numbers that no slot uses are reused (recycle.h), with a new generation. Limits that come
// with a request may take half of the numbers, so that rules always get one.
//
// In the process it keeps each limit as it was first met, with its packing. The header's epoch changes before a
// number can mean something new. What this process remembers is valid for the epoch that it has caught up with:
//   - A thread with a seat (seats.h) catches up when it takes the seat. While it has the seat, no number that it can
//     meet gets a new generation, so a Known stays valid that long.
//   - The fast path has no seat. It takes epoch() before it reads a slot and a Card, and changes the slot only if
//     is_current() is true after that. Otherwise its process may not know yet what the number means. After the change
//     it calls is_current() again, in case the thread was suspended just before the change. Cards are never freed, and
//     each field is read as an atomic. If a card is rewritten meanwhile, the epoch reveals it.
// Any thread. Tested by registry_test.cc, recycle_test.cc and tests/schedule_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "table/operation.h"
#include "table/pack.h"

namespace weir::table {

// floor_name()
//
// The name by which a family's floors are found (floor.h): the same for all versions of a limit. Without a family, a
// limit has its own name.
std::uint64_t floor_name(std::uint64_t family, const Limit& limit);

// A limit by its number.
struct Known {
  Limit limit;
  Packing packing;
  std::uint32_t number = 0;
  std::uint64_t generation = 0;  // of the number
  std::uint64_t floor_name = 0;
  std::uint64_t family = 0;
};

// What the fast path needs of a limit. All zero: unknown.
class alignas(64) Card {
 public:
  // Whether it belongs to exactly this limit; a calendar must be the same object. The fast path never decides a log,
  // so the bound on events is not compared. So a limit without a calendar needs only one cache line.
  bool is_of(const Limit& limit) const {
    return (__atomic_load_n(&life_, __ATOMIC_ACQUIRE) & 3) == kWritten && get(permits_) == limit.permits &&
           get(period_us_) == limit.period_us && get(phase_us_) == limit.phase_us && get(capacity_) == limit.capacity &&
           get(rate_) == limit.rate && get(weight_) == limit.weight &&
           (get(bits_) & 0xff) == static_cast<std::uint64_t>(limit.algorithm) &&
           (limit.period_us != 0 || get(calendar_) == limit.calendar.get());
  }
  // The packing of `limit`, which must be the card's limit.
  Packing packing(const Limit& limit) const {
    const std::uint64_t bits = get(bits_);
    return {.kind = static_cast<Kind>(bits >> 8 & 0xff),
            .count_bits = static_cast<std::uint8_t>(bits >> 16),
            .window_bits = static_cast<std::uint8_t>(bits >> 24),
            .fits_slot = (bits >> 32 & 1) != 0,
            .window_us = window_us_of(limit),
            .phase_us = limit.phase_us};
  }
  // Copies the limit itself, from a single life of the card. False if there is none, or if it has a calendar.
  bool copy(Limit& limit) const {
    const std::uint64_t life = __atomic_load_n(&life_, __ATOMIC_ACQUIRE);
    if ((life & 3) != kWritten || get(calendar_) != nullptr) return false;
    limit.algorithm = static_cast<Algorithm>(get(bits_) & 0xff);
    limit.permits = get(permits_);
    limit.period_us = get(period_us_);
    limit.phase_us = get(phase_us_);
    limit.capacity = get(capacity_);
    limit.rate = get(rate_);
    limit.weight = get(weight_);
    limit.events_max = get(events_max_);
    fence_after_read();
    return get(life_) == life;
  }
  std::int64_t period_us() const { return (get(life_) & 3) == kWritten ? get(period_us_) : 0; }

  void fill(const Known& known);
  void clear(std::uint64_t generation);

 private:
  enum Life : std::uint64_t { kEmpty = 0, kBeingWritten = 1, kWritten = 2 };
  template <class T>
  static T get(const T& place) {
    return __atomic_load_n(&place, __ATOMIC_RELAXED);
  }

  std::uint64_t life_;  // generation << 2 | Life
  std::int64_t permits_, period_us_, phase_us_, capacity_, rate_, weight_;
  std::uint64_t bits_;  // algorithm, kind, count_bits, window_bits, fits_slot; the fast path never decides a log
  std::int64_t events_max_;
  const algorithm::Calendar* calendar_;
};

// Finds the calendar of a limit that another process registered; may return null.
using FindCalendar = std::function<std::shared_ptr<const algorithm::Calendar>(CalendarUnit, const std::string& zone)>;

class Registry {
 public:
  Registry(const Region& region, FindCalendar find_calendar);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // known()
  //
  // The limit of a number in a slot; null if there is none. Only for a thread with a seat.
  const Known* known(std::uint32_t number) {
    const Known* found = number == 0 || number > kLimitsMax ? nullptr : known_[number].load(std::memory_order_acquire);
    return found != nullptr ? found : learn(number);
  }
  // Only if this process has met it already.
  const Known* met(std::uint32_t number) const {
    return number > kLimitsMax ? nullptr : known_[number].load(std::memory_order_acquire);
  }

  // card(), epoch(), is_current()
  //
  // For the fast path. Any 12 bits are a valid number.
  const Card& card(std::uint32_t number) const { return cards_[number]; }
  std::uint64_t epoch() const { return caught_up_.load(std::memory_order_acquire); }
  bool is_current(std::uint64_t epoch) const {
    fence_after_read();
    return load(epoch_) == epoch;
  }
  // Whether the number still has this generation.
  bool is_of(std::uint32_t number, std::uint64_t generation) const {
    return generation_of(load(region_.limit(number).guard)) == generation;
  }

  // catch_up()
  //
  // Drops what is remembered of numbers that have a new generation. Call it right after taking a seat.
  void catch_up() {
    const std::uint64_t epoch = load(epoch_);
    if (epoch != caught_up_.load(std::memory_order_acquire)) [[unlikely]]
      catch_up_with(epoch);
  }

  // number_of()
  //
  // The number of a limit of a family; registers it if it is new. Returns 0 if there is no free number near its
  // place, or if it cannot be stored. A limit that a request names by itself, without a family, must not use up what
  // rules need. Logs in two counts have another number than those in blocks.
  std::uint32_t number_of(const Limit& limit, std::uint64_t who, std::uint64_t family, Form form = Form::usual);

  // recall()
  //
  // A limit that this process looked up lately, if it still has a number; otherwise null, and number_of() finds out.
  // It costs a few comparisons instead of two hashes. Only for a thread with a seat.
  const Known* recall(const Limit& limit, std::uint64_t family) const;

  // The calendar of a limit that another process registered.
  std::shared_ptr<const algorithm::Calendar> calendar_of(CalendarUnit unit, const std::string& zone) const;

  // Frees the entry that a dead participant began to write: the one that its record names, or any.
  void recover(std::uint64_t who);
  void recover_everywhere(std::uint64_t who);

  // Whether any entry is being written, by a live or a dead participant.
  bool has_writers() const;

  // forget_unused()
  //
  // For a table without other users. Frees the limits that no slot refers to, if many numbers are in use.
  void forget_unused();

  // The shortest period among the limits that this process has met; INT64_MAX if none.
  std::int64_t shortest_period_us() const;

  // size(): how many are registered. is_crowded(): whether numbers should be reused.
  std::uint32_t size() const;
  bool is_crowded() const;

 private:
  const Known* learn(std::uint32_t number);
  // What a number means.
  struct Meaning {
    const Limit& limit;
    std::uint64_t family = 0;
    Form form = Form::usual;
  };
  const Known* keep(std::uint32_t number, std::uint64_t generation, const Meaning& meaning);
  static bool holds(const RegistryEntry& entry, const Meaning& meaning);
  static void write(RegistryEntry& entry, const Meaning& meaning);
  std::uint32_t number_within(std::uint32_t first, std::uint32_t count, std::uint64_t hash, const Meaning& meaning,
                              std::uint64_t who);
  void catch_up_with(std::uint64_t epoch);

  const Region& region_;
  const std::uint64_t& epoch_;  // the header's
  const FindCalendar find_calendar_;
  std::atomic<std::uint64_t> caught_up_{0};
  Card* cards_ = nullptr;  // one for each 12 bits
  std::array<std::atomic<const Known*>, kLimitsMax + 1> known_{};
  // The previous limit of each number. It is freed when the number changes its meaning again: by then no thread can
  // use it.
  std::array<std::atomic<const Known*>, kLimitsMax + 1> before_{};
  std::array<std::atomic<std::uint32_t>, 256> recent_{};  // the numbers that recall() tries
};

}  // namespace weir::table
