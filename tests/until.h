// Waits for a condition that other threads, processes or servers make true.
//
// until() looks again every five milliseconds, for a minute unless the test names another bound. It returns false if
// the condition was never true. Any thread.
#pragma once

#include <chrono>
#include <thread>

namespace weir::test {

template <class Test>
bool until(Test test, int ms = 60'000) {
  for (int i = 0; i < ms / 5; ++i) {
    if (test()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return false;
}

}  // namespace weir::test
