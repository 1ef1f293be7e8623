// The contestants of bench_fleet: Weir's store, driven as a loop of the server drives it, and simple clients of Redis.
//
// All use the same Redis client, one connection, and the same number of checks in flight. A contestant has its thread
// for itself, and waits when there is nothing to do. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fiber.h"
#include "fleet/figures.h"
#include "fleet/fleet_store.h"
#include "fleet/keys.h"
#include "fleet/redis.h"
#include "redis/client.h"
#include "weir/limiter.h"

namespace weir::bench {

// The checks of a run.
struct Load {
  KeyOrder& keys;
  const Limit& limit;
  double seconds = 1;
  std::size_t in_flight = 256;
  std::size_t checks = 0;  // if not 0: run for this many checks instead of `seconds`
};

// A limiter with or without Redis, whose calls wait on fibers.
class Weir {
 public:
  Weir(const base::redis::Target& target, std::size_t keys, Micros deadline = fleet::PipelineOptions{}.deadline);
  explicit Weir(std::size_t keys);  // in memory only
  ~Weir();

  // Keeps `in_flight` checks in flight.
  Figures run(const Load& load);
  // Starts `rate` checks per second, whether earlier ones are answered or not. The time of a check counts from when it
  // was due. Ignores `in_flight`.
  Figures run_at(const Load& load, double rate);
  // Waits until the store sees another node.
  void wait_until_two();
  // Waits until Redis has every charge that was made without it. Returns the seconds that this took.
  double wait_until_synced();
  // Waits until Redis decides, or until the fallback decides.
  void wait_until_strict(const Limit& limit);
  void wait_until_fallback(const Limit& limit);
  Limiter& limiter() { return *limiter_; }
  // Runs the work on a fiber and waits for its end.
  void on_fiber(const std::function<void()>& work);

 private:
  class Counting;
  base::PipelineCounts counts() const;
  void turn(int wait_ms);
  void wait_until(DecidedBy decided_by, const Limit& limit);

  std::shared_ptr<fleet::FleetStore> store_;
  std::unique_ptr<Limiter> limiter_;
  base::Fibers fibers_;
  std::unique_ptr<fleet::FiberWaiter> waiter_;
};

// A client with one call per check.
class PlainClient : private redis::Receiver {
 public:
  enum class Kind { gcra, incr };
  PlainClient(const base::redis::Target& target, Kind kind);

  Figures run(const Load& load);

 private:
  struct Check {
    KeyOrder::Buffer buffer;
    std::string name{};
    std::chrono::nanoseconds begun{0};
  };
  void on_reply(std::uint64_t tag, const redis::Reply& reply) override;
  void ask(std::size_t place);

  const Kind kind_;
  KeyOrder* keys_ = nullptr;
  std::string emission_, burst_;
  std::vector<Check> checks_;
  Times times_;
  bool is_ending_ = false;
  std::size_t in_flight_ = 0;
  std::size_t faults_ = 0;
  redis::Client client_;  // the last member: its destructor answers open calls
  int script_ = redis::kNoScript;
};

}  // namespace weir::bench
