// What the table should do: the sequential model that explains the histories of schedule_test.cc.
//
// Three keys with a capacity each, a few ids. Time stands still except for jumps after which everything has recovered:
// a new epoch. A page may be so full that new keys evict each other or share a counter. Pure. Tested by the mutants of
// the table; an error of the model itself fails without any mutant.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "history.h"

namespace weir::test {

inline constexpr std::size_t kKeys = 3, kIds = 2, kStrangers = 2;

enum class Doing : std::uint8_t {
  charge,      // some keys at once
  identified,  // the same, once for an id
  reserve,
  commit,
  forget,    // one key
  acquire,   // one key, by id
  release,   // one key, by id
  evacuate,  // evict a stranger: one more slot is free
  sweep,
};

enum class Answer : std::uint8_t { denied, allowed, repeated, missing, found, not_found, failed };

struct Action {
  Doing doing = Doing::charge;
  std::array<std::int8_t, kKeys> costs{};
  std::uint8_t asked = 0;  // a bit for each key
  std::uint8_t key = 0;    // or the stranger
  std::uint8_t id = 0;
  std::int8_t epoch = 0, last_epoch = 1;  // when it began, and when it ended
  Answer answer = Answer::denied;
  std::array<std::int8_t, kKeys> left{-1, -1, -1};  // `remaining` in an allowed charge's answer; -1: not known
};

struct Rules {
  std::array<std::int8_t, kKeys> capacity{};
  std::uint8_t holds = 0;          // which keys count permits in flight
  std::uint8_t logs = 0;           // which are logs
  bool is_page_full = false;       // but for State::room
  bool are_strangers_kin = false;  // those that fill the page have the limit of all keys, and have used 1
  bool is_arena_tight = false;     // what needs a block may be denied because no block is free
  std::int8_t last_epoch = 0;
};

struct State {
  std::array<std::int8_t, kKeys> used{}, epoch{};
  std::array<std::uint8_t, kKeys> held{};                       // by which ids
  std::uint8_t ids = 0;                                         // that were allowed
  std::array<std::array<std::int8_t, kKeys>, kIds> reserved{};  // amount + 1
  // In a full page:
  std::uint8_t present = 0, evacuated = 0;
  std::int8_t room = 0, floor = 0;  // what evicted keys had used
  auto operator<=>(const State&) const = default;
};

// A Step of history.h.
void step(const Rules& rules, const State& state, const Event<Action>& event, std::vector<State>& next);

// The state at the end of the history.
State at_last(const Rules& rules, State state);

std::string describe(const Event<Action>& event);
std::string describe(const State& state);

}  // namespace weir::test
