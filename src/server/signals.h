// Signals as numbers that one thread waits for, with an end to the waiting and other descriptors beside them.
//
// The handler only writes a byte into a pipe. One of these at a time in a process; tell() is for any thread, the rest
// belongs to the one that waits. Tested by tests/server/lifecycle.sh.
#pragma once

#include <atomic>
#include <initializer_list>

#include "server/descriptor.h"
#include "weir/clock.h"

namespace weir {

class Signals {
 public:
  // What next() says beside the signals and what was told.
  static constexpr int kTimeIsOver = -1;
  static constexpr int kOther = -2;  // there is something to read from the other descriptor

  Signals() = default;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() { write_end = -1; }  // what comes later is told to nobody

  // False, and errno, if the kernel refuses.
  bool open(std::initializer_list<int> signals);

  // As if the signal had come; 0 and other numbers that are none have the meaning that the reader gives them.
  static void tell(int signal);

  // Waits for the next one, `for_us` at most. `other` may be -1: there is none.
  int next(Micros for_us, int other) const;

 private:
  static inline std::atomic<int> write_end{-1};
  Descriptor out_, in_;
};

}  // namespace weir
