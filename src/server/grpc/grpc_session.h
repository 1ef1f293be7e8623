// The server side of a gRPC connection over HTTP/2: frames in, frames out. session.h says how it is driven.
//
// It serves Envoy's rate limit service, health and reflection (grpc_methods.h). It decides a call when its request is
// complete: within consume(), or on a fiber of its own if the decision may wait (grpc_decision.h).
//
// The memory of a connection is bounded: concurrent calls, bytes of header fields, bytes of messages, and bytes in
// total. What exceeds a bound gets RESOURCE_EXHAUSTED. Too many frames without a request end the connection. A
// request that is incomplete when its grpc-timeout or kGrpcRequestMax has passed gets DEADLINE_EXCEEDED. Plain HTTP is
// refused with a text, once its request has ended or is too long. Tested by grpc_session_test.cc, grpc_abuse_test.cc
// and fuzz/h2_session.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/grpc/grpc_call.h"
#include "server/grpc/grpc_decision.h"
#include "server/grpc/grpc_greeting.h"
#include "server/grpc/grpc_methods.h"
#include "server/loop/bounds.h"
#include "server/loop/session.h"
#include "server/observe/traces.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir::server::grpc {

inline constexpr std::size_t kGrpcHeldMax = std::size_t{4} << 20;  // of all calls of a connection
inline constexpr std::size_t kGrpcCallBytes = 700;                 // memory of an open call, here and in nghttp2
inline constexpr Micros kGrpcRequestMax{30'000'000};
inline constexpr Micros kGrpcDrainNotice{1'000'000};  // how long a draining connection waits for the answer to its ping

// One per loop, used by its thread. Limiter and gate must outlive it; without a gate there are no rules.
struct GrpcService {
  GrpcService(Limiter& with, Gate* rules, const loop::ListenerBounds& within = {})
      : limiter(with), bounds(within), methods(with, rules) {}
  GrpcService(const GrpcService&) = delete;
  GrpcService& operator=(const GrpcService&) = delete;

  Limiter& limiter;
  const loop::ListenerBounds bounds;
  GrpcMethods methods;
  GrpcCalls calls{};
  const std::atomic<bool>* stopping = nullptr;  // whether the server is stopping; null: it is when the session drains
  IsCommand* is_redis_command = nullptr;        // see grpc_greeting.h
  observe::Traces* traces = nullptr;            // null: no tracing
  loop::FiberTasks* tasks = nullptr;            // the fibers that decide calls; null: calls are decided at once
  GrpcDecisions decisions{*this};               // for these fibers
};

// `service` must outlive the session.
std::unique_ptr<loop::Session> make_grpc_session(GrpcService& service);

}  // namespace weir::server::grpc
