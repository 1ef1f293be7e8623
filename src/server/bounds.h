// What clients may take of a server: every bound on what comes from outside, each with a safe default.
//
// `weir serve` has a flag for each, in program/bound_options; docs/operate.md has them in a table. Whoever goes beyond
// one is told so, and counted under the reason that the table names. Plain values; any thread. Tested by
// bounds_test.cc and tests/server/bounds_table.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/grpc_message.h"
#include "protocol/http1.h"
#include "resp/request.h"
#include "server/counts.h"
#include "weir/verdict.h"

namespace weir {

// No session adds to output that is already this long: it stops, and goes on when it is called again.
inline constexpr std::size_t kOutputMax = std::size_t{1} << 20;

inline constexpr std::size_t kChecksMax = 10'000;   // of one call
inline constexpr std::size_t kChecksBodyTimes = 4;  // how much larger than others a body of many checks may be
inline constexpr std::size_t kHoldsMax = 10'000;    // answers that a loop holds back at once

// What is answered instead of a decision when there is no time for one.
enum class OnOverload : std::uint8_t { deny, allow };

// How many seconds a connection may stay in a phase; 0 is for ever.
struct Patience {
  std::uint32_t idle = 0;
  std::uint32_t header = 10;
  std::uint32_t body = 60;
};

// HTTP/2, and what a client can make of it that is no call.
struct GrpcBounds {
  std::uint32_t calls_max = 100;  // at once, of a connection
  // A gateway that gives up after 20 ms resets all its calls when a machine stalls, and must not lose its connection
  // for that; who resets much more than a server could ever be asked does.
  std::uint64_t resets_per_second = 10'000;
  // PING, SETTINGS, WINDOW_UPDATE and other frames that ask nothing, beside a few for each call.
  std::uint64_t frames_per_second = 1'000;
};

struct Bounds {
  std::size_t output_max = kOutputMax;  // of one connection: not read on, and cut off if it takes nothing
  Patience patience{.idle = 60};        // idle is HTTP's: pools and gateways keep theirs for days
  std::uint32_t write_seconds = 10;     // in which a client must take something of its answers
  HttpBounds http{};
  std::size_t body_max = kGrpcMessageMax;  // of a request, of a bulk, of a message
  std::size_t checks_max = kChecksMax;
  std::size_t key_max = kKeyBytesMax;
  std::size_t holds_max = kHoldsMax;
  std::size_t resp_args_max = resp::kArgsMax;
  std::size_t resp_line_max = resp::kLineMax;
  GrpcBounds grpc{};
  Micros shed_after{20'000};  // of a loop that is behind; 0: never
  OnOverload on_overload = OnOverload::deny;

  std::size_t checks_body_max() const { return kChecksBodyTimes * body_max; }
  Patience http_patience() const { return patience; }
  Patience other_patience() const { return {.header = patience.header, .body = patience.body}; }
  resp::RequestBounds resp() const { return {resp_args_max, body_max, resp_line_max}; }
};

// What the sessions of a door go by, and where they count whom they refuse.
struct DoorBounds : Bounds {
  DoorCounts* counts = nullptr;  // null: nobody wants to know

  void refuse(Refused why) const {
    if (counts != nullptr) counts->refuse(why);
  }

  // Of a key that a client has sent; refuse_key() has the words.
  bool has_room_for(std::string_view key) const { return key.size() <= key_max; }
};

}  // namespace weir
