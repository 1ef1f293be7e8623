// The figures of a run, and the median of several runs.
//
// Plain values; one thread.
#pragma once

#include <algorithm>
#include <vector>

#include "kit/rounds.h"

namespace weir::bench {

struct Figures {
  double checks_per_second = 0;  // without those that the fallback decided or that were refused
  double redis_us = 0;           // processor time of Redis per check
  double p50_us = 0, p99_us = 0;
  double per_call = 0;              // checks per call of Redis; only of Weir
  double cached = 0, fallback = 0;  // shares of all checks; only of Weir
};

// The median of each figure over all rounds.
inline Figures median_of(std::vector<Figures> rounds) {
  Figures out;
  for (double Figures::*const field : {&Figures::checks_per_second, &Figures::redis_us, &Figures::p50_us,
                                       &Figures::p99_us, &Figures::per_call, &Figures::cached, &Figures::fallback}) {
    std::ranges::sort(rounds, {}, field);
    if (!rounds.empty()) out.*field = rounds[rounds.size() / 2].*field;
  }
  return out;
}

}  // namespace weir::bench
