// One call on a gRPC connection, from its first header field to its trailers, and the pool of calls.
//
// A call stores the unprocessed part of its request and the unsent part of its answer. A loop sees hundreds of
// thousands of calls per second, so it reuses finished calls together with their buffers. One thread. Tested by
// grpc_session_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/grpc_message.h"
#include "protocol/trace_parent.h"
#include "server/grpc/grpc_methods.h"
#include "weir/verdict.h"

namespace weir::server::grpc {

class GrpcDecision;  // grpc_decision.h

// The relevant header fields of a request. Metadata, user agents and the like only count towards the size.
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

struct GrpcCall {
  std::int32_t stream = 0;
  GrpcHead head{};
  std::string in{};   // the part of the request that is not answered yet
  std::string out{};  // answer messages; those from `sent` on are unsent
  std::size_t sent = 0;
  std::size_t surplus = 0;  // bytes received of a request that will be refused anyway
  Micros deadline = kNever;
  Micros message_due = kNever;  // of a stream: the time until which a message that has begun must be complete
  Micros take_due = kNever;     // the time until which the client must read some of `out`; kNever: no time-out
  protocol::GrpcStatus status = protocol::GrpcStatus::ok;  // for the trailers
  std::string message{};                                   // for the trailers

  bool is_pending = true;        // its request is not complete
  bool is_dated = false;         // its deadline is set
  bool is_answering = false;     // its response has begun
  bool is_finished = false;      // the trailers follow `out`
  bool is_waiting = false;       // HTTP/2 sends nothing more until resume()
  bool is_foreign = false;       // refused with an HTTP status
  bool has_request_end = false;  // the client sends no more

  GrpcDecision* decision = nullptr;  // the decision in flight

  GrpcCall* next = nullptr;  // list of its connection's calls
  GrpcCall* before = nullptr;
};

class GrpcCalls {
 public:
  GrpcCall* take() {
    if (free_.empty()) return std::make_unique<GrpcCall>().release();
    GrpcCall* call = free_.back().release();
    free_.pop_back();
    return call;
  }

  void give(GrpcCall* ended) {
    std::unique_ptr<GrpcCall> call(ended);
    if (free_.size() >= kKept || call->in.capacity() + call->out.capacity() > kCapacityKept) return;
    std::string in = std::move(call->in), out = std::move(call->out);
    *call = GrpcCall{};
    in.clear();
    out.clear();
    call->in = std::move(in);
    call->out = std::move(out);
    free_.push_back(std::move(call));
  }

  std::size_t kept() const { return free_.size(); }

 private:
  static constexpr std::size_t kKept = 4'096;
  static constexpr std::size_t kCapacityKept = std::size_t{16} << 10;

  std::vector<std::unique_ptr<GrpcCall>> free_;
};

}  // namespace weir::server::grpc
