// See sweep.h. Table::sweep() is here, too: some pages per call.

#include "table/sweep.h"

#include <algorithm>

#include "table/recycle.h"
#include "table/table.h"

namespace weir::table {
namespace {

constexpr std::uint64_t kReclaimRest = 5'000;  // some twenty times as long as reclaiming takes
constexpr int kPageTriesMax = 16;

// Only one thread of one process sweeps at a time. It may be a different one for every call.
class Ownership {
 public:
  Ownership(Seats& seats, int fd) : seats_(seats), fd_(fd), sweeps_(seats.try_sweep()) {
    held_ = sweeps_ && try_lock_owner(fd);
  }
  ~Ownership() {
    if (held_) unlock_owner(fd_);
    if (sweeps_) seats_.end_sweep();
  }
  Ownership(const Ownership&) = delete;
  Ownership& operator=(const Ownership&) = delete;
  explicit operator bool() const { return held_; }

 private:
  Seats& seats_;
  const int fd_;
  const bool sweeps_;
  bool held_ = false;
};

// Collects the numbers in a page. A key may have moved within the page, unless the page's version is the same
// afterwards.
bool note_page(Actor& actor, Page& page, NumberSet& used) {
  for (int tries = 0; tries < kPageTriesMax; ++tries) {
    const Word version = actor.read(page.version);
    for (Unit& unit : slots_of(page)) note_numbers(actor.read(unit), used);
    for (Unit& unit : page.floors) note_numbers(actor.read(unit), used);
    if (actor.take_note_of_damage()) return false;
    if (actor.read(page.version) == version) return true;
  }
  return false;
}

}  // namespace

bool remove_slot(Actor& actor, SlotReader& reader, Unit& unit, const Word& word, const Word& next) {
  const auto block = reader.block_of(word);
  if (!block) return replace(unit, word, next);
  const Region& region = actor.region();
  Unit& pending = actor.record().pending[kSweepPending];
  Entry entries[] = {{region.number_of(unit), word, next}, {region.number_of(pending), {}, pending_word(*block)}};
  if (entries[1].unit < entries[0].unit) std::swap(entries[0], entries[1]);
  const bool removed = actor.change(entries, Way::solo, nullptr);
  give_block(actor, kSweepPending);
  return removed;
}

bool sweep_page(Actor& actor, SlotReader& reader, Page& page, std::int64_t now, NumberSet* used) {
  const Word version = actor.read(page.version);
  std::uint64_t passed = 0, removed = 0, held = 0, tickets = 0;
  bool is_damaged = actor.take_note_of_damage(), is_full = true, has_floor = false;
  for (std::uint32_t line = 0; line < kLines; ++line) {
    for (Unit& unit : page.slots[line]) {
      const Word word = actor.read(unit);
      const bool has_lapsed = word.tag != 0 && reader.has_lapsed(word, now);
      if (actor.take_note_of_damage()) {
        is_damaged = true;
        continue;
      }
      if (word.tag == 0) {
        is_full = false;
        continue;
      }
      if (has_lapsed && remove_slot(actor, reader, unit, word)) {
        is_full = false;
        ++removed;
        if (is_key(word.tag)) count_keys(actor, -1);
        continue;
      }
      passed |= lines_between(home_line(name_of(word.tag)), line);
      const SlotUse use = reader.use_of(word);
      tickets += use == SlotUse::ticket;
      held += use == SlotUse::kept;
      has_floor = has_floor || use == SlotUse::floor;
    }
  }
  for (Unit& unit : page.floors) {
    const Word word = actor.read(unit);
    if (word.tag != 0 && reader.has_lapsed(word, now)) replace(unit, word, {});
    is_damaged = actor.take_note_of_damage() || is_damaged;
  }
  if (removed > 0) __atomic_fetch_add(&actor.region().header().swept, removed, __ATOMIC_RELAXED);
  if (is_full) passed |= kFull;
  std::uint64_t tag = with_counts(version.tag, held, tickets) & ~kFloorInSlot;
  if (has_floor) tag |= kFloorInSlot;
  // Fails if a key was inserted meanwhile: then the next round does it.
  if (!is_damaged && (passed != version.state || tag != version.tag)) {
    replace(page.version, version, {next_version(tag), passed});
  }
  return used == nullptr || note_page(actor, page, *used);
}

bool reclaim_blocks(Actor& actor, SlotReader& reader, std::int64_t now) {
  constexpr std::uint64_t kPagesAtOnce = 16;  // some tenths of a millisecond
  const Region& region = actor.region();
  const std::uint64_t left = load(region.header().reclaim_at_us) - static_cast<std::uint64_t>(now);
  if (left - 1 < kReclaimRest) return false;  // a time further ahead was never recorded
  for (std::uint64_t i = 0; i < std::min(kPagesAtOnce, region.pages()); ++i) {
    const std::uint64_t page = __atomic_fetch_add(&region.header().reclaim_page, 1, __ATOMIC_RELAXED) % region.pages();
    sweep_page(actor, reader, region.page(page), now);
  }
  return true;
}

void rest_from_reclaiming(const Region& region, std::int64_t now) {
  store(region.header().reclaim_at_us, static_cast<std::uint64_t>(now) + kReclaimRest);
}

bool Table::sweep(std::int64_t now, std::uint64_t pages_max) {
  auto seat = seats_.sit_down();  // first, because in a child it opens the file again
  if (!seat) return true;
  const Ownership ownership(seats_, mapping_.fd());
  if (!ownership) return true;
  Actor& actor = seat->actor();
  SlotReader reader(actor, registry_);
  Header& header = region_.header();
  const algorithm::ShiftedCalendar shifted(calendar_shift(header));
  Recycler recycler(region_, registry_);
  NumberSet used;
  const bool is_scanning = recycler.is_scanning();
  bool is_whole = true;
  std::uint64_t at = load(header.sweep_page) % region_.pages();
  for (std::uint64_t i = 0; i < pages_max; ++i) {
    is_whole = sweep_page(actor, reader, region_.page(at), now, is_scanning ? &used : nullptr) && is_whole;
    if (++at < region_.pages()) continue;
    at = 0;
    break;
  }
  if (is_scanning && is_whole) recycler.note(used);
  if (is_scanning && !is_whole) recycler.note_all();
  store(header.sweep_page, at);
  if (actor.has_met_damage()) mapping_.note_damage();
  if (at != 0) return false;
  seats_.recover_dead();
  recycler.end_round(seat->who(), mapping_.fd());
  if (has_own_clock_) note_wall_clock(header, read_clocks());
  return true;
}

}  // namespace weir::table
