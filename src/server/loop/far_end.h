// A source of asynchronous answers that the fibers of a loop wait for, such as Redis.
//
// A call suspends its fiber. The loop watches a descriptor. When it is readable, the answers are read and their
// fibers resumed one by one, in the loop's own turn. Before the loop ends, every call in flight fails, and so does
// each later call, so that no fiber is left. Belongs to a loop's thread. Tested by fiber_loop_test.cc.
#pragma once

namespace weir {

class FarEnd {
 public:
  virtual ~FarEnd() = default;

  // Becomes readable when there are answers; it stays the same descriptor.
  virtual int descriptor() const = 0;
  // Resumes the fibers whose answers have come.
  virtual void on_readable() = 0;
  // The loop is about to wait: send the requests of this turn.
  virtual void send() {}
  // Fails every call, now and from now on. When it returns, all waiting fibers were resumed.
  virtual void abandon() = 0;

 protected:
  FarEnd() = default;
  FarEnd(const FarEnd&) = default;
  FarEnd& operator=(const FarEnd&) = default;
};

}  // namespace weir
