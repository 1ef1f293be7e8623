// Finds the slot of a key, or the slot that a new key may take.
//
// A page is 63 lines of 4 slots. A key lies in its home line or, if that was full when it came, in a line behind it; a
// bit in the page's version says of each line whether keys had to walk past it. "Absent" is true at one moment: no
// marked slot was skipped, and the version was the same before and after the walk. Every insertion raises the version
// in its own operation, so of two who insert one key, one fails and looks again.
//
// Room is an empty slot; in a page that is remembered as full it is one that has lapsed or, of those that it looks
// into, one with the smallest part spent. To look into a slot costs far more than to see that it is empty, and a flood
// of new keys must not be dear: so it looks into some, into fewer if one is found that has spent no more than the
// newcomer is about to; what has lapsed elsewhere the sweep makes empty. Until somebody looks at all of a page again,
// or the sweep does, an empty slot in it may be overlooked. If all that it looks into are spent, there is no room. For
// the one thread of an actor. Tested by tests/full_table_test.cc, tests/churn_test.cc and tests/schedule_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "table/changes.h"
#include "table/slot.h"

namespace weir::table {

// A key under an algorithm: where to look, and what its tag says.
struct Name {
  std::uint64_t place;
  std::uint64_t name;
  friend bool operator==(const Name&, const Name&) = default;
};

struct Place {
  Page* page = nullptr;
  Unit* unit = nullptr;  // the key's slot, or the one to take; null if there is no room
  Word seen{};           // what the slot held
  bool present = false;
  bool alive = false;  // absent: the slot to take is in use and not lapsed
  // Absent: the version under which that is true, and the lines to walk past.
  Word version{};
  std::uint64_t passed = 0;
  std::uint64_t lines = 0;  // what the version's state becomes, before `passed`
  bool is_turn = false;     // whoever inserts finds `lines` anew: lines_passed()
};

// Who may need room.
struct Newcomer {
  std::uint32_t enough = 0;              // what it will spend, of 2^20: whoever has spent no more may go
  std::optional<std::uint32_t> counter;  // which of its page it shares if there is no room; without one it is refused
};

class Finder {
 public:
  Finder(Actor& actor, SlotReader& reader) : actor_(actor), region_(actor.region()), reader_(reader) {}

  Page& page_of(const Name& name) const { return region_.page(region_.page_of(name.place, name.name)); }

  // find()
  //
  // The slot to take is none that `changes` touches, and none that holds a key of `own`: a verdict must not make room
  // for one of its keys at the cost of another.
  Place find(const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own, const Newcomer& who = {});

  // A bit for each line that some key of the page lies behind, seen from its home. True while the version stays.
  std::uint64_t lines_passed(Page& page) const;

 private:
  // Whoever has spent no more than the newcomer will is taken after some looks, and whoever spent least after
  // kLooksMax. Where a counter is shared already, it is given up sooner. Blocks are far away, and their keys go only if
  // they have lapsed.
  static constexpr std::uint32_t kLooksMin = 8, kLooksMax = 64, kLooksShared = 16;
  static constexpr int kBlocksMax = 32;
  // What makes a difference, of 2^20: about as much as the newcomer will spend, within these.
  static constexpr std::uint32_t kStepMin = 1 << 10, kStepMax = 1 << 15;

  struct Candidate {
    std::uint32_t home = 0;  // the newcomer's line
    int step_bits = 0;
    std::uint32_t enough = 0;
    std::uint32_t looks_max = kLooksMax, looks = 0;
    int blocks = 0;
    Unit* unit = nullptr;
    Word seen{};
    std::uint64_t passed = 0;
    std::uint32_t fraction = 0;  // spent
    bool alive = true;
    bool is_stray = false;  // the slot is in that line, its key has another home

    bool yields_to(std::uint32_t other, bool stray) const {
      const std::uint32_t theirs = other >> step_bits, ours = fraction >> step_bits;
      return unit == nullptr || theirs < ours || (theirs == ours && stray && !is_stray);
    }
    // It need not be looked any further.
    bool is_found() const {
      if (unit == nullptr) return looks >= looks_max;
      return !alive || looks >= (fraction >> step_bits <= enough >> step_bits ? kLooksMin : kLooksMax);
    }
  };

  bool look_for(Page& page, const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own,
                const Newcomer& who, Place& place);
  bool walk(Page& page, const Name& name, bool is_thorough, Changes& changes, Place& place);
  void choose(Page& page, const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own,
              const Newcomer& who, std::uint32_t looks_max, Place& place);
  void consider(Unit& unit, std::uint64_t passed, std::int64_t now, Changes& changes, std::span<const Name> own,
                Candidate& best);

  Actor& actor_;
  const Region& region_;
  SlotReader& reader_;
};

// The slot in a line whose tag has this name, or null. A hint: whoever uses it reads the word again.
inline Unit* match(Unit (&line)[kSlotsInLine], std::uint64_t name) {
  unsigned found = 0;
#pragma GCC unroll 4
  for (unsigned i = 0; i < kSlotsInLine; ++i) found |= unsigned{name_of(load(line[i].tag)) == name} << i;
  return found == 0 || name == 0 ? nullptr : &line[std::countr_zero(found)];
}

}  // namespace weir::table
