// Where the answers come from that the fibers of a loop wait for, as the loop sees it.
//
// A call suspends its fiber; the loop watches a descriptor, and when there is something to read the answers are taken
// and their fibers resumed, one after the other, in the loop's own turn. Before the loop ends every call that is still
// under way fails, and so does each that comes later: then no fiber is left. Belongs to a loop's thread. Tested by
// fiber_loop_test.cc.
#pragma once

namespace weir {

class FarEnd {
 public:
  virtual ~FarEnd() = default;

  // What becomes readable when there are answers; it stays the same.
  virtual int descriptor() const = 0;
  // Resumes whoever was waiting for what has come.
  virtual void on_readable() = 0;
  // The loop is about to wait: what was asked in this turn goes out.
  virtual void send() {}
  // Every call fails, now and from now on. All fibers that waited were resumed when it returns.
  virtual void abandon() = 0;

 protected:
  FarEnd() = default;
  FarEnd(const FarEnd&) = default;
  FarEnd& operator=(const FarEnd&) = default;
};

}  // namespace weir
