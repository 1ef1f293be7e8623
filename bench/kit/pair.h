// Two threads with the same work, each on its own core: how fast they are together.
//
// The first thread, which is the caller, does its number of checks and then stops the second, so that neither runs
// alone during the measured time. The caller must be pinned to core 0.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

#include "kit/machine.h"
#include "kit/rounds.h"

namespace weir::bench {

// pair_ns()
//
// Nanoseconds per check while both threads work: one divided by the sum of their speeds. Each call of `work(thread)`,
// with thread 0 or 1, makes `step` checks. The first thread makes `checks` checks, which is many steps.
template <class Work>
double pair_ns(std::size_t checks, std::size_t step, Work work) {
  std::atomic<bool> ready{false}, go{false}, stop{false};
  double second_ns = 0;
  std::thread second([&] {
    pin_to_cores(1, 2);
    ready = true;
    while (!go) {
    }
    std::size_t done = 0;
    const double ns = time_ns([&] {
      do {
        work(1);
        done += step;
      } while (!stop.load(std::memory_order_relaxed));
    });
    second_ns = ns / static_cast<double>(done);
  });
  while (!ready) {
  }
  go = true;
  const double ns = time_ns([&] {
    for (std::size_t done = 0; done < checks; done += step) work(0);
  });
  stop = true;
  second.join();
  const double first_ns = ns / static_cast<double>((checks + step - 1) / step * step);
  return 1 / (1 / first_ns + 1 / second_ns);
}

}  // namespace weir::bench
