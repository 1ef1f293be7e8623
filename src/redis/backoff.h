// The wait before a reconnect: a random time up to a step that doubles each time. The randomness keeps many clients
// that lost the same server from reconnecting together. Also the random generator for it.
//
// One thread may use an object. Tested by backoff_test.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "weir/clock.h"

namespace weir::redis {

// A small and fast random generator (splitmix64), for spreading load, not for secrets.
class Dice {
 public:
  // A seed of 0 means: seed from the system.
  explicit Dice(std::uint64_t seed) : state_(seed) {
    if (seed != 0) return;
    std::random_device random;
    state_ = (std::uint64_t{random()} << 32) | random();
  }
  std::uint64_t roll() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(roll() % end); }
  Micros between(Micros low, Micros high) {
    return low + Micros{static_cast<std::int64_t>(roll() % static_cast<std::uint64_t>((high - low).count() + 1))};
  }

 private:
  std::uint64_t state_;
};

class Backoff {
 public:
  Backoff(Micros first, Micros most) : first_(first), most_(most), step_(first) {}

  Micros next(Dice& dice) {
    const Micros wait = dice.between(Micros{0}, step_);
    step_ = std::min(step_ * 2, most_);
    return wait;
  }
  void reset() { step_ = first_; }

 private:
  const Micros first_, most_;
  Micros step_;
};

}  // namespace weir::redis
