// When to notify the watchdog: at half of its period, and only while every loop makes progress.
//
// Loops count seconds (LoopCounts::ticks). A loop that has counted none for kStillMax hangs, and the watchdog gets no
// notification until the loop moves again. Pure, one thread. Tested by heartbeat_test.cc and tests/server/systemd.sh.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weir/clock.h"
#include "weir/verdict.h"

namespace weir::server::life {

class Heartbeat {
 public:
  static constexpr Micros kLook{1'000'000};
  static constexpr Micros kStillMax{3'000'000};

  // `period` is the watchdog's period; 0: there is no watchdog.
  Heartbeat(Micros period, std::size_t loops) : half_(period / 2), loops_(loops) {}

  // When to call look() next.
  Micros due() const { return half_ > Micros{0} ? due_ : kNever; }

  // Whether to notify the watchdog now.
  bool look(Micros now, std::span<const std::uint64_t> ticks) {
    if (now < due()) return false;
    due_ = now + std::min(half_, kLook);
    bool all_move = true;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if (ticks[i] != loops_[i].ticks || notified_ == Micros{0}) loops_[i] = {ticks[i], now};
      all_move = all_move && now - loops_[i].since < kStillMax;
    }
    if (!all_move || (notified_ != Micros{0} && now - notified_ < half_)) return false;
    notified_ = now;
    return true;
  }

 private:
  struct Seen {
    std::uint64_t ticks = 0;
    Micros since{0};  // when this number of ticks was first seen
  };

  Micros half_;
  Micros due_{0};
  Micros notified_{0};  // 0: never
  std::vector<Seen> loops_;
};

}  // namespace weir::server::life
