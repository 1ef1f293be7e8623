// Detects that a loop has more requests than it can answer in time, and selects those to answer without a decision.
//
// A turn reads every connection with input, so its length is how long clients wait. One long turn means nothing: a
// machine stalls, or a client sends ten thousand checks. But if each turn exceeds the bound for a while, without a
// pause between them, there is a queue that does not drain. From then on a turn decides requests for half of the
// bound only, and sheds the rest at once. Which connection is first changes from turn to turn. Overload ends when
// nothing had to be shed for a second. Nothing here reads a clock; one thread. Tested by overload_test.cc and
// tests/server/overload_long.sh.
#pragma once

#include <string_view>

#include "weir/clock.h"

namespace weir::server::loop {

// The answer to a request that was shed, on every port.
inline constexpr std::string_view kOverloaded = "server overloaded; request not evaluated; retry shortly";
inline constexpr std::string_view kOverloadRetrySeconds = "1";
inline constexpr Micros kOverloadRetry{1'000'000};

class Overload {
 public:
  static constexpr Micros kBehind{100'000};  // overload begins after this time, and
  static constexpr int kTurnsBehind = 3;     // after this many turns that were too long
  static constexpr Micros kCalm{1'000'000};

  // `most`: how long a turn may take; 0: any time.
  explicit Overload(Micros most) : most_(most) {}

  void begin_turn(Micros now) {
    if (now - ended_ > most_) turns_ = 0;  // the loop was idle in between
    begun_ = now;
  }

  // Whether to shed the request that the turn reaches now.
  bool sheds(Micros now) {
    WEIR_ASSERT(is_on_);  // look first: that needs no clock
    if (now - begun_ <= most_ / 2) return false;
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
  int turns_ = 0;               // consecutive turns that were too long
  bool is_on_ = false;
};

}  // namespace weir::server::loop
