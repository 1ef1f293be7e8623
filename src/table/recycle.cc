// See recycle.h. A kill may interrupt any step, which is then repeated.

#include "table/recycle.h"

#include <unistd.h>

namespace weir::table {
namespace {

template <class Visit>
void for_each(const Region& region, GuardState wanted, Visit visit) {
  for (std::uint32_t number = 1; number <= limits_max(); ++number) {
    Unit& unit = region.limit(number).guard;
    const Word guard = load(unit);
    if (state_of(guard) == wanted) visit(number, unit, guard);
  }
}

}  // namespace

void Recycler::note(const NumberSet& used) {
  NumberSet& all = region_.header().limits_used;
  for (std::size_t i = 0; i < std::size(all.bits); ++i) store(all.bits[i], load(all.bits[i]) | used.bits[i]);
}

void Recycler::note_all() {
  for (std::uint64_t& bits : region_.header().limits_used.bits) store(bits, ~std::uint64_t{0});
}

void Recycler::go_on(Recycling step) {
  if (step == Recycling::looking || step == Recycling::checking) {
    for (std::uint64_t& bits : region_.header().limits_used.bits) store(bits, 0);
  }
  store(region_.header().recycling, load(region_.header().limits_epoch) << 3 | static_cast<std::uint64_t>(step));
}

// An exchange is a barrier: a thread that is not yet at work when the sweep checks sees what was changed before.
void Recycler::raise_epoch() {
  const std::uint64_t epoch = load(region_.header().limits_epoch);
  exchange(region_.header().limits_epoch, epoch, epoch + 1);
}

bool Recycler::have_all_passed(std::uint64_t who) const {
  const std::uint64_t epoch = load(region_.header().recycling) >> 3;
  for (std::uint64_t i = 0; i < kParticipants; ++i) {
    const std::uint64_t active = load(region_.participant(i).active);
    if (i != who && is_at_work(active) && epoch_of(active) < epoch) return false;
  }
  return true;
}

void Recycler::end_round(std::uint64_t who, int fd) {
  switch (step()) {
    case Recycling::idle:
      if (registry_.is_crowded()) go_on(Recycling::looking);
      return;
    case Recycling::looking:
      if (!close_unused()) return go_on(Recycling::idle);
      raise_epoch();
      go_on(Recycling::closing);
      [[fallthrough]];
    case Recycling::closing:
      if (have_all_passed(who)) go_on(Recycling::checking);
      return;
    case Recycling::checking:
      check_closing();
      raise_epoch();
      go_on(Recycling::resting);
      [[fallthrough]];
    case Recycling::resting:
      if (!have_all_passed(who)) return;
      // After a crash of the machine each page of the file is as old as the system last wrote it: none must show a slot
      // that is older than what its number means then.
      if (fd >= 0) fdatasync(fd);
      renew_resting();
      raise_epoch();
      go_on(Recycling::renewing);
      [[fallthrough]];
    case Recycling::renewing:
      if (!have_all_passed(who)) return;
      free_resting();
      return go_on(Recycling::idle);
  }
  go_on(Recycling::idle);  // a damaged file
}

bool Recycler::close_unused() {
  bool any = false;
  const NumberSet& used = region_.header().limits_used;
  for_each(region_, kClosing, [&](std::uint32_t, Unit&, const Word&) { any = true; });  // left by a kill at this point
  for_each(region_, kReady, [&](std::uint32_t number, Unit& unit, const Word& guard) {
    if (used.has(number)) return;
    replace(unit, guard, {guard_tag(kClosing, generation_of(guard)), guard.state});
    any = true;
  });
  return any;
}

void Recycler::check_closing() {
  const NumberSet& used = region_.header().limits_used;
  for_each(region_, kClosing, [&](std::uint32_t number, Unit& unit, const Word& guard) {
    replace(unit, guard, {guard_tag(used.has(number) ? kReady : kResting, generation_of(guard)), guard.state});
  });
}

// The generation first, then the epoch: a process that catches up with this epoch drops what it remembers of these
// numbers.
void Recycler::renew_resting() {
  for_each(region_, kResting, [&](std::uint32_t, Unit& unit, const Word& guard) {
    replace(unit, guard, {guard_tag(kResting, generation_of(guard) + 1), 0});
  });
}

void Recycler::free_resting() {
  for_each(region_, kResting, [&](std::uint32_t, Unit& unit, const Word& guard) {
    replace(unit, guard, {guard_tag(kFree, generation_of(guard)), 0});
  });
}

}  // namespace weir::table
