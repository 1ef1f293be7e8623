// Limits that several processes share through Redis: how to make your own service a node of a fleet.
//
//   auto fleet = weir::open_fleet({.url = "redis://redis.internal"});
//   if (!fleet) return report(fleet.error().message);
//   weir::Limiter limiter({.shared = fleet->store()});
//   auto decision = limiter.check("user:42", limit);    // waits for Redis, 15 ms at most
//
//   weir::AsyncLimiter async(limiter, *fleet);          // or does not wait
//   async.check(charges, [](weir::Result<weir::Verdict> verdict) { ... });
//
// Link the separate library weir::fleet: it needs OpenSSL, which the core does not. Open a fleet after a fork, not
// before. Any thread may call any member at any time, except turn() and destructors. Tested by
// tests/fleet_embed_test.cc; the guide is docs/embed.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/limiter.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::fleet {
class FleetStore;
}  // namespace weir::fleet

namespace weir {

struct FleetOptions {
  std::string url{};                            // of Redis; docs/fleet.md lists the forms
  std::string prefix = "weir:";                 // of the names of all keys; the same on every node
  Micros deadline{15'000};                      // the longest that a decision waits for Redis
  std::size_t remembered_keys = 65'536;         // keys whose last reply is remembered; 48 bytes each
  std::string label{};                          // announced to the other nodes, such as a name; 200 bytes at most
  std::function<void(std::string_view)> log{};  // connection events; called by threads of the fleet
};

// Totals since the fleet was opened.
struct FleetStats {
  std::uint64_t strict = 0;          // verdicts by Redis
  std::uint64_t cached = 0;          // denials known from an earlier reply of Redis
  std::uint64_t fallback = 0;        // verdicts by the fallback: Redis did not answer in time
  std::uint64_t refunds = 0;         // in a cluster: charges of denied requests that were refunded
  std::uint64_t failed_refunds = 0;  // refunds that failed: such a charge stays until it expires
  std::uint64_t synced_permits = 0;  // permits that fallbacks admitted and that were later charged in Redis
};

class Fleet {
 public:
  // A live node, as of its last heartbeat.
  struct Node {
    std::string id{};
    std::string label{};
    Micros age{0};  // since that heartbeat
    bool is_self = false;
  };

  // For LimiterOptions::shared. One limiter may use it at a time.
  std::shared_ptr<store::Store> store() const;

  // Whether decisions come from Redis now: Redis answered the last heartbeat, and no circuit breaker is open.
  bool is_strict() const noexcept;
  // wait_until_strict()
  //
  // Blocks until is_strict(), but no longer than `most`. For the start of a service: until the first connection is
  // established, the fallback decides, and until the first heartbeat is answered, this node does not know what others
  // have not written back to Redis yet. Returns false if the time runs out first.
  bool wait_until_strict(Micros most) const noexcept;

  FleetStats stats() const noexcept;
  // Sorted by id; empty before the first heartbeat.
  std::vector<Node> nodes() const;

 private:
  friend class AsyncLimiter;
  friend Result<Fleet> open_fleet(FleetOptions options) noexcept;
  explicit Fleet(std::shared_ptr<fleet::FleetStore> store) : store_(std::move(store)) {}
  std::shared_ptr<fleet::FleetStore> store_;
};

// open_fleet()
//
// Starts connecting and does not wait: an unavailable Redis is no error. Fails if the URL is invalid, a file that it
// names is unusable, an option is out of bounds, or memory or threads run out.
Result<Fleet> open_fleet(FleetOptions options) noexcept;

// What drives an AsyncLimiter: its own thread, or the caller by calling turn().
enum class Driving : std::uint8_t { by_thread, by_hand };

struct AsyncOptions {
  Driving driving = Driving::by_thread;
  std::size_t in_flight_max = 10'000;  // calls of check() and run() in flight at once
};

// A limiter of a fleet that does not block its caller. Make it after the limiter, so that it is destroyed first: the
// destructor returns once every check in flight is answered. Checks made together go to Redis together.
class AsyncLimiter {
 public:
  // Aborts the program if there is no memory or no thread.
  AsyncLimiter(Limiter& limiter, const Fleet& fleet, const AsyncOptions& options = {}) noexcept;
  ~AsyncLimiter();
  AsyncLimiter(const AsyncLimiter&) = delete;
  AsyncLimiter& operator=(const AsyncLimiter&) = delete;

  // Never empty. It must not throw, destroy this object or block: the same thread serves other checks.
  using Callback = std::function<void(Result<Verdict>)>;
  using Function = std::function<void()>;

  // check()
  //
  // Like Limiter::check_all(). Copies everything that the charges refer to. The callback runs exactly once. If
  // `in_flight_max` calls are in flight, or memory runs out, it runs within this call, with an error. Otherwise it runs
  // within turn(): on the thread that calls turn(), or with Driving::by_thread on this object's own.
  void check(std::span<const Charge> charges, Callback callback) noexcept;

  // run()
  //
  // Runs other work the same way. `work` may call the limiter, or a gate on it, any number of times. Whenever a call
  // waits for Redis, other work continues. `work` runs on a small stack (128 KiB), so it should do little else.
  // `done` runs afterwards, on the thread's own stack. Returns false, and calls neither, if `in_flight_max` calls are
  // in flight or memory runs out. Inside `work`, wait() returns an error, and wait_async() and cancel_wait() block
  // other work while they wait for Redis.
  bool run(Function work, Function done) noexcept;

  // Calls of check() and run() in flight.
  std::size_t in_flight() const noexcept;

  // turn()
  //
  // With Driving::by_hand, one thread calls this whenever descriptor() is readable. Callbacks run within it.
  int descriptor() const noexcept;
  void turn() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir
