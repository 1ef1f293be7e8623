// What a loop counts of each of its doors, for whoever looks after the server.
//
// One thread writes, any may read: a number may be a moment old, never torn. Names of metrics are in metrics.cc.
// Tested by counts_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir {

// Counted up by one thread, read by any.
class Count {
 public:
  void add(std::uint64_t n = 1) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// How long something took, in buckets whose upper ends are in kEnds, in microseconds; the last has no end.
class Times {
 public:
  static constexpr std::array<std::int64_t, 14> kEnds = {10,    25,    50,     100,    250,     500,     1'000,
                                                         2'500, 5'000, 10'000, 25'000, 100'000, 500'000, 1'000'000};

  void add(std::int64_t us, std::uint64_t times = 1) {
    std::size_t i = 0;
    while (i < kEnds.size() && us > kEnds[i]) ++i;
    counts_[i].add(times);
    sum_us_.add(static_cast<std::uint64_t>(us < 0 ? 0 : us) * times);
  }
  std::uint64_t count(std::size_t bucket) const { return counts_[bucket].get(); }
  std::uint64_t sum_us() const { return sum_us_.get(); }

 private:
  std::array<Count, kEnds.size() + 1> counts_{};
  Count sum_us_{};
};

// Why a client was refused something, or cut off: each is a bound that an operator can set.
enum class Refused : std::uint8_t {
  connections,  // as many as may be are open
  buffers,      // all connections together hold as much as they may
  slow,         // a request was begun and not finished in time
  unread,       // it does not take its answers
  header,       // larger than may be
  body,
  key,
  pipeline,   // a connection's own bound of what waits
  streams,    // HTTP/2: streams or resets
  malformed,  // not the protocol of this door
  proxy,      // no PROXY header, or not from whom it is taken
  tls,        // no handshake, or no certificate that is known
  overload,   // shed: the loop has more than it can answer in time
  token,      // the admin port's is missing or wrong
  password,   // of a Redis client, wrong
  origin,     // a web page, of an origin that was not allowed
};
inline constexpr std::size_t kRefusals = 16;

struct DoorCounts {
  Count accepted{};
  Count requests{};
  Count bytes_in{};
  Count bytes_out{};
  Times seconds{};  // from the reading of a request to the writing of its answer, what is held back apart
  std::array<Count, kRefusals> refused{};

  void refuse(Refused why, std::uint64_t n = 1) { refused[static_cast<std::size_t>(why)].add(n); }
};

inline constexpr std::size_t kDoors = 4;
enum class DoorName : std::uint8_t { http, grpc, resp, admin };
inline constexpr std::array<std::string_view, kDoors> kDoorNames = {"http", "grpc", "resp", "admin"};

// What one loop counts.
struct LoopCounts {
  std::array<DoorCounts, kDoors> doors{};
  Count turns{};
  Count ticks{};  // seconds that it has lived through: one that stands still hangs
};

}  // namespace weir
