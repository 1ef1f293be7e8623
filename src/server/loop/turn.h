// A turn of a loop: the checks of all its connections, decided together.
//
//   const std::size_t place = turn.ask({.key = key, .limit = &limit, .cost = 1});     while requests are read
//   turn.decide();                                                                    once
//   const Result<Decision>& decision = turn.answer(place);                            while answers are written
//
// One clock reading serves all checks, and every key's cache line is prefetched before the first is needed: no other
// optimization gains as much. The bytes of keys and limits must stay in place until the turn is cleared. Belongs to
// one loop and its thread. Tested by turn_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

class Turn {
 public:
  // The gate counts the decisions; null: not counted.
  explicit Turn(Limiter& limiter, Gate* counting = nullptr)
      : limiter_(limiter), counting_(counting), now_(limiter.now()) {}

  // Returns the index of its answer.
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

  // Call it after decide().
  const Result<Decision>& answer(std::size_t place) const { return answers_[place]; }

  // The time of the decisions; before them, of the turn's beginning. Answers use it for all times.
  Micros now() const { return now_; }
  void begin() { now_ = limiter_.now(); }

  void clear() { charges_.clear(); }

  // Whether a request that comes up now is answered without a decision, because of overload (overload.h).
  bool sheds() const { return sheds_ != Sheds::nothing; }
  void set_shedding(bool sheds) { sheds_ = sheds ? Sheds::checks : Sheds::nothing; }
  // The same; other questions to the limiter are also refused, because they could not wait for an answer (errand.h).
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
