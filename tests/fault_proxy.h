// A small TCP proxy for tests of faults. It runs in front of a server on loopback and delays, stalls, drops, splits,
// cuts or refuses connections. A test can change the faults at any time.
//
//   auto proxy = FaultProxy::start(redis.port()).value();
//   Node node("redis://" + proxy->address());
//   proxy->set({.replies = {.delay = Micros{100'000}}});    // from now on
//   proxy->set({});                                         // no faults any more
//
// Bytes keep their order: a delay also delays what follows. The proxy has its own thread; any thread may call it.
// fleet_faults_test.cc tests it.
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

// What happens to the bytes of one direction.
struct Stream {
  Micros delay{0};
  Micros jitter{0};                   // a random delay is added, up to this
  std::uint32_t slow_one_in = 0;      // on average, one of this many pieces is slow; 0: none
  Micros slow{0};                     // what is added to the delay of a slow piece
  std::size_t piece_max = 64 * 1024;  // bytes that are written at once
  bool is_stalled = false;            // bytes wait in the proxy
  bool is_dropped = false;            // bytes are lost, and all later ones of the same connection
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

  // Returns when it is in effect.
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
    base::Descriptor client, server;
    Pipe requests, replies;
    bool is_dead = false;
  };

  FaultProxy() = default;
  void work();
  void accept();
  void read(Link& link, base::Descriptor& from, Pipe& pipe, const Stream& stream);
  void write(Link& link, base::Descriptor& to, Pipe& pipe, const Stream& stream, bool is_request);
  Micros due() const;
  void wake();

  base::Descriptor listener_, wake_;
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
