// See finder.h. This file writes nothing to the table.

#include "table/finder.h"

namespace weir::table {
namespace {

// Whether a line has a slot of this name, an empty one, or one that an operation holds, which may become either.
// Other lines are skipped: in a full page those are nearly all.
bool is_of_interest(const Unit (&line)[kSlotsInLine], std::uint64_t name) {
  std::uint64_t found = 0;
#pragma GCC unroll 4
  for (const Unit& unit : line) {
    const std::uint64_t tag = load(unit.tag);
    found |= std::uint64_t{is_named(tag, name)} | std::uint64_t{tag == 0} | (tag & kMarkBits);
  }
  return found != 0;
}

}  // namespace

Place Finder::find(const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own,
                   std::uint64_t family) {
  Page& page = page_of(name);
  if (Unit* unit = match(page.slots[home_line(name.name)], name.name)) {
    const Word word = actor_.read(*unit);
    if (name_of(word.tag) == name.name && word.tag != 0) {
      return {.page = &page, .unit = unit, .seen = word, .present = true};
    }
  }
  while (!actor_.is_damaged()) {
    const Word version = actor_.read(page.version);
    Place place{.page = &page, .version = version};
    if (look_for(page, name, now, changes, own, family, place)) return place;
    if (actor_.read(page.version) == version) return place;
  }
  return {.page = &page};
}

std::span<Floor> Finder::floors_of(Page& page, const Word& version, std::uint64_t family) {
  floors_.clear();
  if (family == 0) return {};
  const auto add = [&](Unit& unit) {
    if (name_of(load(unit.tag)) != family) return;
    const Word word = actor_.read(unit);
    const Known* const known = reader_.known(limit_of(word.tag));
    if (known != nullptr && name_of(word.tag) == family && is_floor(word, *known)) floors_.add() = {&unit, word, known};
  };
  for (Unit& unit : page.floors) add(unit);
  if ((version.tag & kFloorInSlot) == 0) return floors_.all();
  std::uint32_t line = home_line(family);
  for (std::uint32_t i = 0; i < kLines; ++i) {
    if (match(page.slots[line], family) != nullptr) {
      for (Unit& unit : page.slots[line]) add(unit);
    }
    if ((version.state >> line & 1) == 0) break;
    line = next_line(line);
  }
  return floors_.all();
}

// True if the key was found; otherwise the place to take, if any. A page without an empty slot is marked as full. New
// keys then take slots of other keys near their home, and no request reads the whole page to find that it is full.
// The mark becomes outdated. So each 32nd insertion reads the whole page, and so does one that would find no slot.
bool Finder::look_for(Page& page, const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own,
                      std::uint64_t family, Place& place) {
  const std::uint64_t state = place.version.state;
  const bool is_turn = (place.version.tag >> 2) % 32 == 0, is_thorough = is_turn || insists_ || (state & kFull) == 0;
  if (walk(page, name, is_thorough, changes, place)) return true;
  floors_of(page, place.version, family);
  place.lines = state & ~kFull;
  if (place.unit != nullptr) return false;
  if (!take_offer(page, name, changes, place)) choose(page, name, now, changes, own, place);
  place.lines = state | kFull;
  place.is_turn = is_turn;
  return false;
}

bool Finder::take_offer(Page& page, const Name& name, Changes& changes, Place& place) {
  for (const Offer& offer : offers_.all()) {
    if (offer.page != &page || changes.find(region_.number_of(*offer.unit)) != nullptr) continue;
    if (!(actor_.read(*offer.unit) == offer.seen)) continue;
    place.unit = offer.unit;
    place.seen = offer.seen;
    place.passed = lines_between(home_line(name.name), line_in(page, *offer.unit));
    place.alive = offer.alive;
    return true;
  }
  return false;
}

// Walks from the home line as far as keys of this line may have gone, and if thorough, to the first empty slot. True
// if the key was found; otherwise the place is the first empty slot, if one was seen.
bool Finder::walk(Page& page, const Name& name, bool is_thorough, Changes& changes, Place& place) {
  bool chain = true;
  std::uint64_t passed = 0;
  std::uint32_t line = home_line(name.name);
  for (std::uint32_t i = 0; i < kLines && (chain || (is_thorough && place.unit == nullptr)); ++i) {
    if (is_of_interest(page.slots[line], name.name)) {
      for (Unit& unit : page.slots[line]) {
        const Word word = actor_.read(unit);
        if (chain && word.tag != 0 && name_of(word.tag) == name.name) {
          place.unit = &unit;
          place.seen = word;
          place.present = true;
          return true;
        }
        if (word.tag != 0 || place.unit != nullptr || changes.find(region_.number_of(unit)) != nullptr) continue;
        place.unit = &unit;
        place.seen = word;
        place.passed = passed;
      }
    }
    passed |= std::uint64_t{1} << line;
    chain = chain && (place.version.state >> line & 1) != 0;
    line = next_line(line);
  }
  return false;
}

std::uint64_t Finder::lines_passed(Page& page) const {
  std::uint64_t passed = 0;
  for (std::uint32_t line = 0; line < kLines; ++line) {
    for (Unit& unit : page.slots[line]) {
      const Word word = actor_.read(unit);
      if (word.tag != 0) passed |= lines_between(home_line(name_of(word.tag)), line);
    }
  }
  return passed;
}

// For a page without an empty slot: chooses an expired slot, or one whose key a floor covers. Of several covered ones
// it takes the nearest. In the home line it prefers a key with another home. So in time fewer lines are walked past.
// The name decides where the search begins within a line.
void Finder::choose(Page& page, const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own,
                    Place& place) {
  const bool has_log = !floors().empty() && !floors().front().known->packing.fits_slot;
  Candidate best{.place = place,
                 .home = home_line(name.name),
                 .looks_max = insists_ ? kSlots : kLooksMax,
                 .blocks = insists_  ? static_cast<int>(kSlots)
                           : has_log ? kBlocksMax
                                     : 1};
  std::uint64_t passed = 0;
  std::uint32_t line = best.home;
  for (std::uint32_t i = 0; i < kLines && !best.is_found(); ++i) {
    for (std::uint32_t j = 0; j < kSlotsInLine && !best.is_found(); ++j) {
      Unit& unit = page.slots[line][((name.name >> kNameShift) + j) % kSlotsInLine];
      // Further away, only keys that a floor may cover are worth reading.
      if (best.looks >= kLooksMin && !insists_ && !is_of_floor(load(unit.tag))) continue;
      consider(unit, passed, now, changes, own, best);
    }
    passed |= std::uint64_t{1} << line;
    line = next_line(line);
  }
}

void Finder::consider(Unit& unit, std::uint64_t passed, std::int64_t now, Changes& changes, std::span<const Name> own,
                      Candidate& best) {
  const Word word = actor_.read(unit);
  bool is_alive = false;
  const bool is_stray = home_line(name_of(word.tag)) != best.home && passed == 0;
  if (word.tag != 0) {
    ++best.looks;
    const std::optional<bool> lapsed = reader_.has_lapsed_in_slot(word, now);
    if (!lapsed && --best.blocks < 0) return;
    is_alive = lapsed ? !*lapsed : !reader_.has_lapsed_in_block(word, now);
    if (is_alive && best.place.unit != nullptr && (best.is_stray || !is_stray))
      return;  // not a better choice than the one already found
    if (is_alive && !is_covered(word, now, best.blocks)) return;
    for (const Name& name : own) {
      if (name.name == name_of(word.tag)) return;
    }
  }
  if (changes.find(region_.number_of(unit)) != nullptr) return;
  best.place.unit = &unit;
  best.place.seen = word;
  best.place.passed = passed;
  best.place.alive = is_alive;
  best.is_stray = is_stray;
}

bool Finder::is_covered(const Word& word, std::int64_t now, int& blocks) {
  for (const Floor& floor : floors()) {
    if (limit_of(floor.word.tag) != limit_of(word.tag)) continue;
    if (is_floor(word, *floor.known)) return false;
    if (!floor.known->packing.fits_slot && --blocks < 0) return false;
    const auto state = floor_over(reader_, *floor.known, word, now);
    return state && covers(*floor.known, floor.word.state, *state, now);
  }
  return false;
}

}  // namespace weir::table
