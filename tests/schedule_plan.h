// Histories for schedules: the operations of each participant, drawn at random for a scenario, run under any
// interleaving, and checked. For one thread. Tested by all of schedule_test.cc.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "schedule.h"
#include "schedule_world.h"

namespace weir::test {

enum class Scenario : std::uint8_t {
  counters,  // charges, refunds and resets of keys that exist or not
  jump,      // the same, while time makes one or two
  holds,     // permits in flight and logs: blocks
  tickets,   // ids, reservations
  swept,     // one participant sweeps keys that have recovered
  full,      // a full page: keys evict each other, or share a counter
  crowded,   // new keys evict strangers
  new_limits,
  compact,  // hardly a block is free: logs become two counts, and logs again
};
inline constexpr std::size_t kScenarios = 9;
const char* name_of(Scenario scenario);

struct Plan {
  Setting setting;
  std::vector<Action> before;               // by one participant
  bool begins_late = false;                 // and then everything recovers
  unsigned jumps = 0;                       // or it does so later, this many times
  std::vector<std::vector<Action>> fibers;  // a list for each participant
  unsigned solo_tries = 2;
};

Plan random_plan(Scenario scenario, std::mt19937_64& random);

// A plan that is being played.
class Play {
 public:
  Play(World& world, Schedule& schedule, const Plan& plan);

  std::size_t fibers() const { return events_.size(); }
  // Ends a participant for good. Another takes its place and recovers what it left, now or at the end.
  void kill(std::size_t fiber, bool is_replaced);

  // judge()
  //
  // Call it when all fibers are over. Returns what is wrong; empty: nothing.
  std::string judge();

  std::vector<Event<Action>> history() const;
  bool has_ended(std::size_t fiber, std::size_t i) const { return events_[fiber][i].has_ended(); }

 private:
  void play(std::size_t fiber);

  World& world_;
  Schedule& schedule_;
  const Plan& plan_;
  State start_;
  std::vector<std::vector<Event<Action>>> events_;
  std::vector<std::size_t> next_;  // event of each fiber
  std::vector<bool> is_dead_;
};

// How many of what.
struct Tally {
  std::uint64_t histories = 0, operations = 0, accesses = 0, stops = 0, kills = 0, denied = 0;
};

// run_at_random()
//
// Plays one plan under one schedule, both drawn from the seed. Returns what is wrong; empty: nothing.
std::string run_at_random(World& world, Schedule& schedule, Scenario scenario, std::uint64_t seed, Tally& tally);

// run_all_up_to()
//
// Plays a plan for two under all schedules with at most `switches` switches, or under those whose first switch
// comes at `first` modulo `of`. Returns what is wrong, with the schedule; empty: nothing.
struct Part {
  std::uint64_t first = 0, of = 1;
};
std::string run_all_up_to(World& world, Schedule& schedule, const Plan& plan, unsigned switches, Part part,
                          Tally& tally);

}  // namespace weir::test
