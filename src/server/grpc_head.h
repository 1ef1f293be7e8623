// What the header fields of a gRPC request say, and why a request with such fields is not answered.
//
// Only what matters here is looked at; metadata, user agents and the like are counted and passed over. Pure; any
// thread. Tested by grpc_session_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/grpc_message.h"
#include "protocol/trace_parent.h"
#include "server/grpc_methods.h"
#include "weir/verdict.h"

namespace weir {

struct GrpcHead {
  GrpcMethod method = GrpcMethod::none;
  Micros timeout = kNever;
  std::size_t bytes = 0;  // of the fields, as HTTP/2 counts them
  bool is_post = false;
  bool is_head = false;     // HTTP's, whose answers have no body
  bool is_grpc = false;     // by its content-type
  bool is_encoded = false;  // its messages may be compressed
  bool has_bad_timeout = false;
  std::string unknown_path{};  // the beginning of it
  std::string request_id{};    // the client's, empty if it gave none
  std::optional<TraceParent> trace{};
};

void read_grpc_field(std::string_view name, std::string_view value, GrpcHead& out);
// Only its size, as HTTP/2 counts it.
inline void count_grpc_field(std::string_view name, std::string_view value, GrpcHead& out) {
  out.bytes += name.size() + value.size() + 32;
}

// refuse_grpc_head()
//
// Nothing if the call may go on. Whether it is POST and gRPC at all is asked before.
std::optional<GrpcOutcome> refuse_grpc_head(const GrpcHead& head, std::size_t header_max);

// refuse_grpc_message()
//
// Of a message that is neither complete nor incomplete.
GrpcOutcome refuse_grpc_message(const GrpcMessage& message, std::size_t length_max);

}  // namespace weir
