// The parts of bench_core. Each measures and adds its rows to the report. core.cc calls them in turn.
//
// Memory is first: it forks, and a fork needs a process that is still small and has one thread.
#pragma once

#include <cstddef>

#include "kit/report.h"

namespace weir::bench {

struct Scale {
  std::size_t keys = 10'000'000;
  std::size_t cold_checks = 400'000;   // of a round
  std::size_t hot_checks = 2'000'000;  // of a round
  int rounds = 7;
};

void measure_memory(Report& report, const Scale& scale);
void measure_hot(Report& report, const Scale& scale);
void measure_one_key(Report& report, const Scale& scale);
void measure_cold(Report& report, const Scale& scale);
void measure_new_limits(Report& report, const Scale& scale);
void measure_steps(Report& report, const Scale& scale);

}  // namespace weir::bench
