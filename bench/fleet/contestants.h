// Who is held against whom: Weir's store as a loop of a server drives it, and clients of Redis as people write them.
//
// All have the same client underneath, one connection, and the same number of checks in flight. The thread that runs
// one does nothing else, and waits when there is nothing to do. One thread.
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

// How much of what is asked.
struct Load {
  KeyOrder& keys;
  const Limit& limit;
  double seconds = 1;
  std::size_t in_flight = 256;
  std::size_t checks = 0;  // if not 0, as many instead, however long they take
};

// A limiter, shared by Redis or not, whose calls wait on fibers.
class Weir {
 public:
  Weir(const redis::Target& target, std::size_t keys, Micros deadline = LaneOptions{}.deadline);
  explicit Weir(std::size_t keys);  // in memory only
  ~Weir();

  // Checks one behind the other, so many at a time.
  Figures run(const Load& load);
  // So many a second, whether they are answered or not; times are from when each was due. No check waits for a place
  // in flight.
  Figures run_at(const Load& load, double rate);
  // Until there is another node.
  void wait_until_two();
  // Until Redis has every charge that was made without it; in seconds.
  double wait_until_synced();
  // Until Redis decides; until nobody asks it.
  void wait_until_strict(const Limit& limit);
  void wait_until_fallback(const Limit& limit);
  Limiter& limiter() { return *limiter_; }
  // Runs it on a fiber, to its end.
  void on_fiber(const std::function<void()>& work);

 private:
  class Counting;
  LaneCounts counts() const;
  void turn(int wait_ms);
  void wait_until(DecidedBy decided_by, const Limit& limit);

  std::shared_ptr<FleetStore> store_;
  std::unique_ptr<Limiter> limiter_;
  Fibers fibers_;
  std::unique_ptr<LoopWay> way_;
};

// One call a check.
class PlainClient : private redis::Receiver {
 public:
  enum class Kind { gcra, incr };
  PlainClient(const redis::Target& target, Kind kind);

  Figures run(const Load& load);

 private:
  struct Check {
    KeyOrder::Room room;
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
  std::size_t under_way_ = 0;
  std::size_t faults_ = 0;
  redis::Client client_;  // the last: it answers when it ends
  int script_ = redis::kNoScript;
};

}  // namespace weir::bench
