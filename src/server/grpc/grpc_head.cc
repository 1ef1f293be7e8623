// Reads gRPC header fields, and writes the errors that they cause. See grpc_call.h.
//
// Pure; any thread. Tested by grpc_session_test.cc.
#include "server/grpc/grpc_call.h"

#include "base/nearest.h"
#include "protocol/request_id.h"

namespace weir::server::grpc {
namespace {

constexpr std::size_t kPathShown = 100;

bool is_grpc_type(std::string_view type) {
  constexpr std::string_view kType = "application/grpc";
  if (!type.starts_with(kType)) return false;
  return type.size() == kType.size() || type[kType.size()] == '+' || type[kType.size()] == ';';
}

}  // namespace

void read_grpc_field(std::string_view name, std::string_view value, GrpcHead& out) {
  count_grpc_field(name, value, out);
  if (name == ":path") {
    out.method = find_grpc_method(value);
    if (out.method == GrpcMethod::none) out.unknown_path = value.substr(0, kPathShown + 1);
  } else if (name == ":method") {
    out.is_post = value == "POST";
    out.is_head = value == "HEAD";
  } else if (name == "content-type") {
    out.is_grpc = is_grpc_type(value);
  } else if (name == "grpc-timeout") {
    const auto timeout = protocol::parse_grpc_timeout(value);
    out.timeout = timeout.value_or(kNever);
    out.has_bad_timeout = !timeout;
  } else if (name == "grpc-encoding") {
    out.is_encoded = value != "identity";
  } else if (name == protocol::kRequestIdField) {
    out.request_id = protocol::request_id_or_none(value);
  } else if (name == protocol::kTraceParentField) {
    out.trace = protocol::parse_trace_parent(value);
  }
}

std::optional<GrpcOutcome> refuse_grpc_head(const GrpcHead& head, std::size_t header_max) {
  if (head.bytes > header_max) {
    return GrpcOutcome{protocol::GrpcStatus::resource_exhausted, "the header fields have " +
                                                                     std::to_string(head.bytes) + " bytes; at most " +
                                                                     std::to_string(header_max) + " are allowed"};
  }
  if (head.method == GrpcMethod::none) {
    return GrpcOutcome{protocol::GrpcStatus::unimplemented,
                       "unknown method " + base::in_quotes(head.unknown_path, kPathShown)};
  }
  if (head.has_bad_timeout) {
    return GrpcOutcome{protocol::GrpcStatus::internal,
                       "grpc-timeout must be 1 to 8 digits and a unit of H, M, S, m, u, n, such as 20m"};
  }
  if (head.is_encoded) {
    return GrpcOutcome{protocol::GrpcStatus::unimplemented,
                       "compressed messages are not supported; use grpc-encoding: identity"};
  }
  if (head.timeout == Micros{0}) return GrpcOutcome{protocol::GrpcStatus::deadline_exceeded, "the deadline has passed"};
  return std::nullopt;
}

GrpcOutcome refuse_grpc_message(const protocol::GrpcMessage& message, std::size_t length_max) {
  switch (message.state) {
    case protocol::GrpcMessage::State::compressed:
      return {protocol::GrpcStatus::internal, "a message is compressed, but the request has no grpc-encoding"};
    case protocol::GrpcMessage::State::too_large:
      return {protocol::GrpcStatus::resource_exhausted, "the message has " + std::to_string(message.length) +
                                                            " bytes; at most " + std::to_string(length_max) +
                                                            " are allowed"};
    case protocol::GrpcMessage::State::bad_flag:
    case protocol::GrpcMessage::State::complete:
    case protocol::GrpcMessage::State::need_more:
      break;
  }
  return {protocol::GrpcStatus::internal, "a message begins with neither 0 nor 1, so this is not gRPC framing"};
}

}  // namespace weir::server::grpc
