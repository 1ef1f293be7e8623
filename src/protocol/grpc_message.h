// gRPC's own layer between HTTP/2 and protobuf: the frame of a message, statuses, timeouts, the text of an error.
//
// A message is one byte (compressed or not), four bytes of length and the payload; it may come in any pieces, and
// several may come at once. Pure; any thread. Tested by grpc_message_test.cc and fuzz/grpc_message.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/clock.h"

namespace weir {

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

// As `grpc-status` has it; a literal.
std::string_view to_string(GrpcStatus status);

inline constexpr std::size_t kGrpcHeadBytes = 5;
inline constexpr std::size_t kGrpcMessageMax = std::size_t{1} << 20;

// The first message of `bytes`, or why there is none.
struct GrpcMessage {
  enum class State : std::uint8_t {
    complete,
    need_more,
    compressed,  // its flag is 1: nothing was agreed on
    bad_flag,    // its flag is neither 0 nor 1
    too_large,   // known as soon as its head is there
  };
  State state = State::need_more;
  std::string_view payload{};  // if complete: a view of `bytes`
  std::size_t consumed = 0;    // if complete: its head and its payload
  std::uint32_t length = 0;    // once the head is there
};
GrpcMessage read_grpc_message(std::string_view bytes, std::size_t length_max = kGrpcMessageMax);

// Room for the head of a message that is appended next, and the head itself once it was: end_grpc_message() is given
// what begin_grpc_message() returned.
std::size_t begin_grpc_message(std::string& out);
void end_grpc_message(std::string& out, std::size_t begin);

// `20m` is 20 milliseconds. Rounded up to microseconds; 0 is a time that has passed. Nothing if it is malformed.
std::optional<Micros> parse_grpc_timeout(std::string_view text);

// `grpc-message`: every byte outside of printable ASCII, and the percent sign, as %XX.
std::string percent_encoded(std::string_view text);

}  // namespace weir
