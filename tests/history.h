// Is there an order that explains the answers? A search over all orders of a small history of concurrent operations.
//
// Each operation took effect at one moment between its begin and its end, or, if it never ended (its participant was
// killed), perhaps not at all. explain() looks for one order in which a plain, sequential model gives the same answers
// and ends in the state of the table. If there is none, the table has an error.
//
// How to use it, with threads or processes:
// - one counter for all, std::atomic<std::uint64_t> clock (in shared memory for processes). Around each request:
//     event.begin = ++clock; ask; event.action.allowed = the answer; event.end = ++clock;
//   and do not set `end` if the answer was never seen;
// - rounds of at most 32 operations, 8 to 12 are best; read the end state once all have stopped and the dead were
//   recovered;
// - explain(history, start, step, is_end), where `step` is the model. linearizable_test.cc has the model of charges and
//   refunds on a few keys, schedule_model.h that of the table. Any thread. Tested by schedule_test.cc.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace weir::test {

inline constexpr std::uint64_t kNeverEnded = ~std::uint64_t{0};

template <class Action>
struct Event {
  Action action;
  std::uint64_t begin = 0;
  std::uint64_t end = kNeverEnded;
  bool has_ended() const { return end != kNeverEnded; }
};

// Step: void(const State&, const Event<Action>&, std::vector<State>& next), which adds every state that the action may
// lead to from here; none if its answer cannot be given here. Of an action that never ended, the answer does not count.
// IsEnd: bool(const State&). A State can be ordered.
template <class State, class Action, class Step, class IsEnd>
class OrderSearch {
 public:
  OrderSearch(std::span<const Event<Action>> history, Step step, IsEnd is_end)
      : history_(history), step_(step), is_end_(is_end) {}

  bool from(std::uint32_t placed, const State& state) {
    if (all_placed(placed) && is_end_(state)) return true;
    if (!seen_.insert({placed, state}).second) return false;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (!may_be_next(placed, i)) continue;
      std::vector<State> next;
      step_(state, history_[i], next);
      for (const State& one : next) {
        if (from(placed | bit(i), one)) return true;
      }
    }
    return false;
  }

 private:
  static std::uint32_t bit(std::size_t i) { return std::uint32_t{1} << i; }

  bool all_placed(std::uint32_t placed) const {
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if ((placed & bit(i)) == 0 && history_[i].has_ended()) return false;
    }
    return true;
  }

  // No operation that is not placed yet had ended before this one began.
  bool may_be_next(std::uint32_t placed, std::size_t i) const {
    if ((placed & bit(i)) != 0) return false;
    for (std::size_t j = 0; j < history_.size(); ++j) {
      if (j != i && (placed & bit(j)) == 0 && history_[j].end < history_[i].begin) return false;
    }
    return true;
  }

  const std::span<const Event<Action>> history_;
  Step step_;
  IsEnd is_end_;
  std::set<std::pair<std::uint32_t, State>> seen_;
};

template <class Action, class State, class Step, class IsEnd>
bool explain(std::span<const Event<Action>> history, const State& start, Step step, IsEnd is_end) {
  return OrderSearch<State, Action, Step, IsEnd>(history, step, is_end).from(0, start);
}

}  // namespace weir::test
