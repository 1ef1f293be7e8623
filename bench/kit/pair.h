// Two threads at the same work, each on its core: how much both get done together.
//
// The first, which is the caller, does its quota and then stops the second, so that neither runs alone within the
// measured time. Call from a thread that is held to core 0.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

#include "kit/machine.h"
#include "kit/rounds.h"

namespace weir::bench {

// pair_ns()
//
// Nanoseconds a check when both work at once: one over the sum of their speeds. Each call of `work(thread)`, thread 0
// or 1, makes `step` checks; a step is short beside `checks`, the quota of the first.
template <class Work>
double pair_ns(std::size_t checks, std::size_t step, Work work) {
  std::atomic<bool> ready{false}, go{false}, stop{false};
  double second_ns = 0;
  std::thread second([&] {
    pin_to_core(1);
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
