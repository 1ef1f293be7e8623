// The relevant header fields of a gRPC request, and the errors that they cause.
//
// Only known fields are parsed. Metadata, user agents and the like only count towards the size. Pure; any thread.
// Tested by grpc_session_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/grpc_message.h"
#include "protocol/trace_parent.h"
#include "server/grpc/grpc_methods.h"
#include "weir/verdict.h"

namespace weir::server::grpc {

struct GrpcHead {
  GrpcMethod method = GrpcMethod::none;
  Micros timeout = kNever;
  std::size_t bytes = 0;  // size of the fields, as HTTP/2 counts it
  bool is_post = false;
  bool is_head = false;     // HTTP's HEAD, whose answers have no body
  bool is_grpc = false;     // by its content-type
  bool is_encoded = false;  // its messages may be compressed
  bool has_bad_timeout = false;
  std::string unknown_path{};  // its first bytes
  std::string request_id{};    // sent by the client; empty if there is none
  std::optional<protocol::TraceParent> trace{};
};

void read_grpc_field(std::string_view name, std::string_view value, GrpcHead& out);
// Counts only the field's size, as HTTP/2 does.
inline void count_grpc_field(std::string_view name, std::string_view value, GrpcHead& out) {
  out.bytes += name.size() + value.size() + 32;
}

// refuse_grpc_head()
//
// Nothing if the call may go on. The caller has checked that it is a POST with gRPC content.
std::optional<GrpcOutcome> refuse_grpc_head(const GrpcHead& head, std::size_t header_max);

// refuse_grpc_message()
//
// For a message that is invalid, neither complete nor incomplete.
GrpcOutcome refuse_grpc_message(const protocol::GrpcMessage& message, std::size_t length_max);

}  // namespace weir::server::grpc
