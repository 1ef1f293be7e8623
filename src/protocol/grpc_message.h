// The gRPC layer between HTTP/2 and protobuf: message frames, statuses, timeouts, error texts.
//
// A frame is one byte (compressed or not), four bytes of length, and the payload. Frames may arrive in any pieces, or
// several at once. Pure; any thread may call it. Tested by grpc_message_test.cc and fuzz/grpc_message.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/clock.h"

namespace weir::protocol {

enum class GrpcStatus : std::uint8_t {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};

// The value for `grpc-status`; a literal.
std::string_view to_string(GrpcStatus status);

inline constexpr std::size_t kGrpcHeadBytes = 5;
inline constexpr std::size_t kGrpcMessageMax = std::size_t{1} << 20;

// The first message of `bytes`, or why there is none.
struct GrpcMessage {
  enum class State : std::uint8_t {
    complete,
    need_more,
    compressed,  // its flag is 1, but no compression was negotiated
    bad_flag,    // its flag is neither 0 nor 1
    too_large,   // known as soon as the head arrives
  };
  State state = State::need_more;
  std::string_view payload{};  // if complete: a view of `bytes`
  std::size_t consumed = 0;    // if complete: the size of head and payload
  std::uint32_t length = 0;    // known once the head has arrived
};
GrpcMessage read_grpc_message(std::string_view bytes, std::size_t length_max = kGrpcMessageMax);

// begin_grpc_message() reserves the head of a message; append the payload to `out` next. end_grpc_message() then
// writes the head. It needs the value that begin_grpc_message() returned.
std::size_t begin_grpc_message(std::string& out);
void end_grpc_message(std::string& out, std::size_t begin);

// Parses a timeout: `20m` is 20 milliseconds. Rounds up to microseconds; 0 is already over. Returns nothing if
// malformed.
std::optional<Micros> parse_grpc_timeout(std::string_view text);

// Encodes `grpc-message`: every byte outside printable ASCII, and the percent sign, as %XX.
std::string percent_encoded(std::string_view text);

}  // namespace weir::protocol
