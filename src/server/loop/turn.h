// A turn of a loop: the checks of all its connections, decided together, and the buffer they are read into.
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
#include <memory>
#include <span>
#include <vector>

#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir::server::loop {

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

  const Result<Decision>& answer(std::size_t place) const {
    WEIR_ASSERT(place < answers_.size());
    return answers_[place];
  }

  // The time of the decisions; before them, of the turn's beginning. Answers use it for all times.
  Micros now() const { return now_; }
  void begin() { now_ = limiter_.now(); }

  void clear() { charges_.clear(); }

  // Whether the next request is answered without a decision, because of overload (overload.h).
  bool sheds() const { return sheds_ != Sheds::nothing; }
  void set_shedding(bool sheds) { sheds_ = sheds ? Sheds::checks : Sheds::nothing; }
  // The same; other calls of the limiter are also refused, because they could not wait for an answer
  // (fiber_task.h).
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

// One piece of memory for the input of all connections of a loop. It stays there until the turn is over, so that checks
// may point into it. An idle connection takes no memory.
class TurnBuffer {
 public:
  static constexpr std::size_t kRead = std::size_t{64} << 10;  // the most that one read returns
  static constexpr std::size_t kSize = std::size_t{2} << 20;

  std::span<char> next() {
    WEIR_ASSERT(!is_low());
    return {bytes_.get() + used_, kRead};
  }
  void keep(std::size_t size) {
    WEIR_ASSERT(size <= kSize - used_);
    used_ += size;
  }
  bool is_low() const { return kSize - used_ < kRead; }
  void clear() { used_ = 0; }

 private:
  std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(kSize);  // the kernel adds pages on use
  std::size_t used_ = 0;
};

}  // namespace weir::server::loop
