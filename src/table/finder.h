// Finds the slot of a key, or the slot that a new key may take.
//
// A page has 63 lines of 4 slots. A key is in its home line or, if that was full when the key came, in a later line.
// For each line, a bit in the page's version says whether keys had to walk past it. "Absent" is true at one moment:
// no marked slot was skipped, and the version was the same before and after the walk. Every insertion raises the
// version in its own operation. So if two threads insert the same key, one of them fails and looks again.
//
// A free slot is an empty one. In a page that is marked as full, it may also be an expired one. Or it is the slot of
// a key of the same family that a floor covers (floor.h), so that nothing is lost with it. Reading a slot's contents
// costs far more than seeing that it is empty, and a flood of new keys must be cheap. So the finder reads only some
// slots; the sweep empties the other expired ones. If it finds none, there is no free slot until one is made
// (eviction.h). For the one thread of an actor. Tested by tests/eviction_test.cc, tests/full_table_test.cc,
// tests/churn_test.cc and tests/schedule_test.cc.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <span>

#include "base/few.h"
#include "table/changes.h"
#include "table/floor.h"

namespace weir::table {

// A key under an algorithm: where to look, and what its tag contains.
struct Name {
  std::uint64_t place;
  std::uint64_t name;
  friend bool operator==(const Name&, const Name&) = default;
};

struct Place {
  Page* page = nullptr;
  Unit* unit = nullptr;  // the key's slot, or the one to take; null if there is none
  Word seen{};           // what the slot contained
  bool present = false;
  bool alive = false;  // absent: the slot to take is in use and not expired
  // Absent: the version under which that is true, and the lines to walk past.
  Word version{};
  std::uint64_t passed = 0;
  std::uint64_t lines = 0;  // what the version's state becomes, before `passed`
  bool is_turn = false;     // the insertion computes `lines` again: lines_passed()
};

// A floor of the requested family.
struct Floor {
  Unit* unit = nullptr;
  Word word{};
  const Known* known = nullptr;
};
inline constexpr std::size_t kFloorsMax = kSlots + std::size(Page{}.floors);

// A slot that was freed for a new key of its page.
struct Offer {
  Page* page = nullptr;
  Unit* unit = nullptr;
  Word seen{};
  bool alive = true;
};

// The line of a slot in its page.
inline std::uint32_t line_in(const Page& page, const Unit& slot) {
  return static_cast<std::uint32_t>((&slot - page.slots[0]) / kSlotsInLine);
}

class Finder {
 public:
  Finder(Actor& actor, SlotReader& reader) : actor_(actor), region_(actor.region()), reader_(reader) {}

  Page& page_of(const Name& name) const { return region_.page(region_.page_of(name.place, name.name)); }

  // find()
  //
  // Never returns a slot to take that `changes` touches or that belongs to a key of `own`: a verdict must not evict
  // one of its keys for another. `family` is the floor_name() of a key, 0 for a ticket.
  Place find(const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own, std::uint64_t family);

  // The family's floors in the page where the last find() found no key. Valid while the version stays.
  std::span<Floor> floors() { return floors_.all(); }
  // All floors of a family in a page whose version was read.
  std::span<Floor> floors_of(Page& page, const Word& version, std::uint64_t family);

  // offer()
  //
  // A slot whose key is covered by a floor. It is taken before any other, unless it changes.
  void offer(const Offer& offer) {
    if (offers_.size() == kOffersMax) offers_.clear();  // most of them have been taken by other threads
    offers_.add() = offer;
  }
  bool is_offered(const Unit& unit) const {
    return std::ranges::any_of(offers_.all(), [&](const Offer& one) { return one.unit == &unit; });
  }
  // The pages are known to have a free slot somewhere: from now on they are searched completely.
  void insist() { insists_ = true; }

  // A bit for each line that some key of the page had to pass on the way from its home. Valid until the page's version
  // changes.
  std::uint64_t lines_passed(Page& page) const;

 private:
  // The search reads at least kLooksMin slots before it takes one of a live key that a floor covers, because it may
  // still find an expired one.
  static constexpr std::uint32_t kLooksMin = 8, kLooksMax = 24;
  static constexpr int kBlocksMax = 16;  // reading a block costs a cache miss
  static constexpr std::size_t kOffersMax = 2 * kChargesMax;

  // The search for a slot to take; `place` has the best one so far.
  struct Candidate {
    Place& place;
    std::uint32_t home = 0;  // the new key's line
    std::uint32_t looks_max = kLooksMax, looks = 0;
    int blocks = 0;
    bool is_stray = false;  // the slot is in that line, but its key has another home

    // The search can stop.
    bool is_found() const { return place.unit == nullptr ? looks >= looks_max : !place.alive || looks >= kLooksMin; }
  };

  bool look_for(Page& page, const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own,
                std::uint64_t family, Place& place);
  bool walk(Page& page, const Name& name, bool is_thorough, Changes& changes, Place& place);
  bool take_offer(Page& page, const Name& name, Changes& changes, Place& place);
  void choose(Page& page, const Name& name, std::int64_t now, Changes& changes, std::span<const Name> own,
              Place& place);
  void consider(Unit& unit, std::uint64_t passed, std::int64_t now, Changes& changes, std::span<const Name> own,
                Candidate& best);
  bool is_of_floor(std::uint64_t tag) const {
    const auto is_same = [tag](const Floor& floor) { return limit_of(floor.word.tag) == limit_of(tag); };
    return std::ranges::any_of(floors_.all(), is_same);
  }
  bool is_covered(const Word& word, std::int64_t now, int& blocks);

  Actor& actor_;
  const Region& region_;
  SlotReader& reader_;
  base::Few<Floor, kFloorsMax> floors_;
  base::Few<Offer, kOffersMax> offers_;
  bool insists_ = false;
};

// Whether a tag has this name.
inline bool is_named(std::uint64_t tag, std::uint64_t name) { return (tag ^ name) < std::uint64_t{1} << kNameShift; }

// The slot in a line whose tag has this name, or null. A hint: the caller must read the word again.
inline Unit* match(Unit (&line)[kSlotsInLine], std::uint64_t name) {
  unsigned found = 0;
#pragma GCC unroll 4
  for (unsigned i = 0; i < kSlotsInLine; ++i) found |= unsigned{is_named(load(line[i].tag), name)} << i;
  return found == 0 || name == 0 ? nullptr : &line[std::countr_zero(found)];
}

}  // namespace weir::table
