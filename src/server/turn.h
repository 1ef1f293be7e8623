// A turn of a loop: the checks that all of its connections have asked for, decided together.
//
//   const std::size_t place = turn.ask({.key = key, .limit = &limit, .cost = 1});     while requests are read
//   turn.decide();                                                                    once
//   const Result<Decision>& decision = turn.answer(place);                            while answers are written
//
// One reading of the clock serves all, and every key's line is asked for before the first is needed: that is worth more
// than any other trick. Bytes of keys and limits stay where they are until the turn is cleared. Belongs to one loop and
// its thread. Tested by turn_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

class Turn {
 public:
  // What is decided is counted by the gate; null: nowhere.
  explicit Turn(Limiter& limiter, Gate* counting = nullptr)
      : limiter_(limiter), counting_(counting), now_(limiter.now()) {}

  // The place of its answer.
  std::size_t ask(const Charge& charge) {
    charges_.push_back(charge);
    return charges_.size() - 1;
  }
  std::size_t asked() const { return charges_.size(); }
  const Charge& asked_for(std::size_t place) const { return charges_[place]; }

  void decide() {
    now_ = limiter_.check_many(charges_, answers_);
    if (counting_ != nullptr) counting_->count_inline(charges_, answers_, now_);
  }

  // After decide().
  const Result<Decision>& answer(std::size_t place) const { return answers_[place]; }

  // The time of the decisions, before them that of the turn's beginning: for whatever an answer tells of time.
  Micros now() const { return now_; }
  void begin() { now_ = limiter_.now(); }

  void clear() { charges_.clear(); }

  // Whether what comes up now is answered without a decision, since there is no time for one: see overload.h.
  bool sheds() const { return sheds_ != Sheds::nothing; }
  void set_shedding(bool sheds) { sheds_ = sheds ? Sheds::checks : Sheds::nothing; }
  // The same, and whatever else would ask the limiter is refused: it could not wait for the answer. See errand.h.
  bool refuses() const { return sheds_ == Sheds::everything; }
  void refuse_all() { sheds_ = Sheds::everything; }

 private:
  Limiter& limiter_;
  Gate* const counting_;
  Micros now_;
  enum class Sheds : std::uint8_t { nothing, checks, everything };
  Sheds sheds_ = Sheds::nothing;
  std::vector<Charge> charges_;
  std::vector<Result<Decision>> answers_;
};

}  // namespace weir
