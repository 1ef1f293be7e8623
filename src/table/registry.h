// The limits that slots refer to by number, so that a slot can be read on its own.
//
// In the region: a hash table of limits, to which entries are added and from which none is taken while it is in use.
// An entry is claimed, written, then made ready; one whose writer died stays unused until its record is recovered, and
// nobody waits for it: the limit is then registered a second time, which does no harm. In the process: each limit as it
// was first met, with its packing. Any thread. Tested by registry_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "table/operation.h"
#include "table/pack.h"

namespace weir::table {

// A limit by its number.
struct Known {
  Limit limit;
  Packing packing;
};

// Finds the calendar of a limit that another process registered; may be null.
using FindCalendar = std::function<std::shared_ptr<const Calendar>(CalendarUnit, const std::string& zone)>;

class Registry {
 public:
  Registry(const Region& region, FindCalendar find_calendar)
      : region_(region), find_calendar_(std::move(find_calendar)) {}
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // known()
  //
  // The limit of a number that stands in a slot; null if there is none such.
  const Known* known(std::uint32_t number) {
    const Known* found = number == 0 || number > kLimitsMax ? nullptr : known_[number].load(std::memory_order_acquire);
    return found != nullptr ? found : learn(number);
  }
  // Only what this process has met already: the fast way.
  const Known* met(std::uint32_t number) const {
    return number > kLimitsMax ? nullptr : known_[number].load(std::memory_order_acquire);
  }

  // number_of()
  //
  // The number of a limit, registering it if it is new; 0 if the registry is full or cannot hold it.
  std::uint32_t number_of(const Limit& limit, std::uint64_t who);

  // Frees what a dead participant began to write.
  void recover(std::uint64_t who);

  // Whether any entry is being written, by the living or the dead.
  bool has_writers() const;

  // forget_unused()
  //
  // For a table that nobody else uses: frees the limits that no slot refers to, if most numbers are taken. Without it a
  // table whose limits change often would run out of them for good.
  void forget_unused();

  // The shortest period of those that this process has met; INT64_MAX if there is none.
  std::int64_t shortest_period_us() const;

  // How many are registered.
  std::uint32_t size() const;

 private:
  const Known* learn(std::uint32_t number);
  const Known* keep(std::uint32_t number, const Limit& limit);
  bool holds(const RegistryEntry& entry, const Limit& limit) const;

  const Region& region_;
  const FindCalendar find_calendar_;
  std::array<std::atomic<const Known*>, kLimitsMax + 1> known_{};
};

}  // namespace weir::table
