// Gives numbers of limits out again that no slot uses any more.
//
// A table has 4,092 numbers and runs for years. The sweep looks for unused ones whenever more than half are taken:
//
//   1. looking    A round of the sweep notes every number in a slot. Those that it did not meet become *closing*: they
//                 can be read, but no further key gets them. The epoch rises.
//   2. closing    Waits for all transactions that began before: they may still insert a key under such a number.
//   3. checking   Another round. Now a number that a page does not have cannot come into it: keys move neither between
//                 pages nor numbers. A page that was inserted into while it was read is read again. What was met is
//                 ready again, the rest is *resting*. The epoch rises.
//   4. resting    Waits for all transactions that began before: they may have read a slot with such a number. Then each
//                 number gets a new generation, and the epoch rises.
//   5. renewing   Waits for all transactions that began before: their processes may remember what the numbers meant,
//   and
//                 they would read a slot of the new limit as one of the old. Then the numbers are free.
//
// "Waits" means that the sweep asks again a round later; no request ever waits. A participant that was stopped in the
// middle of a transaction holds this up, one that was killed does until the sweep recovers its record; meanwhile limits
// for which no number is left stand in blocks. The fast way has no record and needs none: it compares the epoch before
// and after (registry.h). The steps are in the header, so that another process goes on where one was killed. For
// the thread that has the lock of the sweep. Tested by recycle_test.cc, tests/schedule_test.cc and
// tests/kill_recycle_test.cc.
#pragma once

#include <cstdint>

#include "table/registry.h"

namespace weir::table {

enum class Recycling : std::uint8_t { idle, looking, closing, checking, resting, renewing };

class Recycler {
 public:
  Recycler(const Region& region, Registry& registry) : region_(region), registry_(registry) {}

  // Whether the numbers that slots hold are to be noted.
  bool is_scanning() const { return step() == Recycling::looking || step() == Recycling::checking; }
  void note(const NumberSet& used);
  // A page could not be read in one piece: what is checked stays in use.
  void note_all();

  // end_round()
  //
  // After the last page. `who` is the record of the caller, who must have met no number that it goes on using.
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
