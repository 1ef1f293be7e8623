// A listener of the server for the differential tests: it sends bytes to a session and reads the bytes of the answer,
// for one key.
//
// Each writes its protocol by hand, so an error in our own encoders is not repeated here, and reads the answer into a
// Decision. as_answered() removes from the library's answer what a protocol cannot say (parts of a millisecond, a
// delay) before the two are compared. One thread. Used by listeners_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "weir/clock.h"
#include "weir/limiter.h"
#include "weir/quota.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::test {

class Listener {
 public:
  virtual ~Listener() = default;
  virtual std::string_view name() const = 0;
  virtual bool has(Algorithm algorithm) const = 0;  // whether its protocol has such limits

  // The quota applies from the next request on; what was used stays used.
  virtual void change(const Quota& quota) = 0;
  virtual Result<Decision> check(std::int64_t cost) = 0;
  virtual Result<Decision> acquire(std::string_view, std::int64_t) { return fail(ErrorCode::unavailable, "no"); }
  virtual Result<bool> release(std::string_view) { return fail(ErrorCode::unavailable, "no"); }

  // A decision as an answer of this protocol states it.
  virtual Decision as_answered(const Decision& decision, std::int64_t cost) const = 0;
};

// The limiter of the library and of each listener. There is one key, so the table is small and needs no sweeping.
inline LimiterOptions options_of(std::shared_ptr<const Clock> clock) {
  return {.clock = std::move(clock), .keys = 100, .log_bytes = 4 << 20, .sweeping = Sweeping::by_hand};
}

// Each has a limiter of its own, on this clock.
std::unique_ptr<Listener> http_listener(std::shared_ptr<const Clock> clock);
std::unique_ptr<Listener> resp_listener(std::shared_ptr<const Clock> clock);
std::unique_ptr<Listener> grpc_listener(std::shared_ptr<const Clock> clock);

}  // namespace weir::test
