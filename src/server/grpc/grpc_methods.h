// The methods of the gRPC port, and what each answers to a message.
//
// Independent of HTTP/2. A service belongs to one loop and its thread. Tested by grpc_session_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/grpc_message.h"
#include "protocol/grpc_services.h"
#include "protocol/rls.h"
#include "server/rls/rls_service.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir::server::grpc {

enum class GrpcMethod : std::uint8_t { none, should_rate_limit, health_check, health_list, health_watch, reflection };

// By the `:path` of a request, case-sensitive.
GrpcMethod find_grpc_method(std::string_view path);

// Whether the call continues after its first answer, until the client or the server ends it.
constexpr bool is_stream(GrpcMethod method) {
  return method == GrpcMethod::health_watch || method == GrpcMethod::reflection;
}

struct GrpcOutcome {
  protocol::GrpcStatus status = protocol::GrpcStatus::ok;
  std::string message{};
};

// Appends the framed answer of ShouldRateLimit under overload, without a decision.
void append_overload_answer(loop::OnOverload what, std::string& out);

// ShouldRateLimit, with buffers for one request. Limiter and gate must outlive it; without a gate there are no rules.
class RateLimitMethod {
 public:
  RateLimitMethod(Limiter& limiter, Gate* gate) : gate_(gate), rls_(limiter) {}

  // Its request_id is that of the current call.
  observe::ListenerDenials& denials() { return rls_.denials; }
  // `envoy` must outlive it, too.
  void use_envoy(envoy::EnvoyInForce* envoy) { rls_.envoy = envoy; }
  envoy::EnvoyInForce* envoy() const { return rls_.envoy; }
  Gate* gate() const { return gate_; }

  // Appends the framed answer to `out`; on failure, nothing.
  GrpcOutcome run(std::string_view message, std::string& out);

 private:
  Gate* gate_;
  rls::RlsService rls_;
  protocol::RlsRequest request_;
};

// The methods and their buffers, for one call at a time.
class GrpcMethods {
 public:
  GrpcMethods(Limiter& limiter, Gate* gate) : rate_limit_(limiter, gate) {}

  RateLimitMethod& rate_limit() { return rate_limit_; }
  observe::ListenerDenials& denials() { return rate_limit_.denials(); }

  // Appends the framed answer to `out`; on failure, nothing.
  GrpcOutcome run(GrpcMethod method, std::string_view message, protocol::ServingStatus serving, std::string& out);

 private:
  RateLimitMethod rate_limit_;
  protocol::Reflection reflection_;
};

}  // namespace weir::server::grpc
