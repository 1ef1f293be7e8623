// The changes that a verdict is about to make: each unit once, in ascending order, as an operation requires.
//
// A unit that was read and stays as it is belongs here, too. The operation then takes effect only if it is still what
// was read. One thread. Tested through tests/store_contract_test.cc.
#pragma once

#include <algorithm>
#include <span>

#include "table/layout.h"

namespace weir::table {

class Changes {
 public:
  // The entry of a unit, or null.
  Entry* find(std::uint64_t unit) {
    Entry* place = lower(unit);
    return place != end() && place->unit == unit ? place : nullptr;
  }

  // set()
  //
  // The unit contains `old` and is to contain `next`. False if another part of the verdict read something else there.
  // Then the verdict does not belong to one moment, and starts again.
  bool set(std::uint64_t unit, const Word& old, const Word& next) {
    Entry* place = lower(unit);
    if (place != end() && place->unit == unit) {
      if (!(place->old == old)) return false;
      place->next = next;
      return true;
    }
    WEIR_ASSERT(size_ < kEntriesMax);  // it suffices for the largest verdict
    std::move_backward(place, end(), end() + 1);
    *place = {unit, old, next};
    ++size_;
    return true;
  }

  void clear() { size_ = 0; }
  std::span<Entry> entries() { return {entries_, size_}; }

 private:
  Entry* end() { return entries_ + size_; }
  Entry* lower(std::uint64_t unit) {
    return std::lower_bound(entries_, end(), unit, [](const Entry& e, std::uint64_t u) { return e.unit < u; });
  }

  std::size_t size_ = 0;
  Entry entries_[kEntriesMax];
};

}  // namespace weir::table
