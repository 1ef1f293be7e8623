// The gRPC methods: dispatch and answers. See grpc_methods.h.
#include "server/grpc/grpc_methods.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::server::grpc {
namespace {

struct Method {
  std::string_view path;
  GrpcMethod method;
};
constexpr std::array<Method, 6> kMethods = {{
    {"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", GrpcMethod::should_rate_limit},
    {"/grpc.health.v1.Health/Check", GrpcMethod::health_check},
    {"/grpc.health.v1.Health/List", GrpcMethod::health_list},
    {"/grpc.health.v1.Health/Watch", GrpcMethod::health_watch},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", GrpcMethod::reflection},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", GrpcMethod::reflection},
}};

GrpcOutcome unreadable(Error error) { return {protocol::GrpcStatus::internal, std::move(error.message)}; }

GrpcOutcome health(GrpcMethod method, std::string_view message, protocol::ServingStatus serving, std::string& out) {
  const auto service = protocol::read_health_request(message);
  if (!service) return unreadable(service.error());
  if (!protocol::is_health_service(*service)) {
    if (method == GrpcMethod::health_check) return {protocol::GrpcStatus::not_found, "unknown service"};
    serving = protocol::ServingStatus::service_unknown;
  }
  protocol::append_health_response(serving, out);
  return {};
}

}  // namespace

GrpcMethod find_grpc_method(std::string_view path) {
  const auto* found = std::ranges::find(kMethods, path, &Method::path);
  return found == kMethods.end() ? GrpcMethod::none : found->method;
}

GrpcOutcome GrpcMethods::run(GrpcMethod method, std::string_view message, protocol::ServingStatus serving,
                             std::string& out) {
  if (method == GrpcMethod::should_rate_limit) return rate_limit_.run(message, out);
  const std::size_t begin = protocol::begin_grpc_message(out);
  GrpcOutcome outcome;
  switch (method) {
    case GrpcMethod::health_check:
    case GrpcMethod::health_watch:
      outcome = health(method, message, serving, out);
      break;
    case GrpcMethod::health_list:
      protocol::append_health_list(serving, out);
      break;
    case GrpcMethod::reflection:
      if (auto answered = reflection_.answer(message, out); !answered) outcome = unreadable(answered.error());
      break;
    case GrpcMethod::should_rate_limit:
    case GrpcMethod::none:
      outcome.status = protocol::GrpcStatus::unimplemented;
      break;
  }
  if (outcome.status == protocol::GrpcStatus::ok) {
    protocol::end_grpc_message(out, begin);
  } else {
    out.resize(begin);
  }
  return outcome;
}

GrpcOutcome RateLimitMethod::run(std::string_view message, std::string& out) {
  if (auto read = protocol::read_rls_request(message, request_); !read) {
    if (read.error().code == ErrorCode::invalid_argument) return unreadable(read.error());
    return {protocol::GrpcStatus::resource_exhausted, std::move(read.error().message)};
  }
  auto decided = rls_.decide(request_, gate_);
  if (!decided) return {decided.error().status, std::move(decided.error().message)};
  const std::size_t begin = protocol::begin_grpc_message(out);
  protocol::append_rls_response(**decided, out);
  protocol::end_grpc_message(out, begin);
  return {};
}

void append_overload_answer(loop::OnOverload what, std::string& out) {
  const std::size_t begin = protocol::begin_grpc_message(out);
  protocol::append_rls_response(rls::rls_overload_response(what), out);
  protocol::end_grpc_message(out, begin);
}

}  // namespace weir::server::grpc
