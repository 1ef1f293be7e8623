// The methods of the gRPC port: which there are, and what each answers to a message.
//
// Nothing here knows of HTTP/2. A service belongs to one loop and its thread. Tested by grpc_session_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/grpc_message.h"
#include "protocol/health.h"
#include "protocol/reflection.h"
#include "protocol/rls.h"
#include "server/rls_service.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

enum class GrpcMethod : std::uint8_t { none, should_rate_limit, health_check, health_list, health_watch, reflection };

// By the `:path` of a request, case and all.
GrpcMethod find_grpc_method(std::string_view path);

// Whether it goes on after its first answer, until the client or the server ends it.
constexpr bool is_stream(GrpcMethod method) {
  return method == GrpcMethod::health_watch || method == GrpcMethod::reflection;
}

struct GrpcOutcome {
  GrpcStatus status = GrpcStatus::ok;
  std::string message{};
};

// ShouldRateLimit, with room for one request. Limiter and gate outlive it; without a gate there are no rules.
class RateLimitMethod {
 public:
  RateLimitMethod(Limiter& limiter, Gate* gate) : gate_(gate), rls_(limiter) {}

  // Whose request_id is that of the call at hand.
  DoorDenials& denials() { return rls_.denials; }
  // Which outlives it, too.
  void use_envoy(EnvoyInForce* envoy) { rls_.envoy = envoy; }
  EnvoyInForce* envoy() const { return rls_.envoy; }
  Gate* gate() const { return gate_; }

  // Appends the answer, framed, to `out`; if it fails, nothing.
  GrpcOutcome run(std::string_view message, std::string& out);

 private:
  Gate* gate_;
  RlsService rls_;
  RlsRequest request_;
};

// What the methods need, for one call at a time.
class GrpcMethods {
 public:
  GrpcMethods(Limiter& limiter, Gate* gate) : rate_limit_(limiter, gate) {}

  RateLimitMethod& rate_limit() { return rate_limit_; }
  DoorDenials& denials() { return rate_limit_.denials(); }

  // Appends the answer, framed, to `out`; if it fails, nothing.
  GrpcOutcome run(GrpcMethod method, std::string_view message, ServingStatus serving, std::string& out);

 private:
  RateLimitMethod rate_limit_;
  Reflection reflection_;
};

}  // namespace weir
