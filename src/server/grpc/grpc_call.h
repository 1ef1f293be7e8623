// One call on a gRPC connection, from its first header field to its trailers, and the pool of calls.
//
// A call stores the unprocessed part of its request and the unsent part of its answer. A loop sees hundreds of
// thousands of calls per second, so it reuses finished calls together with their buffers. One thread. Tested by
// grpc_session_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/grpc_message.h"
#include "server/grpc/grpc_head.h"
#include "weir/verdict.h"

namespace weir::server::grpc {

class GrpcDecision;  // grpc_decision.h

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
