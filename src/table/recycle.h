// Reuses the numbers of limits that no slot uses any more.
//
// A table has 4,092 numbers and runs for years. The sweep looks for unused ones whenever more than half are taken:
//
//   1. looking    A round of the sweep notes every number in a slot. The others become *closing*: they can be read,
//                 but no new key gets them. The epoch rises.
//   2. closing    Waits for all transactions that began before: they may still insert a key under such a number.
//   3. checking   Another round. Now a number that is not in a page cannot get into it: keys move neither between pages
//                 nor between numbers. A page with an insertion during its reading is read again. Numbers that were
//                 found are ready again, the others are *resting*. The epoch rises.
//   4. resting    Waits for all transactions that began before: they may have read a slot with such a number. Then
//                 each number gets a new generation, and the epoch rises.
//   5. renewing   Waits for all transactions that began before: their processes may remember the old limits of the
//                 numbers, and would read a slot of the new limit as one of the old. Then the numbers are free.
//
// "Waits" means that the sweep checks again a round later; no request ever waits. A participant that was stopped in
// the middle of a transaction delays this. One that was killed delays it until the sweep recovers its record.
// Meanwhile limits without a number are stored in blocks. The fast path has no record and needs none: it compares the
// epoch before and after (registry.h). The steps are in the header, so another process continues where one was
// killed. For the thread with the lock of the sweep. Tested by recycle_test.cc, tests/schedule_test.cc and
// tests/kill_recycle_test.cc.
#pragma once

#include <cstdint>

#include "table/registry.h"

namespace weir::table {

enum class Recycling : std::uint8_t { idle, looking, closing, checking, resting, renewing };

class Recycler {
 public:
  Recycler(const Region& region, Registry& registry) : region_(region), registry_(registry) {}

  // Whether the sweep must note the numbers in slots.
  bool is_scanning() const { return step() == Recycling::looking || step() == Recycling::checking; }
  void note(const NumberSet& used);
  // A page could not be read consistently: every number counts as used in this round.
  void note_all();

  // end_round()
  //
  // Call after the last page. `who` is the record of the caller, who must not keep using any number it has met.
  void end_round(std::uint64_t who, int fd);

 private:
  Recycling step() const { return static_cast<Recycling>(load(region_.header().recycling) & 7); }
  void go_on(Recycling step);
  void raise_epoch();
  bool have_all_passed(std::uint64_t who) const;
  bool close_unused();
  void check_closing();
  void renew_resting();
  void free_resting();

  const Region& region_;
  Registry& registry_;
};

}  // namespace weir::table
