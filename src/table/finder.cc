// See finder.h. Nothing is written here.

#include "table/finder.h"

namespace weir::table {

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
    Candidate best{.enough = enough};
    if (walk(page, name, version, now, changes, own, place, best)) return place;
    if (!(actor_.read(page.version) == version)) continue;
    place.unit = best.unit;
    place.seen = best.seen;
    place.passed = best.passed;
    place.alive = best.alive;
    return place;
  }
  return {.page = &page};
}

// From the home line on, as far as keys of this line may have gone, and further while there is no room. True if the key
// was met.
bool Finder::walk(Page& page, const Name& name, const Word& version, std::int64_t now, Changes& changes,
                  std::span<const Name> own, Place& place, Candidate& best) {
  bool chain = true;
  std::uint64_t passed = 0;
  std::uint32_t line = home_line(name.name);
  for (std::uint32_t i = 0; i < kLines && (chain || !best.is_found()); ++i) {
    for (Unit& unit : page.slots[line]) {
      const Word word = actor_.read(unit);
      if (chain && word.tag != 0 && name_of(word.tag) == name.name) {
        place.unit = &unit;
        place.seen = word;
        place.present = true;
        return true;
      }
      if (!best.is_found()) consider(unit, word, passed, now, changes, own, best);
    }
    passed |= std::uint64_t{1} << line;
    chain = chain && (version.state >> line & 1) != 0;
    line = next_line(line);
  }
  return false;
}

void Finder::consider(Unit& unit, const Word& word, std::uint64_t passed, std::int64_t now, Changes& changes,
                      std::span<const Name> own, Candidate& best) {
  SlotReader::Pulse pulse{.lapsed = true};
  if (word.tag != 0) {
    const bool is_in_slot = reader_.is_in_slot(word);
    if (best.looks <= 0 && (best.unit != nullptr || !is_in_slot)) return;
    best.looks -= is_in_slot ? 1 : kLooksAtBlock;
    if (best.unit != nullptr && best.fraction <= best.enough && best.looks <= kLooksMax - kLooksMin) best.looks = 0;
    pulse = reader_.pulse(word, now);
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
