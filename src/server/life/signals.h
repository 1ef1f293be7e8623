// Signals as numbers that one thread waits for, together with a time-out and one more descriptor.
//
// The handler only writes a byte into a pipe. There is at most one of these in a process. Any thread may call send();
// the rest belongs to the waiting thread. Tested by tests/server/lifecycle.sh.
#pragma once

#include <atomic>
#include <initializer_list>

#include "base/descriptor.h"
#include "weir/clock.h"

namespace weir::server::life {

class Signals {
 public:
  // Results of next() beside signals and numbers from send().
  static constexpr int kTimeIsOver = -1;
  static constexpr int kOther = -2;  // the other descriptor is readable

  Signals() = default;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() { write_end = -1; }  // later signals and numbers are dropped

  // Returns false with errno if the kernel refuses.
  bool open(std::initializer_list<int> signals);

  // As if the signal had come. The reader defines the meaning of 0 and of other numbers that are not signals.
  static void send(int signal);

  // Waits at most `for_us` for the next number. `other` may be -1: no other descriptor.
  int next(Micros for_us, int other) const;

 private:
  static inline std::atomic<int> write_end{-1};
  base::Descriptor out_, in_;
};

}  // namespace weir::server::life
