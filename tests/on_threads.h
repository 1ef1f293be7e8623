// Runs the same work on several threads at once, for tests.
//
// One thread calls it, and it returns when the work of all threads is done. Used by the tests of the table, the stores
// and the limiter.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace weir::test {

// work(0), work(1), ..., each on a thread of its own.
template <class Count, class Work>
void on_threads(Count count, const Work& work) {
  std::vector<std::thread> threads;
  for (Count i = 0; i < count; ++i) threads.emplace_back(std::cref(work), i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace weir::test
