// A door of the server, as the differential tests ask through it: bytes to a session, bytes back, one key.
//
// Each speaks its protocol by hand, so that a slip in our own encoders is not repeated here, and reads the answer back
// into a Decision. What a protocol cannot tell (parts of a millisecond, a delay) is cut from the library's answer by
// told() before the two are compared. One thread. Used by doors_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weir/clock.h"
#include "weir/limiter.h"
#include "weir/quota.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::test {

class Door {
 public:
  virtual ~Door() = default;
  virtual std::string_view name() const = 0;
  virtual bool has(Algorithm algorithm) const = 0;  // whether it can ask for such limits

  // The quota rules from the next request on; what was spent stays spent.
  virtual void change(const Quota& quota) = 0;
  virtual Result<Decision> check(std::int64_t cost) = 0;
  virtual Result<Decision> acquire(std::string_view, std::int64_t) { return fail(ErrorCode::unavailable, "no"); }
  virtual Result<bool> release(std::string_view) { return fail(ErrorCode::unavailable, "no"); }

  // What an answer through this door tells of a decision.
  virtual Decision told(const Decision& decision, std::int64_t cost) const = 0;
};

// Each has a limiter of its own, on this clock.
std::unique_ptr<Door> http_door(std::shared_ptr<const Clock> clock);
std::unique_ptr<Door> resp_door(std::shared_ptr<const Clock> clock);
std::unique_ptr<Door> grpc_door(std::shared_ptr<const Clock> clock);

}  // namespace weir::test
