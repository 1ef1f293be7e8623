// Frees a slot in a full page, or a block of the arena: which key is evicted, and what is remembered of it.
//
// A limit is judged together with all limits of its family, and a family is entitled to its fair part of a page. If a
// new key's own family has its part, the new key takes the place of a key of that family. Otherwise it takes one of the
// family that has the most. So a flood under one rule does not harm the clients of another. Within that family, the
// keys that have used least are evicted. Before a key is evicted, the floor of its number is raised to what the key has
// used (floor.h). For the new key's own family, the floor is raised over half of the keys at once. So the next new keys
// find slots near their home without reading the whole page. A floor may therefore be higher than what an evicted key
// had used, by up to the difference between the keys of that half.
//
// Blocks are taken in the same way. Suppose a new key needs a block, and its family has its part of the blocks in the
// page. Then the key takes one from its family before the arena is used up. So a flood of logs leaves blocks to other
// rules. A log that loses its block is not evicted. It stays in its slot as two counts (algorithm/compact_log.h), as
// long as its limit's counts fit there.
//
// Tickets, permits in flight and limits without a number are never evicted. Each may take at most a part of a page.
// The page's version counts them (layout.h), and they are counted again when the part seems used up. For the one
// thread of an actor. Tested by tests/eviction_test.cc and tests/schedule_test.cc.
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
  // Frees a slot or block for a key of a family, or for a ticket (0), as near to its home as possible. False if
  // nothing may be evicted: everything else in the page is tickets and permits in flight, or keys of the same
  // verdict.
  enum class Wanted : std::uint8_t {
    slot,
    own_block,  // of the key's own family, if that family has its part; else nothing is done
    block,      // of the family that has to give one up
  };
  struct Room {
    Page* page = nullptr;
    std::uint32_t home = 0;  // a line
    std::uint64_t family = 0;
    Wanted wanted = Wanted::slot;
  };
  bool make_room(const Room& room, std::int64_t now, const Taken& taken);

  // recount()
  //
  // Counts the slots of a page that are never evicted, after removing those that have expired. `wait_us` is the time
  // until the first ticket expires.
  struct Kept {
    std::uint64_t held = 0, tickets = 0;
    std::int64_t wait_us = 0;
  };
  Kept recount(Page& page, std::int64_t now);

 private:
  // The slots of one number in a page.
  struct Group {
    const Known* known = nullptr;
    std::uint32_t number = 0, count = 0;
    bool is_spent = false;  // none of its keys can be evicted
  };
  using Groups = base::Few<Group, kSlots>;
  // The group that has to give up slots, and at most how many at once.
  struct Choice {
    Group* group = nullptr;
    bool is_own = false;  // it is of the new key's family
    std::size_t most = 0;
  };
  struct Victim {
    std::uint64_t rank = 0;   // rises with what was used
    std::uint64_t state = 0;  // of a floor that covers it; 0 if it has expired
    Unit* unit = nullptr;
    Word seen{};
  };
  using Victims = base::Few<Victim, kSlots>;

  // False if the page has a free slot already.
  bool count(const Room& room, std::int64_t now, const Taken& taken, Groups& groups);
  static Choice choose(std::span<Group> groups, const Room& room);
  void collect(Page& page, const Group& group, std::int64_t now, const Taken& taken, Victims& victims);
  bool may_go(const Unit& unit, std::uint64_t tag, const Taken& taken) const;
  // The first one at or after a line.
  static Victim& nearest(const Page& page, std::span<Victim> victims, std::uint32_t line);
  enum class Raised : std::uint8_t { failed, in_page, in_slot };  // in the slot of the first victim
  Raised raise_floor(Page& page, const Word& version, const Group& group, std::span<Victim> victims, std::int64_t now);
  void evict(std::span<const Victim> victims);
  bool compact(const Known& known, std::span<const Victim> victims, std::int64_t now);
  void count_evicted();
  bool change(std::span<Entry> entries);

  Actor& actor_;
  const Region& region_;
  SlotReader& reader_;
  Finder& finder_;
};

}  // namespace weir::table
