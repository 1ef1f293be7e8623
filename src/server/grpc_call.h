// One call on a gRPC connection, from its first header field to its trailers, and the pool that calls are taken from.
//
// A call holds what has come of its request and what is still to be sent of its answer. Calls come and go by the
// hundred thousand a second, so a loop keeps those that have ended, with the room that they have grown. One thread.
// Tested by grpc_session_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/grpc_message.h"
#include "server/grpc_head.h"
#include "weir/verdict.h"

namespace weir {

class GrpcDecision;  // grpc_decision.h

struct GrpcCall {
  std::int32_t stream = 0;
  GrpcHead head{};
  std::string in{};   // of the request: what is not answered yet
  std::string out{};  // messages, from `sent` on
  std::size_t sent = 0;
  std::size_t surplus = 0;  // what came of a request that is refused in any case
  Micros deadline = kNever;
  Micros question_due = kNever;        // of a stream: until when a question that was begun must be whole
  Micros take_due = kNever;            // until when something of `out` must be taken; kNever: it is not waited for
  GrpcStatus status = GrpcStatus::ok;  // of the trailers
  std::string message{};               // of the same

  bool is_pending = true;        // its request is not complete
  bool is_dated = false;         // its deadline is set
  bool is_answering = false;     // its response has begun
  bool is_finished = false;      // after `out` come the trailers
  bool is_waiting = false;       // HTTP/2 has nothing to send until it is told that there is more
  bool is_foreign = false;       // to be refused in terms of HTTP
  bool has_request_end = false;  // the client sends no more

  GrpcDecision* decision = nullptr;  // that it waits for

  GrpcCall* next = nullptr;  // among those of its connection
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
    if (free_.size() >= kKept || call->in.capacity() + call->out.capacity() > kRoomKept) return;
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
  static constexpr std::size_t kRoomKept = std::size_t{16} << 10;

  std::vector<std::unique_ptr<GrpcCall>> free_;
};

}  // namespace weir
