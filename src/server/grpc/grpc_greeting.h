// Reads the first bytes on the gRPC port: HTTP/2, or another protocol whose client learns the right port.
//
// Pure; any thread. Tested by grpc_session_test.cc.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::server::grpc {

inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// The answer to plain HTTP/2.
inline constexpr std::string_view kSpeaksGrpc =
    "This port speaks gRPC: POST with application/grpc. For plain HTTP, use POST /v1/check on the HTTP port.\n";

struct Greeting {
  enum class State : std::uint8_t { http2, need_more, foreign };
  State state = State::need_more;
  std::string_view answer{};  // the error in the client's own protocol; empty if the protocol is unknown
};
// Whether Redis has a command of this name.
using IsCommand = bool(std::string_view name);
// Without `is_command`, recognizes only the Redis clients that send arrays.
Greeting read_greeting(std::string_view input, IsCommand* is_command);

}  // namespace weir::server::grpc
