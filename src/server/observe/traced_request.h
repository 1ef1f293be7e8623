// The trace span of one request: its name, its attributes and its outcome.
//
// Belongs to one loop and its thread. Tested by traces_test.cc and tests/server/traces.sh.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/grpc_message.h"
#include "server/observe/denial_log.h"
#include "server/observe/traces.h"

namespace weir::server::observe {

// Follows OpenTelemetry: an unknown method is `_OTHER`, and the span's name then begins with HTTP. `route` is one of
// the server's own. So the number of names is bounded, whatever clients send.
inline void describe_http(protocol::TraceSpan& span, std::string_view method, std::string_view route) {
  constexpr std::string_view kMethods[] = {"GET",    "HEAD",    "POST",    "PUT",  "PATCH",
                                           "DELETE", "OPTIONS", "CONNECT", "TRACE"};
  const bool is_known = std::ranges::find(kMethods, method) != std::end(kMethods);
  span.name.assign(is_known ? method : "HTTP").append(" ").append(route);
  span.attributes = {{"http.request.method", std::string(is_known ? method : "_OTHER")},
                     {"http.route", std::string(route)}};
}

// A session's trace state until the request is answered.
struct TracedRequest {
  std::unique_ptr<protocol::TraceSpan> span{};  // null: not traced
  DecidedRule decided{};

  void begin(Traces& traces, std::string_view parent) {
    span = traces.begin(parent.empty() ? std::nullopt : protocol::parse_trace_parent(parent));
    if (span) decided = {};
  }
  void end_http(Traces& traces, int status, Micros now) {
    span->attributes.push_back({"http.response.status_code", std::int64_t{status}});
    span->is_error = status >= 500;
    end(traces, now);
  }
  void end(Traces& traces, Micros now) {
    if (decided.is_decided) {
      span->attributes.push_back({"weir.outcome", std::string(decided.is_denied ? "denied" : "allowed")});
    }
    if (!decided.rule.empty()) span->attributes.push_back({"weir.rule", decided.rule});
    span->end = std::max(span->start, now);
    traces.end(std::move(span));
  }
};

inline void describe_rate_limit_call(protocol::TraceSpan& span, protocol::GrpcStatus status) {
  constexpr std::string_view kService = "envoy.service.ratelimit.v3.RateLimitService", kMethod = "ShouldRateLimit";
  span.name.assign(kService).append("/").append(kMethod);
  span.attributes = {{"rpc.system", std::string("grpc")},
                     {"rpc.service", std::string(kService)},
                     {"rpc.method", std::string(kMethod)},
                     {"rpc.grpc.status_code", std::int64_t{static_cast<int>(status)}}};
  span.is_error = status == protocol::GrpcStatus::internal || status == protocol::GrpcStatus::unavailable ||
                  status == protocol::GrpcStatus::unknown || status == protocol::GrpcStatus::unimplemented ||
                  status == protocol::GrpcStatus::deadline_exceeded;
}

// Traces a call of the rate limit service. `run` answers it and returns a GrpcOutcome.
template <class Run>
auto trace_call(Traces& traces, const std::optional<protocol::TraceParent>& parent, ListenerDenials& denials,
                const Limiter& limiter, const Run& run) {
  TracedRequest traced{.span = traces.begin(parent)};
  if (!traced.span) return run();
  denials.decided = &traced.decided;
  traced.span->start = limiter.now();
  auto outcome = run();
  denials.decided = nullptr;
  describe_rate_limit_call(*traced.span, outcome.status);
  traced.end(traces, limiter.now());
  return outcome;
}

}  // namespace weir::server::observe
