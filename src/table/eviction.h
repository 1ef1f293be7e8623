// Makes room in a full page: which key goes, and what is remembered of it.
//
// A limit is judged together with all limits of its family, and a family is entitled to its fair part of a page.
// A new key takes the place of one of its own family, if that has its part, else of the family that has most: so a
// flood under one rule does not harm the clients of another. Of that family the keys that have used least are evicted.
// Before a key is evicted, the floor of its number is raised to what it has used (floor.h). Of the new key's own family
// the floor is raised over an eighth of the keys at once, so that the next new keys find room without a look at the
// whole page. So a floor may be higher than what was evicted, by as much as an eighth of the keys differ.
//
// Tickets, permits in flight and limits without a number are never evicted. They have at most a part of a page each,
// which is counted in its version (layout.h) and counted again where the part seems used up. For the one thread of an
// actor. Tested by tests/eviction_test.cc and tests/schedule_test.cc.
#pragma once

#include <cstdint>
#include <span>

#include "table/finder.h"

namespace weir::table {

class Eviction {
 public:
  Eviction(Actor& actor, SlotReader& reader, Finder& finder)
      : actor_(actor), region_(actor.region()), reader_(reader), finder_(finder) {}

  // What the verdict itself needs: its keys, and the words that it is about to change.
  struct Taken {
    std::span<const Name> names;
    Changes& changes;
  };

  // make_room()
  //
  // For a key of a family, or for what is none (0). The finder is given the slot. False if nobody can go: all others
  // in the page are tickets and permits in flight, or keys of the same verdict.
  bool make_room(Page& page, std::uint64_t family, std::int64_t now, const Taken& taken);

  // recount()
  //
  // How many slots of a page hold what is never evicted. Those that are over are removed first. `wait_us` is how long
  // it takes until the first ticket is over.
  struct Kept {
    std::uint64_t held = 0, tickets = 0;
    std::int64_t wait_us = 0;
  };
  Kept recount(Page& page, std::int64_t now);

 private:
  // The slots of one number in a page.
  struct Group {
    const Known* known = nullptr;
    std::uint32_t number = 0, count = 0, free = 0;  // of these, those that may go
  };
  struct Victim {
    Unit* unit = nullptr;
    Word seen{};
    std::uint64_t rank = 0;   // ascends with what was used
    std::uint64_t state = 0;  // of a floor that covers it
  };
  using Groups = Few<Group, kSlots>;
  using Victims = Few<Victim, kSlots>;

  // False if the page has room already.
  bool count(Page& page, std::int64_t now, const Taken& taken, Groups& groups);
  const Group* choose(std::span<Group> groups, std::uint64_t family) const;
  void collect(Page& page, const Group& group, std::int64_t now, const Taken& taken, Victims& victims);
  bool may_go(const Unit& unit, const Word& word, const Taken& taken) const;
  // True if the first of them is covered now.
  bool raise_floor(Page& page, const Word& version, const Group& group, std::span<Victim> victims, std::int64_t now);
  bool change(std::span<Entry> entries);

  Actor& actor_;
  const Region& region_;
  SlotReader& reader_;
  Finder& finder_;
};

}  // namespace weir::table
