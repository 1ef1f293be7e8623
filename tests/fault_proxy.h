// A small TCP proxy for tests of faults: it stands before a server of loopback and delays, stalls, drops, chops, cuts
// or refuses, as it is told, while it runs.
//
//   auto proxy = FaultProxy::start(redis.port()).value();
//   Node node("redis://" + proxy->address());
//   proxy->set({.replies = {.delay = Micros{100'000}}});    // from now on
//   proxy->set({});                                         // all is well again
//
// Bytes keep their order, as on any connection: what is delayed delays what follows it. Its thread is its own; all
// calls are for any thread. Tested by what fleet_faults_test.cc sees through it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "redis/backoff.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::test {

// What happens to bytes of one direction.
struct Stream {
  Micros delay{0};
  Micros jitter{0};                   // up to so much more
  std::uint32_t slow_one_in = 0;      // of so many pieces one is late; 0: none
  Micros slow{0};                     // by so much
  std::size_t piece_max = 64 * 1024;  // bytes that are written at once
  bool is_stalled = false;            // nothing moves; it is kept for later
  bool is_dropped = false;            // it vanishes, as all that follows on the same connection
};

struct Weather {
  Stream requests{}, replies{};
  bool is_refusing = false;  // new connections end at once
};

class FaultProxy {
 public:
  static Result<std::unique_ptr<FaultProxy>> start(std::uint16_t to);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // Returns when it holds.
  void set(const Weather& weather);
  // Every connection ends, by a reset.
  void cut();
  // When connections came, refused ones too: by the monotonic clock, oldest first.
  std::vector<Micros> arrivals() const;
  // What was sent on towards the server, in bytes.
  std::uint64_t requested() const { return requested_.load(); }

 private:
  struct Piece {
    std::string bytes;
    Micros due{0};
  };
  struct Pipe {
    std::deque<Piece> pieces;
    std::size_t held = 0;  // bytes in them
    Micros last{0};        // when the newest of them is due
    bool is_ended = false, is_lost = false;
  };
  struct Link {
    Descriptor client, server;
    Pipe requests, replies;
    bool is_dead = false;
  };

  FaultProxy() = default;
  void work();
  void accept();
  void read(Link& link, Descriptor& from, Pipe& pipe, const Stream& stream);
  void write(Link& link, Descriptor& to, Pipe& pipe, const Stream& stream, bool is_request);
  Micros due() const;
  void wake();

  Descriptor listener_, wake_;
  std::uint16_t port_ = 0, to_ = 0;
  Weather weather_;  // the thread's own
  std::list<Link> links_;
  redis::Dice dice_{1};
  std::atomic<std::uint64_t> requested_{0};

  mutable std::mutex mutex_;  // guards what follows
  Weather told_;
  std::uint64_t told_times_ = 0, taken_times_ = 0;
  bool is_cut_ = false, is_ending_ = false;
  std::vector<Micros> arrivals_;

  std::thread thread_;
};

}  // namespace weir::test
