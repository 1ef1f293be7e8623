// When requests are due in an open loop.
//
// Bursts of `burst` requests are due at even intervals, on the connections in turn. The time of a request counts from
// when it is due, even if the server stalls or the generator is late. So a stall cannot hide waiting time (this
// avoids coordinated omission). It uses integers only, and no sum that drifts. Pure; any thread. Tested by
// schedule_test.cc.
#pragma once

#include <cstdint>

#include "load_generator/keys.h"

namespace weir::load_generator {

class Schedule {
 public:
  struct Terms {
    std::uint64_t rate = 1;  // requests per second
    std::uint64_t burst = 1;
    std::uint64_t connections = 1;
    std::int64_t start_ns = 0;
  };

  explicit Schedule(const Terms& terms) : terms_(terms) {}

  // When burst n, counted over all connections, is due; it belongs to connection n % connections.
  std::int64_t burst_due_ns(std::uint64_t n) const {
    const auto wide = static_cast<Wide>(n) * terms_.burst * 1'000'000'000;
    return terms_.start_ns + static_cast<std::int64_t>(wide / terms_.rate);
  }

  // When request n of one connection is due, both counted from 0.
  std::int64_t due_ns(std::uint64_t connection, std::uint64_t n) const {
    return burst_due_ns(n / terms_.burst * terms_.connections + connection);
  }

  std::uint64_t burst() const { return terms_.burst; }
  std::uint64_t connection_of(std::uint64_t n) const { return n % terms_.connections; }

 private:
  Terms terms_;
};

}  // namespace weir::load_generator
