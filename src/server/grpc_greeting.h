// The first bytes on the gRPC port: HTTP/2, or somebody who took the wrong door and should hear which one is right.
//
// Pure; any thread. Tested by grpc_session_test.cc.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir {

inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// What plain HTTP/2 is answered.
inline constexpr std::string_view kSpeaksGrpc =
    "This port speaks gRPC: POST with application/grpc. Plain HTTP has a port of its own; there, ask /v1/check.\n";

struct Greeting {
  enum class State : std::uint8_t { http2, need_more, foreign };
  State state = State::need_more;
  std::string_view answer{};  // to a foreigner, in its own protocol; empty if that is not known
};
Greeting read_greeting(std::string_view input);

}  // namespace weir
