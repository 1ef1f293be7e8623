// Whether a loop has more to answer than it can answer in time, and which requests it then answers without looking.
//
// A turn reads every connection that has something to say, so how long it takes is how long others wait. A long turn
// alone is nothing: a machine stalls, a client sends ten thousand checks. But when each turn has been longer than the
// bound for a while, without a rest between them, there is a queue that does not end: from then on a turn decides only
// for half of the bound, and what comes up later in it is shed at once; who comes first changes from turn to turn. That
// ends when nothing had to be shed for a second. Nothing here reads a clock; one thread. Tested by overload_test.cc and
// tests/server/overload_long.sh.
#pragma once

#include "weir/clock.h"

namespace weir {

class Overload {
 public:
  static constexpr Micros kBehind{100'000};  // for so long, and
  static constexpr int kTurnsBehind = 3;     // for so many turns
  static constexpr Micros kCalm{1'000'000};

  // `most`: what a turn may take; 0 is any time.
  explicit Overload(Micros most) : most_(most) {}

  void begin_turn(Micros now) {
    if (now - ended_ > most_) turns_ = 0;  // it has waited for something to do
    begun_ = now;
  }

  // Of what comes up in this turn now. Ask only if is_on(): that costs no clock.
  bool sheds(Micros now) {
    if (!is_on_ || now - begun_ <= most_ / 2) return false;
    shed_ = now;
    return true;
  }
  bool is_on() const { return is_on_; }

  void end_turn(Micros now) {
    ended_ = now;
    if (is_on_) {
      if (now - shed_ > kCalm) is_on_ = false;
      turns_ = 0;
      return;
    }
    if (most_ == Micros{0} || now - begun_ <= most_) {
      turns_ = 0;
      return;
    }
    if (turns_++ == 0) behind_ = begun_;
    if (turns_ < kTurnsBehind || now - behind_ < kBehind) return;
    is_on_ = true;
    shed_ = now;
  }

 private:
  Micros most_;
  Micros begun_{0}, ended_{0};  // of a turn
  Micros behind_{0};            // when the first of `turns_` began
  Micros shed_{0};              // when something was last shed
  int turns_ = 0;               // that were too long, in a row
  bool is_on_ = false;
};

}  // namespace weir
