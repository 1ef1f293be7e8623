// Copies slots first, then their blocks, the largest first, so that the arena is not fragmented for them. See
// resize.h.

#include "table/resize.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include "table/contents.h"
#include "table/floor.h"

namespace weir::table {
namespace {

// A slot of the new table whose block is still to be copied.
struct Move {
  Unit* slot;
  Block from;
};

class Builder {
 public:
  Builder(Contents& old, const Region& fresh) : old_(old), fresh_(fresh), now_(old.now()) {}

  // False if a page is too full.
  bool copy_slots() {
    for (std::uint64_t page = 0; page < old_.region().pages(); ++page) {
      for (Unit& unit : slots_of(old_.region().page(page))) {
        if (!copy_slot(page, old_.read(unit))) return false;
      }
      for (Unit& unit : old_.region().page(page).floors) {
        const Word word = old_.read(unit);
        if (word.tag != 0 && !copy_floor(page, word)) return false;
      }
    }
    return true;
  }

  bool copy_blocks() {
    std::ranges::stable_sort(moves_, std::greater{}, [](const Move& move) { return move.from.block_class; });
    Actor actor(fresh_, 0);
    for (const Move& move : moves_) {
      if (!take_block(actor, 0, move.from.block_class)) return false;
      const auto to = pending_block(actor, 0);
      const std::uint64_t lines = std::uint64_t{1} << move.from.block_class;
      for (std::uint64_t i = 0; i < lines; ++i) copy_line(move.from.line + i, to->line + i);
      move.slot->state = block_state(to->line, change_of(move.slot->state));
      fresh_.participant(0).pending[0] = {};
    }
    return true;
  }

