// What a run has come to: checks, how long each took, what they cost Redis; and the middle of several runs.
//
// Plain values; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weir/clock.h"

namespace weir::bench {

// Every single time, in nanoseconds.
class Times {
 public:
  void add(std::chrono::nanoseconds time) {
    all_.push_back(static_cast<std::uint32_t>(std::clamp<std::int64_t>(time.count(), 0, UINT32_MAX)));
  }
  std::size_t count() const { return all_.size(); }
  double quantile_ns(double part) {
    if (all_.empty()) return 0;
    const auto place = static_cast<std::size_t>(part * static_cast<double>(all_.size() - 1));
    std::ranges::nth_element(all_, all_.begin() + static_cast<std::ptrdiff_t>(place));
    return all_[place];
  }

 private:
  std::vector<std::uint32_t> all_;
};

struct Figures {
  double checks_per_second = 0;  // without those that Redis had no part in
  double redis_us = 0;           // processor time of a check
  double p50_us = 0, p99_us = 0;
  double per_call = 0;                          // checks that Redis was asked for at once; of ours only
  double strict = 0, cached = 0, fallback = 0;  // parts of all; of ours only
};

// The middle of each figure over all rounds.
inline Figures median_of(std::vector<Figures> rounds) {
  Figures middle;
  for (double Figures::*const field :
       {&Figures::checks_per_second, &Figures::redis_us, &Figures::p50_us, &Figures::p99_us, &Figures::per_call,
        &Figures::strict, &Figures::cached, &Figures::fallback}) {
    std::ranges::sort(rounds, {}, field);
    if (!rounds.empty()) middle.*field = rounds[rounds.size() / 2].*field;
  }
  return middle;
}

}  // namespace weir::bench
