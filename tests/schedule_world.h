// A small table for schedules: one page, three keys placed as the test wants, a small arena.
//
// It is made once and restored before each history. It performs actions as a store would and describes its content in
// the words of the model. It also finds damage that no answer shows: a mark that stays, a duplicate key, a key that
// cannot be found, a block that is lost or has two owners, a stranger's key that changed. For one thread, whose fibers
// may all use it. Tested by all of schedule_test.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedule_model.h"
#include "table/table.h"

namespace weir::test {

// At every reading of this clock, another participant may run.
class StoppedClock final : public Clock {
 public:
  Micros now() const override;
  std::int64_t now_us = 0;
};

enum class Beginning : std::uint8_t {
  empty,
  full,     // of keys that have used their whole limit
  crowded,  // of keys that have used little
  kin,      // of keys with the limit of the keys under test
};

// How the keys of a history lie and what their limits are.
struct Setting {
  Beginning beginning = Beginning::empty;
  std::array<Algorithm, kKeys> algorithms{};
  std::array<std::uint32_t, kKeys> lines{};  // their home lines
  unsigned neighbours = 0;                   // strangers in the first key's home line
  std::uint64_t arena_lines = 64;            // free ones: at most 64
  unsigned freed_max = 0;                    // how often a request asks logs for their blocks
  bool are_limits_new = false;               // nobody has met a limit yet
  bool is_time_still = false;                // all happens in one microsecond
  Rules rules;
};

class World {
 public:
  static constexpr std::uint64_t kFirst = 1;   // the participant of the first fiber
  static constexpr std::uint64_t kBefore = 5;  // of what is done before the fibers start
  static constexpr std::uint64_t kTester = 6;  // of the test itself, which keeps blocks so that few are free
  static constexpr std::int8_t kCapacityMax = 10;

  World();

  void begin(const Setting& setting);
  void perform(table::Actor& actor, Action& action);
  // As Seats does with the record of a dead participant.
  void recover(std::uint64_t who);

  // So much later that everything has recovered.
  void jump();
  std::int8_t epoch() const { return epoch_; }
  std::int8_t last_epoch() const { return setting_.rules.last_epoch; }

  State look();
  std::string find_harm();

  const table::Region& region() const { return table_->region(); }
  table::Unit& slot(std::size_t line, std::size_t i) { return region().page(0).slots[line][i]; }
  std::uint64_t evicted();

 private:
  struct Span {
    char* place;
    std::vector<char> bytes;
  };
  using Snapshot = std::vector<Span>;

  Snapshot snapshot() const;
  static void restore(const Snapshot& snapshot);
  void fill_page(const Limit& limit);
  void hog_arena(std::uint64_t free_lines);

  const Limit* limit_for(Algorithm algorithm, std::int8_t capacity) const;
  Answer charge(table::Actor& actor, Action& action, std::int64_t now);
  Answer hold(table::Actor& actor, const Action& action, std::int64_t now);
  bool forget(table::Actor& actor, const table::Name& name, std::int64_t now);
  Answer answer_of(const Result<table::Ruling>& ruling);
  std::vector<table::Debit> debits_of(const Action& action) const;
  std::vector<table::Ticket> tickets_of(const Action& action, std::int64_t now) const;

  table::Unit* find(const table::Name& name);
  std::int8_t used_in(const table::Word& slot);
  std::string find_marks();
  std::string find_misplaced();
  std::string find_lost_blocks();
  std::string find_harmed_strangers();

  std::shared_ptr<StoppedClock> clock_;
  std::unique_ptr<table::Table> table_;
  std::unique_ptr<table::Registry> registry_;
  table::Actor tester_;
  std::vector<std::unique_ptr<const Limit>> limits_;
  const Limit *slight_ = nullptr, *spent_ = nullptr, *kin_ = nullptr;  // of strangers
  Snapshot beginnings_[4];
  std::vector<char> limits_met_;
  Setting setting_;
  std::array<table::Name, kKeys> names_{};
  std::array<const Limit*, kKeys> key_limits_{};
  std::int8_t epoch_ = 0;
  // Every action has its own time, except with buckets: a bucket at an earlier time than its last charge seems to have
  // used a little more than it has.
  bool ticks_ = true;
  std::string trouble_;
};

}  // namespace weir::test
