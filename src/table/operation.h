// Changes several words as one event. No thread ever waits for another.
//
// An operation lists its words in the record of a participant, with the old and the new value of each. It takes
// effect at one moment: when its status becomes `done`, while it holds all of its words. A thread that meets a held
// word completes the operation, or undoes it, and continues. So a participant that was killed or stopped in the
// middle blocks no other. The first tries are *solo*: only the owner acquires words, other threads may only undo the
// operation. This is fast. Later tries are *help*: other threads complete the operation. So an operation is undone
// only a few times, and every operation gets done in the end.
//
// An actor is one thread with one participant's record. Tested by operation_test.cc, by tests/schedule_test.cc
// (chosen interleavings), tests/kill_test.cc and by the model in tests/model.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "table/layout.h"

// How often an operation is tried solo, and how often a thread looks again before it undoes another's solo operation:
// a running owner needs some 50 ns. Tests that choose schedules define their own numbers.
#ifndef WEIR_TABLE_SOLO_TRIES
#define WEIR_TABLE_SOLO_TRIES 2u
#endif
#ifndef WEIR_TABLE_SPINS
#define WEIR_TABLE_SPINS 8u
#endif

namespace weir::table {

// The state of a marked word: it names an operation or a conditional install.
inline constexpr unsigned kNumberBits = 54;
inline constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << kNumberBits) - 1;
inline std::uint64_t reference(std::uint64_t who, std::uint64_t number) { return who << kNumberBits | number; }
inline std::uint64_t who_of(std::uint64_t reference) { return (reference >> kNumberBits) % kParticipants; }
inline std::uint64_t number_of(std::uint64_t reference) { return reference & kNumberMask; }

// What to do if a word of a solo operation has changed before it was acquired: the owner may target the new word.
class Rebinder {
 public:
  virtual ~Rebinder() = default;
  // Sets entry.old and entry.next for the word that was seen, or returns false: then the operation fails.
  virtual bool rebind(Entry& entry, const Word& seen) = 0;
};

enum class Way { solo, help };

// The mode of the next try, solo or help, after `tries` tries.
inline Way way_after(unsigned tries) { return tries < WEIR_TABLE_SOLO_TRIES ? Way::solo : Way::help; }

class Actor {
 public:
  Actor(const Region& region, std::uint64_t who) : region_(&region), who_(who) {}

  // read()
  //
  // The word of a unit, once no operation holds it.
  Word read(Unit& unit);

  // put()
  //
  // Writes into a block that belongs to this participant alone. Uses an exchange, because a late helper may still
  // hold the word for a moment.
  void put(Unit& unit, const Word& word);

  // change()
  //
  // Changes all entries or none. They are in ascending order of their units, each unit once. `rebinder` may be null.
  bool change(std::span<Entry> entries, Way way, Rebinder* rebinder);

  // recover()
  //
  // Completes what a dead participant of this record left. The caller has the record's lock.
  void recover();

  // True after a word could not be completed, or made no sense: the region is damaged. Nothing read since then
  // counts, until a caller that can continue without it calls take_note_of_damage().
  bool is_damaged() const { return damaged_; }
  void note_damage() { damaged_ = has_met_damage_ = true; }
  bool take_note_of_damage() { return std::exchange(damaged_, false); }
  // The same, but never reset.
  bool has_met_damage() const { return has_met_damage_; }

  const Region& region() const { return *region_; }
  std::uint64_t who() const { return who_; }
  Participant& record() const { return region_->participant(who_); }

 private:
  // How often a loop has seen the same marked word, and how often it has looked in total.
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
  bool hold(Entry& entry, std::size_t place, std::uint64_t ref, Rebinder* rebinder);

  const Region* region_;
  std::uint64_t who_;
  bool damaged_ = false, has_met_damage_ = false;
  unsigned depth_ = 0;  // of helping an operation that waits for another
};

}  // namespace weir::table
