// See finder.h. Nothing is written here.

#include "table/finder.h"

namespace weir::table {
namespace {

// Whether a line has a slot of this name, an empty one, or one that an operation holds, which may become either. All
// others are passed without a closer look: in a full page those are nearly all.
bool is_of_interest(const Unit (&line)[kSlotsInLine], std::uint64_t name) {
  unsigned found = 0;
#pragma GCC unroll 4
  for (const Unit& unit : line) {
    const std::uint64_t tag = load(unit.tag);
    found |= unsigned{name_of(tag) == name} | unsigned{tag == 0} | unsigned{(tag & kMarkBits) != kPlain};
  }
  return found != 0;
}

}  // namespace

Place Finder::find(const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own,
                   std::uint32_t enough) {
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
    if (walk(page, name, version, changes, place)) return place;
    if (place.unit == nullptr) choose(page, name, now, changes, own, enough, place);
    if (actor_.read(page.version) == version) return place;
  }
  return {.page = &page};
}

// From the home line on, as far as keys of this line may have gone, and further while there is no room. True if the key
// was met; else the place is the first empty slot, if there is any.
bool Finder::walk(Page& page, const Name& name, const Word& version, Changes& changes, Place& place) {
  bool chain = true;
  std::uint64_t passed = 0;
  std::uint32_t line = home_line(name.name);
  for (std::uint32_t i = 0; i < kLines && (chain || place.unit == nullptr); ++i) {
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
    chain = chain && (version.state >> line & 1) != 0;
    line = next_line(line);
  }
  return false;
}

// No slot is empty: one that has lapsed, or whose key has spent least.
void Finder::choose(Page& page, const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own,
                    std::uint32_t enough, Place& place) {
  Candidate best{.enough = enough};
  std::uint64_t passed = 0;
  std::uint32_t line = home_line(name.name);
  for (std::uint32_t i = 0; i < kLines && !best.is_found(); ++i) {
    for (Unit& unit : page.slots[line]) {
      if (!best.is_found()) consider(unit, passed, now, changes, own, best);
    }
    passed |= std::uint64_t{1} << line;
    line = next_line(line);
  }
  place.unit = best.unit;
  place.seen = best.seen;
  place.passed = best.passed;
  place.alive = best.alive;
}

void Finder::consider(Unit& unit, std::uint64_t passed, std::int64_t now, Changes& changes, std::span<const Name> own,
                      Candidate& best) {
  const Word word = actor_.read(unit);
  SlotReader::Pulse pulse{.lapsed = true};
  if (word.tag != 0) {
    const bool is_told = reader_.pulse_in_slot(word, now, pulse);
    if (!is_told && best.looks <= 0) return;
    best.looks -= is_told ? 1 : kLooksAtBlock;
    if (!is_told) pulse = reader_.pulse_in_block(word, now);
    if (!pulse.lapsed && (pulse.protected_ || (best.unit != nullptr && pulse.fraction >= best.fraction))) return;
    for (const Name& name : own) {
      if (name.name == name_of(word.tag)) return;
    }
  }
  if (changes.find(region_.number_of(unit)) != nullptr) return;
  best.unit = &unit;
  best.seen = word;
  best.passed = passed;
  best.fraction = pulse.fraction;
  best.alive = !pulse.lapsed;
}

}  // namespace weir::table