  std::uint64_t kept() const { return kept_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  // The page in the table as it was created; none if the slot cannot belong where it is.
  std::optional<std::uint64_t> base_of(std::uint64_t page, std::uint64_t name) const {
    const Region& table = old_.region();
    const std::uint64_t guess = page * table.base_pages() / table.pages();
    for (std::uint64_t base = guess < 2 ? 0 : guess - 2; base < guess + 3 && base < table.base_pages(); ++base) {
      if (table.page_of_base(base, name) == page) return base;
    }
    return {};
  }

  std::optional<std::uint64_t> page_for(std::uint64_t page, std::uint64_t name) const {
    if (fresh_.pages() == old_.region().pages()) return page;
    const auto base = base_of(page, name);
    if (!base) return {};
    return fresh_.page_of_base(*base, name);
  }

  bool copy_slot(std::uint64_t from, const Word& word) {
    const SlotUse use = old_.reader().use_of(word);
    if (use == SlotUse::none) return true;
    if (use == SlotUse::floor) return copy_floor(from, word);
    const std::uint64_t name = name_of(word.tag);
    const auto page = page_for(from, name);
    const bool is_readable = is_in_block(word) ? old_.reader().read_reservation(word).has_value()
                                               : use == SlotUse::ticket || old_.reader().read(word).has_value();
    if (!page || !is_readable || old_.reader().has_lapsed(word, now_)) {
      ++dropped_;
      return true;
    }
    Unit* slot = free_slot(fresh_.page(*page), name);  // plain writes suffice, because there are no other users
    if (slot == nullptr) return false;
    *slot = {word.tag, word.state};
    if (const auto block = old_.reader().block_of(word)) moves_.push_back({slot, *block});
    ++kept_;
    return true;
  }

  // An evicted key may now be looked up in any page that took over a part of this one.
  bool copy_floor(std::uint64_t from, const Word& word) {
    const Known* const known = old_.reader().known(limit_of(word.tag));
    if (known == nullptr || !is_floor(word, *known) || old_.reader().has_lapsed(word, now_)) return true;
    const std::uint64_t pages = fresh_.pages(), old_pages = old_.region().pages();
    const std::uint64_t first = from * pages / old_pages;
    const std::uint64_t end = std::min(pages, ((from + 1) * pages + old_pages - 1) / old_pages);
    for (std::uint64_t to = first; to < end; ++to) {
      if (!add_floor(fresh_.page(to), *known, word)) return false;
    }
    return true;
  }

  bool add_floor(Page& page, const Known& known, const Word& word) const {
    Unit* place_for = nullptr;
    const auto look = [&](Unit& unit) {
      if (unit.tag == word.tag || (unit.tag == 0 && place_for == nullptr)) place_for = &unit;
      return unit.tag == word.tag;
    };
    if (!std::ranges::any_of(page.floors, look)) {
      for (Unit& unit : slots_of(page)) {
        if (unit.tag == word.tag) place_for = &unit;
      }
    }
    if (place_for == nullptr) {
      place_for = free_slot(page, name_of(word.tag));
      if (place_for == nullptr) return false;
      page.version.tag |= kFloorInSlot;
    }
    *place_for = {word.tag, join(known, place_for->state, word.state, now_)};
    return true;
  }

  void copy_line(std::uint64_t from, std::uint64_t to) {
    for (std::size_t i = 0; i < std::size(Line{}.units); ++i) {
      const Word word = old_.read(old_.region().line(from).units[i]);
      fresh_.line(to).units[i] = {word.tag, word.state};
    }
  }

  Contents& old_;
  const Region& fresh_;
  const std::int64_t now_;
  std::vector<Move> moves_;
  std::uint64_t kept_ = 0, dropped_ = 0;
};

Result<Geometry> geometry_after(const ResizeOptions& options, const Geometry& before) {
  const std::uint64_t keys = options.keys != 0 ? options.keys : keys_of(before.pages);
  auto after = options.memory != 0 ? fit_into(options.memory, keys, options.arena_bytes)
                                   : geometry_for(keys, options.arena_bytes);
  if (!after) return after;
  after->base_pages = before.base_pages;
  if (options.arena_bytes == 0 && options.memory == 0) {
    const double growth = static_cast<double>(after->pages) / static_cast<double>(before.pages);
    const double lines =
        std::min(static_cast<double>(before.arena_lines) * growth, static_cast<double>(kArenaLinesMax));
    const auto least = geometry_for(1, 1)->arena_lines;
    after->arena_lines = options.keys == 0 ? before.arena_lines : std::max(least, static_cast<std::uint64_t>(lines));
  }
  if (after->pages / after->base_pages > kGrowthMax) {
    return fail(ErrorCode::out_of_range, options.path + ": can grow to at most " + std::to_string(kGrowthMax) +
                                             " times the keys that it was created for; start with a new file");
  }
  if (before.pages < before.base_pages && after->pages != before.pages) {
    return fail(ErrorCode::unavailable, options.path +
                                            ": was shrunk before, so its number of keys cannot change again; "
                                            "change only --memory, or start with a new file");
  }
  return after;
}

// Copies what the new header and records must keep from the old ones.
void copy_header(Contents& old, const Region& fresh) {
  const Header& from = old.region().header();
  Header& to = fresh.header();
  std::copy(std::begin(from.boot_id), std::end(from.boot_id), to.boot_id);
  to.clock_offset_us = from.clock_offset_us;
  to.latest_us = from.latest_us;
  to.wall_ahead_us = from.wall_ahead_us;
  to.time_namespace = from.time_namespace;
  to.calendar_shift = from.calendar_shift;
  std::memcpy(to.calendar_shifts, from.calendar_shifts, sizeof to.calendar_shifts);
  to.swept = from.swept;
  Word tally{};
  for (std::uint64_t who = 0; who < kParticipants; ++who) {
    const Word one = old.read(old.region().participant(who).tally);
    tally = {tally.tag + (one.tag & ~kMarkBits), tally.state + one.state};
  }
  fresh.participant(0).tally = {tally.tag, tally.state};
  for (std::uint32_t i = 1; i <= kLimitsMax; ++i) {
    const RegistryEntry& entry = old.region().limit(i);
    const Word guard = load(entry.guard);
    if (state_of(guard) != kReady && state_of(guard) != kClosing) continue;
    fresh.limit(i) = entry;
    fresh.limit(i).guard.tag = guard_tag(kReady, generation_of(guard));
  }
}

}  // namespace

Result<Resized> resize(const ResizeOptions& options, const ClockReading& reading) {
  const std::string path = real_path(options.path);
  auto mapping = open_copy(path, CopyTo::replace);
  if (!mapping) return fail(mapping.error());
  Contents old(std::move(*mapping), options.find_calendar, reading);
  const Header& header = old.region().header();
  const algorithm::ShiftedCalendar shifted(calendar_shift(header));
  const Geometry before{header.pages, header.base_pages, header.arena_lines};
  const auto after = geometry_after(options, before);
  if (!after) return fail(after.error());
  const Identity identity{{header.hash_key[0], header.hash_key[1]}, header.created_us};
  auto draft = Draft::make(path, *after, identity, reading);
  if (!draft) return fail(draft.error());
  copy_header(old, draft->region());
  Builder builder(old, draft->region());
  if (!builder.copy_slots()) {
    return fail(ErrorCode::exhausted, path + ": its live keys do not fit into a capacity of " +
                                          std::to_string(keys_of(after->pages)) + " keys; use more --keys");
  }
  const bool has_room = builder.copy_blocks();
  if (!has_room) {
    return fail(ErrorCode::exhausted, path + ": its logs do not fit into " +
                                          std::to_string(after->arena_lines * sizeof(Line)) +
                                          " bytes; use more --memory");
  }
  count_all_keys(draft->region());
  if (auto replaced = draft->replace(); !replaced) return fail(replaced.error());
  return Resized{before, *after, builder.kept(), builder.dropped()};
}

}  // namespace weir::table
