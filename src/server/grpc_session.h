// A gRPC client's conversation over HTTP/2 without TLS: frames in, frames out. See session.h for how it is driven.
//
// Envoy's rate limit service, health and reflection; grpc_methods.h says what they answer. Calls are decided where they
// end, within consume(), or on a fiber each, if that must wait (grpc_decision.h). What a client can make a connection
// hold is bounded: so many calls at once, so many bytes of header fields and of messages, so many bytes in all; what
// goes beyond gets RESOURCE_EXHAUSTED. Frames that ask for nothing are counted, and too many of them end the
// connection. A request that is not complete when its grpc-timeout passes, or kGrpcPatience, gets DEADLINE_EXCEEDED.
// Plain HTTP is refused with a text, once its request has ended or has gone on for too long. Tested by
// grpc_session_test.cc, grpc_abuse_test.cc and fuzz/h2_session.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/bounds.h"
#include "server/grpc_call.h"
#include "server/grpc_decision.h"
#include "server/grpc_methods.h"
#include "server/session.h"
#include "server/traces.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

inline constexpr std::size_t kGrpcHeldMax = std::size_t{4} << 20;  // of all its calls
inline constexpr std::size_t kGrpcCallBytes = 700;                 // that an open call takes, here and in nghttp2
inline constexpr Micros kGrpcPatience{30'000'000};
inline constexpr Micros kGrpcDrainNotice{1'000'000};  // a client that does not answer a ping has so long

// One for a loop, used by its thread. Limiter and gate outlive it; without a gate there are no rules.
struct GrpcService {
  GrpcService(Limiter& with, Gate* rules, const DoorBounds& within = {})
      : limiter(with), bounds(within), methods(with, rules) {}
  GrpcService(const GrpcService&) = delete;
  GrpcService& operator=(const GrpcService&) = delete;

  Limiter& limiter;
  const DoorBounds bounds;
  GrpcMethods methods;
  GrpcCalls calls{};
  const std::atomic<bool>* stopping = nullptr;  // whether the server is; null: it is when it drains
  Traces* traces = nullptr;                     // null: nothing is traced
  Errands* errands = nullptr;                   // on whose fibers calls are decided; null: at once
  GrpcDecisions decisions{*this};               // of those
};

// `service` outlives the session.
std::unique_ptr<Session> make_grpc_session(GrpcService& service);

}  // namespace weir
