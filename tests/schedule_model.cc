// See schedule_model.h. Where the table may do one thing or another, the model tries both.

#include "schedule_model.h"

#include <algorithm>
#include <bit>
#include <sstream>

namespace weir::test {
namespace {

bool has(std::uint8_t bits, std::size_t i) { return (bits >> i & 1) != 0; }
std::uint8_t bit(std::size_t i) { return static_cast<std::uint8_t>(1u << i); }

void forget(State& s, std::size_t key) {
  s.used[key] = s.epoch[key] = 0;
  s.held[key] = 0;
}

// A key that has recovered by the end of the action may have been swept at any moment, also before a late action.
void fade(const State& state, const Action& action, std::size_t key, std::vector<State>& out) {
  if (key == kKeys) return out.push_back(state);
  fade(state, action, key + 1, out);
  if (state.used[key] == 0 || state.epoch[key] >= action.last_epoch) return;
  State without = state;
  forget(without, key);
  fade(without, action, key + 1, out);
}

// The earliest time of an action: its own, unless a key that it asks for is ahead. If the action reads the clock again,
// its time may be later.
std::int8_t earliest(const State& s, const Action& action) {
  std::int8_t epoch = action.epoch;
  for (std::size_t k = 0; k < kKeys; ++k) {
    if (has(action.asked, k) && s.used[k] > 0) epoch = std::max(epoch, s.epoch[k]);
  }
  return epoch;
}

void recover_keys(State& s, const Action& action, std::int8_t epoch) {
  for (std::size_t k = 0; k < kKeys; ++k) {
    if (has(action.asked, k) && s.epoch[k] < epoch) forget(s, k);
  }
}

void put(State& s, std::size_t key, int used, std::int8_t epoch) {
  s.used[key] = static_cast<std::int8_t>(std::max(0, used));
  s.epoch[key] = used > 0 ? epoch : std::int8_t{0};
}

// A debit in a nearly full page. A new key takes a free slot or the slot of another key: both are possible, because a
// slot may have become free meanwhile. If strangers are of the same family, it starts from what evicted keys had used,
// and any key that has used no more may be evicted, except `own`, the keys of the request.
std::vector<State> debit_in_full_page(const Rules& rules, const State& s, std::size_t key, int cost, std::uint8_t own,
                                      int& freed, bool& denied) {
  const std::int8_t capacity = rules.capacity[key];
  if (has(s.present, key)) {
    const int used = std::max(0, s.used[key] + cost);
    const bool has_room = cost <= 0 || used <= capacity;
    denied = denied || !has_room;
    if (!has_room) return {};
    State next = s;
    put(next, key, used, 0);
    if (used == 0) next.present &= static_cast<std::uint8_t>(~bit(key));
    if (used == 0) ++freed;
    return {next};
  }
  std::vector<State> all;
  const auto start = [&](State from) {  // its floor is what it was, or has just been raised
    const int used = std::max(0, from.floor + cost);
    if (cost > 0 && used > capacity) {
      denied = true;
      return;
    }
    if (used == 0 || cost == 0) return all.push_back(from);
    put(from, key, used, 0);
    from.present |= bit(key);
    if (from.room > 0) {
      State next = from;
      --next.room;
      all.push_back(next);
    }
    if (rules.are_strangers_kin && from.floor == 0) return;  // no key is evicted before that
    all.push_back(from);
    for (std::size_t i = 0; i < kStrangers; ++i) {
      State next = from;
      next.evacuated |= bit(i);
      all.push_back(next);
    }
    for (std::size_t k = 0; rules.are_strangers_kin && k < kKeys; ++k) {
      if (!has(s.present, k) || has(own, k) || s.used[k] > from.floor) continue;
      State next = from;
      forget(next, k);
      next.present &= static_cast<std::uint8_t>(~bit(k));
      all.push_back(next);
    }
  };
  start(s);
  if (rules.are_strangers_kin && s.floor == 0) {
    State raised = s;
    raised.floor = 1;
    start(raised);
  }
  return all;
}

// All costs, wherever that is allowed; where it is not, `denied` is set.
std::vector<State> debit_all(const Rules& rules, const State& s, const Action& action, std::int8_t epoch,
                             bool& denied) {
  std::vector<std::pair<State, int>> states{{s, 0}};
  for (std::size_t k = 0; k < kKeys; ++k) {
    if (!has(action.asked, k)) continue;
    std::vector<std::pair<State, int>> after;
    for (const auto& [state, freed] : states) {
      if (rules.is_page_full) {
        int free = freed;
        for (const State& one : debit_in_full_page(rules, state, k, action.costs[k], action.asked, free, denied)) {
          after.push_back({one, free});
        }
      } else if (action.costs[k] <= 0 || state.used[k] + action.costs[k] <= rules.capacity[k]) {
        State next = state;
        if (action.costs[k] != 0) put(next, k, state.used[k] + action.costs[k], epoch);
        const bool is_as_told = action.left[k] < 0 || action.left[k] == rules.capacity[k] - next.used[k];
        if (is_as_told) after.push_back({next, freed});
      } else {
        denied = true;
      }
    }
    states = std::move(after);
  }
  std::vector<State> all;
  for (auto& [state, freed] : states) {
    state.room = static_cast<std::int8_t>(state.room + freed);
    all.push_back(state);
  }
  return all;
}

using Outcome = std::pair<Answer, State>;

void charge(const Rules& rules, const State& s, const Action& action, std::int8_t epoch, std::vector<Outcome>& out) {
  const bool has_id = action.doing == Doing::identified, reserves = action.doing == Doing::reserve;
  if (has_id && has(s.ids, action.id)) return out.push_back({Answer::repeated, s});
  for (std::size_t k = 0; reserves && k < kKeys; ++k) {
    if (has(action.asked, k) && s.reserved[action.id][k] > 0) return out.push_back({Answer::repeated, s});
  }
  State fresh = s;
  recover_keys(fresh, action, epoch);
  bool denied = false;
  const std::vector<State> all = debit_all(rules, fresh, action, epoch, denied);
  for (State one : all) {
    if (has_id) one.ids |= bit(action.id);
    for (std::size_t k = 0; reserves && k < kKeys; ++k) {
      if (has(action.asked, k)) one.reserved[action.id][k] = static_cast<std::int8_t>(action.costs[k] + 1);
    }
    out.push_back({Answer::allowed, one});
  }
  if (denied || rules.is_arena_tight) out.push_back({Answer::denied, s});
  if (denied && rules.are_strangers_kin && s.floor == 0) {  // another key took the slot that was being freed
    out.push_back({Answer::denied, s});
    out.back().second.floor = 1;
  }
}

void commit(const Rules& rules, const State& s, const Action& action, std::vector<Outcome>& out) {
  State next = s;
  for (std::size_t k = 0; k < kKeys; ++k) {
    if (!has(action.asked, k)) continue;
    std::int8_t& reserved = next.reserved[action.id][k];
    if (reserved == 0) return out.push_back({Answer::missing, s});
    put(next, k, std::min<int>(rules.capacity[k], s.used[k] + action.costs[k] - (reserved - 1)), 0);
    reserved = 0;
  }
  out.push_back({Answer::allowed, next});
}

void hold(const Rules& rules, State s, const Action& action, std::int8_t epoch, std::vector<Outcome>& out) {
  const State before = s;
  const std::size_t k = action.key;
  recover_keys(s, action, epoch);
  const std::uint8_t held = s.held[k], own = bit(action.id);
  const bool acquires = action.doing == Doing::acquire;
  const int others = std::popcount(static_cast<unsigned>(held & ~own));
  const bool may = acquires ? others + 1 <= rules.capacity[k] : (held & own) != 0;
  if (may) {
    s.held[k] = static_cast<std::uint8_t>(acquires ? held | own : held & ~own);
    put(s, k, std::popcount(static_cast<unsigned>(s.held[k])), epoch);
  }
  out.push_back({may ? Answer::allowed : Answer::denied, may ? s : before});
  if (rules.is_arena_tight && acquires) out.push_back({Answer::denied, before});
}

void forget_key(const Rules& rules, State s, const Action& action, std::int8_t epoch, std::vector<Outcome>& out) {
  const std::size_t k = action.key;
  recover_keys(s, action, epoch);
  const bool was = rules.is_page_full ? has(s.present, k) : s.used[k] > 0;
  forget(s, k);
  if (rules.is_page_full && was) {
    s.present &= static_cast<std::uint8_t>(~bit(k));
    ++s.room;
  }
  out.push_back({was ? Answer::found : Answer::not_found, s});
}

void evacuate(State s, const Action& action, std::vector<Outcome>& out) {
  const bool was = !has(s.evacuated, action.key);
  s.evacuated |= bit(action.key);
  if (was) ++s.room;
  out.push_back({was ? Answer::found : Answer::not_found, s});
}

void judge(const Rules& rules, const State& s, const Action& action, std::int8_t epoch, std::vector<Outcome>& out) {
  switch (action.doing) {
    case Doing::charge:
    case Doing::identified:
    case Doing::reserve:
      charge(rules, s, action, epoch, out);
      break;
    case Doing::commit:
      commit(rules, s, action, out);
      break;
    case Doing::acquire:
    case Doing::release:
      hold(rules, s, action, epoch, out);
      break;
    case Doing::forget:
      forget_key(rules, s, action, epoch, out);
      break;
    case Doing::evacuate:
      evacuate(s, action, out);
      break;
    case Doing::sweep:
      out.push_back({action.answer, s});
      break;
  }
}

}  // namespace

void step(const Rules& rules, const State& state, const Event<Action>& event, std::vector<State>& next) {
  std::vector<State> before;
  fade(state, event.action, 0, before);
  for (const State& one : before) {
    std::vector<Outcome> outcomes;
    for (std::int8_t epoch = earliest(one, event.action); epoch <= event.action.last_epoch; ++epoch) {
      judge(rules, one, event.action, epoch, outcomes);
    }
    for (const auto& [answer, after] : outcomes) {
      if (!event.has_ended() || answer == event.action.answer) next.push_back(after);
    }
  }
}

State at_last(const Rules& rules, State state) {
  for (std::size_t k = 0; k < kKeys; ++k) {
    if (state.epoch[k] < rules.last_epoch) forget(state, k);
    state.epoch[k] = 0;
  }
  return state;
}

std::string describe(const Event<Action>& event) {
  static constexpr const char* kDoings[] = {"charge",  "identified", "reserve",  "commit", "forget",
                                            "acquire", "release",    "evacuate", "sweep"};
  static constexpr const char* kAnswers[] = {"denied", "allowed",   "repeated", "missing",
                                             "found",  "not_found", "failed"};
  const Action& a = event.action;
  std::ostringstream text;
  text << '[' << event.begin << ", " << (event.has_ended() ? std::to_string(event.end) : "killed") << "] "
       << kDoings[static_cast<int>(a.doing)] << " key " << int{a.key} << " id " << int{a.id} << " costs";
  for (std::size_t k = 0; k < kKeys; ++k) text << ' ' << (has(a.asked, k) ? std::to_string(a.costs[k]) : "-");
  text << " epoch " << int{a.epoch} << ".." << int{a.last_epoch} << " -> "
       << (event.has_ended() ? kAnswers[static_cast<int>(a.answer)] : "?");
  return text.str();
}

std::string describe(const State& s) {
  std::ostringstream text;
  text << "used";
  for (std::size_t k = 0; k < kKeys; ++k) text << ' ' << int{s.used[k]};
  text << " held";
  for (std::size_t k = 0; k < kKeys; ++k) text << ' ' << int{s.held[k]};
  text << " ids " << int{s.ids} << " reserved";
  for (const auto& id : s.reserved) {
    for (const std::int8_t amount : id) text << ' ' << int{amount};
  }
  text << " present " << int{s.present} << " room " << int{s.room} << " floor " << int{s.floor} << " evacuated "
       << int{s.evacuated};
  return text.str();
}

}  // namespace weir::test
