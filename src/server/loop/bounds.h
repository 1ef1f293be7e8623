// Bounds on everything that clients send, and on the memory that they make the server use. Each has a safe default.
//
// `weir serve` has a flag for each (serve/serve_flags.h); docs/operate.md lists them in a table. A client that
// exceeds a bound receives an error, and the server counts it under the reason that the table names. Plain values;
// any thread. Tested by bounds_test.cc and tests/server/bounds_table.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/grpc_message.h"
#include "protocol/http1.h"
#include "resp/request.h"
#include "server/loop/counts.h"
#include "weir/verdict.h"

namespace weir::server::loop {

// A session whose output has reached this size stops. It continues when it is called again.
inline constexpr std::size_t kOutputMax = std::size_t{1} << 20;

inline constexpr std::size_t kChecksMax = 10'000;   // in one call
inline constexpr std::size_t kChecksBodyTimes = 4;  // how much larger the body of a batch of checks may be
inline constexpr std::size_t kHoldsMax = 10'000;    // answers that one loop delays at once

// The answer to a request that the server has no time to decide.
enum class OnOverload : std::uint8_t { deny, allow };

// How many seconds a connection may stay in a phase; 0: no limit.
struct Timeouts {
  std::uint32_t idle = 0;
  std::uint32_t header = 10;
  std::uint32_t body = 60;
};

// HTTP/2, and how much a client may send that is not a call.
struct GrpcBounds {
  std::uint32_t calls_max = 100;  // concurrent calls of one connection
  // When a machine stalls, a gateway with a 20 ms time-out resets all its calls. That must not end its connection. A
  // client that resets far more calls than a server can receive does lose its connection.
  std::uint64_t resets_per_second = 10'000;
  // PING, SETTINGS, WINDOW_UPDATE and other frames that carry no request, beyond a few for each call.
  std::uint64_t frames_per_second = 1'000;
};

struct Bounds {
  std::size_t output_max = kOutputMax;  // per connection: beyond it reading stops; a client that never reads is cut off
  Timeouts timeouts{.idle = 60};        // idle is for HTTP only: pools and gateways keep other connections for days
  std::uint32_t write_seconds = 10;     // in this time a client must read some of its answers
  protocol::HttpBounds http{};
  std::size_t body_max = protocol::kGrpcMessageMax;  // of a request body, a RESP bulk, a gRPC message
  std::size_t checks_max = kChecksMax;
  std::size_t key_max = kKeyBytesMax;
  std::size_t holds_max = kHoldsMax;
  std::size_t resp_args_max = weir::resp::kArgsMax;
  std::size_t resp_line_max = weir::resp::kLineMax;
  GrpcBounds grpc{};
  Micros shed_after{20'000};  // turns longer than this, for a while, are overload; 0: never
  OnOverload on_overload = OnOverload::deny;

  std::size_t checks_body_max() const { return kChecksBodyTimes * body_max; }
  Timeouts http_timeouts() const { return timeouts; }
  Timeouts other_timeouts() const { return {.header = timeouts.header, .body = timeouts.body}; }
  weir::resp::RequestBounds resp() const { return {resp_args_max, body_max, resp_line_max}; }
};

// The bounds of one listener's sessions, and the counters of what they refuse.
struct ListenerBounds : Bounds {
  ListenerCounts* counts = nullptr;  // null: refusals are not counted

  void refuse(Refused why) const {
    if (counts != nullptr) counts->refuse(why);
  }

  // For a key that a client has sent; refuse_key() gives the error text.
  bool takes_key(std::string_view key) const { return key.size() <= key_max; }
};

}  // namespace weir::server::loop
