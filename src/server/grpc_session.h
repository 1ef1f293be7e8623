// A gRPC client's conversation over HTTP/2 without TLS: frames in, frames out. See session.h for how it is driven.
//
// Envoy's rate limit service, health and reflection; grpc_methods.h says what they answer. Calls are decided where they
// end, within consume(). What a client can make a connection hold is bounded: so many calls at once, so many bytes of
// header fields and of messages, so many bytes in all; what goes beyond gets RESOURCE_EXHAUSTED. A request that is not
// complete when its grpc-timeout passes, or kGrpcPatience, gets DEADLINE_EXCEEDED. Plain HTTP is refused
// with a text, once its request has ended or has gone on for too long. Tested by grpc_session_test.cc,
// grpc_abuse_test.cc and fuzz/h2_session.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/grpc_call.h"
#include "server/grpc_methods.h"
#include "server/session.h"
#include "server/traces.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

inline constexpr std::uint32_t kGrpcCallsMax = 1'000;              // at once, of a connection
inline constexpr std::size_t kGrpcHeldMax = std::size_t{4} << 20;  // of all its calls
inline constexpr std::size_t kGrpcCallBytes = 700;                 // that an open call takes, here and in nghttp2
inline constexpr Micros kGrpcPatience{30'000'000};
inline constexpr Micros kGrpcDrainNotice{1'000'000};  // a client that does not answer a ping has so long

// A gateway that gives up after 20 ms resets all its calls when a machine stalls, and must not lose its connection for
// that; who resets much more than a server could ever be asked does.
inline constexpr std::uint64_t kGrpcResetsBurst = 20'000;
inline constexpr std::uint64_t kGrpcResetsPerSecond = 10'000;

// One for a loop, used by its thread. Limiter and gate outlive it; without a gate there are no rules.
struct GrpcService {
  GrpcService(Limiter& with, Gate* rules) : limiter(with), methods(with, rules) {}

  Limiter& limiter;
  GrpcMethods methods;
  GrpcCalls calls{};
  Traces* traces = nullptr;  // null: nothing is traced
};

// `service` outlives the session.
std::unique_ptr<Session> make_grpc_session(GrpcService& service);

}  // namespace weir
