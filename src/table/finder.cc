// See finder.h. Nothing is written here.

#include "table/finder.h"

#include <algorithm>
#include <bit>

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
                   const Newcomer& who) {
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
    if (look_for(page, name, now, changes, own, who, place)) return place;
    if (actor_.read(page.version) == version) return place;
  }
  return {.page = &page};
}

// True if the key was met; else the place to take, if there is one. A page without an empty slot is remembered as full:
// newcomers then take the place of others, near their home, and nobody reads all of it to find that it is full. What is
// remembered goes stale, so some look at all of it: each 32nd insertion; whoever would be refused, or the first to use
// the counter that they share; of the others who would share it only each 32nd.
bool Finder::look_for(Page& page, const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own,
                      const Newcomer& who, Place& place) {
  const std::uint64_t state = place.version.state, chance = static_cast<std::uint64_t>(now) + (name.name >> kNameShift);
  const bool is_shared = who.counter && load(page.overflow[*who.counter].tag) != 0;
  const bool is_turn = (place.version.tag >> 2) % 32 == 0, insists = !is_shared || chance % 32 == 0;
  bool is_thorough = (is_turn && insists) || (state & kFull) == 0;
  for (;;) {
    if (walk(page, name, is_thorough, changes, place)) return true;
    place.lines = state & ~kFull;
    if (place.unit != nullptr) return false;
    choose(page, name, now, changes, own, who, is_thorough ? kSlots : is_shared ? kLooksShared : kLooksMax, place);
    place.lines = state | kFull;
    place.is_turn = is_turn;
    if (place.unit != nullptr || is_thorough || !insists) return false;
    is_thorough = true;
  }
}

// From the home line on, as far as keys of this line may have gone, and if it is thorough on to the first empty slot.
// True if the key was met; else the place is the first empty slot, if one was seen.
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

// No empty slot was seen: one that has lapsed, or whose key has spent least. Of several that have spent about the same
// it is the nearest, and in the home line one that strayed there, so that in time few lines are walked past; where it
// begins in a line, the name decides. If nobody is found, it gives up after `looks_max`.
void Finder::choose(Page& page, const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own,
                    const Newcomer& who, std::uint32_t looks_max, Place& place) {
  Candidate best{.home = home_line(name.name),
                 .step_bits = static_cast<int>(std::bit_width(std::clamp(who.enough, kStepMin, kStepMax))) - 1,
                 .enough = who.enough,
                 .looks_max = looks_max,
                 .blocks = who.counter ? 1 : kBlocksMax};
  std::uint64_t passed = 0;
  std::uint32_t line = best.home;
  for (std::uint32_t i = 0; i < kLines && !best.is_found(); ++i) {
    for (std::uint32_t j = 0; j < kSlotsInLine && !best.is_found(); ++j) {
      Unit& unit = page.slots[line][((name.name >> kNameShift) + j) % kSlotsInLine];
      consider(unit, passed, now, changes, own, best);
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
  const bool is_stray = home_line(name_of(word.tag)) != best.home && passed == 0;
  if (word.tag != 0) {
    ++best.looks;
    if (!reader_.pulse_in_slot(word, now, pulse)) {
      if (--best.blocks < 0) return;
      pulse = reader_.pulse_in_block(word, now);
    }
    if (!pulse.lapsed && (pulse.protected_ || !best.yields_to(pulse.fraction, is_stray))) return;
    for (const Name& name : own) {
      if (name.name == name_of(word.tag)) return;
    }
  }
  if (changes.find(region_.number_of(unit)) != nullptr) return;
  best.unit = &unit;
  best.seen = word;
  best.passed = passed;
  best.fraction = pulse.fraction;
  best.is_stray = is_stray;
  best.alive = !pulse.lapsed;
}

}  // namespace weir::table
