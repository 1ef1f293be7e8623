// Limits that several processes hold together, by a Redis: how a service of your own becomes a node of a fleet.
//
//   auto fleet = weir::open_fleet({.url = "redis://redis.internal"});
//   if (!fleet) return report(fleet.error().message);
//   weir::Limiter limiter({.shared = fleet->store()});
//   auto decision = limiter.check("user:42", limit);    // waits for Redis, 15 ms at most
//
//   weir::AsyncLimiter async(limiter, *fleet);          // or does not wait
//   async.check(charges, [](weir::Result<weir::Verdict> verdict) { ... });
//
// It is a component of its own, weir::fleet, since it needs OpenSSL. All members may be called from any thread at once,
// but for turn() and destructors. Open it after a fork. Tested by tests/fleet_embed_test.cc; docs/embed.md is the
// guide.
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

namespace weir {

class FleetStore;

struct FleetOptions {
  std::string url{};                            // of Redis, as docs/fleet.md has it
  std::string prefix = "weir:";                 // of the names of all keys; the same on every node
  Micros deadline{15'000};                      // so long a decision waits for Redis
  std::size_t remembered_keys = 65'536;         // of which is known what Redis said last: 48 bytes each
  std::string says{};                           // what this node tells the others of itself, such as a name; 200 bytes
  std::function<void(std::string_view)> log{};  // connections, made, lost, refused; called by threads of the fleet
};

// What happened, in all.
struct FleetStats {
  std::uint64_t strict = 0;     // verdicts by Redis
  std::uint64_t cached = 0;     // denials by what Redis said before
  std::uint64_t fallen = 0;     // verdicts by the fallback, since Redis did not answer in time
  std::uint64_t released = 0;   // of a cluster: charges of denied requests that were taken back
  std::uint64_t stuck = 0;      // of those, that could not be: they lapse
  std::uint64_t paid_back = 0;  // permits that fallbacks let through, charged in Redis since
};

class Fleet {
 public:
  // A node that lives, as it was last heard of.
  struct Node {
    std::string id{};
    std::string says{};
    Micros age{0};  // since it was
    bool is_self = false;
  };

  // For LimiterOptions::shared, of one limiter at a time.
  std::shared_ptr<SharedStore> store() const;

  // Whether Redis is asked now: it answered the last heartbeat, and nothing speaks against it since.
  bool is_strict() const noexcept;
  // wait_until_strict()
  //
  // Blocks, but no longer than this. For the start of a service: what is asked before the first connection stands is
  // answered by the fallback. False: it is not.
  bool wait_until_strict(Micros most) const noexcept;

  FleetStats stats() const noexcept;
  // By their ids; none before the first heartbeat.
  std::vector<Node> nodes() const;

 private:
  friend class AsyncLimiter;
  friend Result<Fleet> open_fleet(FleetOptions options) noexcept;
  explicit Fleet(std::shared_ptr<FleetStore> store) : store_(std::move(store)) {}
  std::shared_ptr<FleetStore> store_;
};

// open_fleet()
//
// Begins to connect, and does not wait for it: a Redis that is away is no error. Refused is an address that cannot be
// one, and what is beyond a bound.
Result<Fleet> open_fleet(FleetOptions options) noexcept;

// Who looks after an AsyncLimiter: a thread of its own, or the caller, by turn().
enum class Driving : std::uint8_t { by_thread, by_hand };

struct AsyncOptions {
  Driving driving = Driving::by_thread;
  std::size_t most = 10'000;  // under way at once
};

// A limiter of a fleet, asked without waiting. Make it after the limiter, so that it ends before: the destructor
// returns when all that is under way has been answered. What is asked together goes to Redis together.
class AsyncLimiter {
 public:
  // Without memory for it, or a thread, the program ends.
  AsyncLimiter(Limiter& limiter, const Fleet& fleet, const AsyncOptions& options = {}) noexcept;
  ~AsyncLimiter();
  AsyncLimiter(const AsyncLimiter&) = delete;
  AsyncLimiter& operator=(const AsyncLimiter&) = delete;

  // Never empty. Must not throw, nor destroy this, and is not the place to block: others are served by the same thread.
  using Callback = std::function<void(Result<Verdict>)>;
  using Function = std::function<void()>;

  // check()
  //
  // As Limiter::check_all(). All that the charges speak of is copied. The callback is made exactly once: within this
  // call, with an error, if as many as may be are under way; else by turn(), or the thread that calls that.
  void check(std::span<const Charge> charges, Callback callback) noexcept;

  // run()
  //
  // The same for whatever else there is: `work` asks the limiter, or a gate on it, as often as it likes, and whenever
  // that waits for Redis, others go on. It runs on a small stack (128 KiB), so it asks and no more; `done` is called
  // afterwards, on the thread's own. False, and neither is called, if as many as may be are under way. Of those who
  // wait for permits: wait() is an error there, and wait_async() and cancel_wait() let the others wait for Redis, too.
  bool run(Function work, Function done) noexcept;

  std::size_t under_way() const noexcept;

  // turn()
  //
  // Driving::by_hand: to be called, by one thread, whenever descriptor() is readable. Callbacks are made within it.
  int descriptor() const noexcept;
  void turn() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir
