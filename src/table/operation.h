// Several words changed as one event, without anybody ever waiting for anybody.
//
// An operation names its words, what they hold and what they shall hold, in the record of a participant. It takes
// effect at one moment: when its status becomes `done`, while it holds all of its words. Whoever meets a held word
// brings the operation to its end, or undoes it, and goes on: a participant that was killed or stopped in the middle is
// in nobody's way. The first tries are *solo*: only the owner takes hold of words, others may only undo it; that is
// fast. Then others *help*: an operation is undone only a few times, so that everybody's work gets done in the end.
//
// An actor is one thread at one participant's record. Tested by operation_test.cc, by tests/schedule_test.cc (chosen
// interleavings), tests/kill_test.cc and by the model in tests/model.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "table/layout.h"

// How often an operation is tried alone, and how often to look again before undoing another's that is: a running owner
// is done in some 50 ns. Tests that choose schedules have numbers of their own.
#ifndef WEIR_TABLE_SOLO_TRIES
#define WEIR_TABLE_SOLO_TRIES 2u
#endif
#ifndef WEIR_TABLE_PATIENCE
#define WEIR_TABLE_PATIENCE 8u
#endif

namespace weir::table {

// Names an operation, or a conditional install, in the state of a marked word.
inline constexpr unsigned kNumberBits = 54;
inline constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << kNumberBits) - 1;
inline std::uint64_t reference(std::uint64_t who, std::uint64_t number) { return who << kNumberBits | number; }
inline std::uint64_t who_of(std::uint64_t reference) { return (reference >> kNumberBits) % kParticipants; }
inline std::uint64_t number_of(std::uint64_t reference) { return reference & kNumberMask; }

// What to do when a word of a solo operation has moved on before it was held: the owner may aim at the new word.
class Rebinder {
 public:
  virtual ~Rebinder() = default;
  // Sets entry.old and entry.next by what was seen, or says no: then the operation fails.
  virtual bool rebind(Entry& entry, const Word& seen) = 0;
};

enum class Way { solo, help };

// The way of the next try, after so many.
inline Way way_after(unsigned tries) { return tries < WEIR_TABLE_SOLO_TRIES ? Way::solo : Way::help; }

class Actor {
 public:
  Actor(const Region& region, std::uint64_t who) : region_(&region), who_(who) {}

  // read()
  //
  // The word of a unit once no operation holds it.
  Word read(Unit& unit);

  // put()
  //
  // Writes into a block that belongs to this participant alone. By exchange: a helper who comes late may still hold
  // the word for a moment.
  void put(Unit& unit, const Word& word);

  // change()
  //
  // All entries or none; they stand in ascending order of their units, none twice. `rebinder` may be null.
  bool change(std::span<Entry> entries, Way way, Rebinder* rebinder);

  // recover()
  //
  // Ends what a dead participant of this record left: whoever calls it holds the record's lock.
  void recover();

  // True once a word could not be brought to an end, or made no sense: the region is damaged. Nothing read since then
  // counts, until whoever can do without it has taken note.
  bool is_damaged() const { return damaged_; }
  void note_damage() { damaged_ = has_met_damage_ = true; }
  bool take_note_of_damage() { return std::exchange(damaged_, false); }
  // The same, and nobody takes it back.
  bool has_met_damage() const { return has_met_damage_; }

  const Region& region() const { return *region_; }
  std::uint64_t who() const { return who_; }
  Participant& record() const { return region_->participant(who_); }

 private:
  // How often a loop has looked at one marked word, and how often at all.
  struct Looks {
    Word before{};
    unsigned same = 0, all = 0;
  };
  bool may_look(Looks& looks, const Word& word);
  void settle(Unit& unit, const Word& seen);
  void help(std::uint64_t ref);
  void drive(std::uint64_t ref);
  void install(Unit& unit, const Word& old, std::uint64_t ref);
  void complete(Unit& unit, const Word& seen);
  void release(std::uint64_t ref, bool done);
  bool hold_all(std::span<Entry> entries, std::uint64_t ref, Rebinder* rebinder);
  bool hold(Entry& entry, std::size_t place, std::uint64_t ref, Rebinder* rebinder);

  const Region* region_;
  std::uint64_t who_;
  bool damaged_ = false, has_met_damage_ = false;
  unsigned depth_ = 0;  // of helping one who waits for another
};

}  // namespace weir::table
