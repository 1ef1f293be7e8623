// A gRPC call on nghttp2, from its header fields to its trailers. See grpc_http2.h.
//
// Called by nghttp2 through grpc_session.cc. Tested by grpc_session_test.cc and grpc_abuse_test.cc.
#include <array>
#include <cstring>
#include <exception>
#include <utility>

#include "protocol/request_id.h"
#include "server/grpc/grpc_http2.h"
#include "server/observe/traced_request.h"

namespace weir::server::grpc {
namespace {

// A reflection stream pauses while this many bytes of answers are unread.
constexpr std::size_t kAnswersAhead = std::size_t{64} << 10;
constexpr std::string_view kShuttingDown = "the server is shutting down";

}  // namespace

void GrpcSession::expire(GrpcCall& call) {
  if (!call.is_foreign) return finish(call, protocol::GrpcStatus::deadline_exceeded, "the deadline has passed");
  if (!call.is_finished) return refuse_http(call);
  reset(call);
}

void GrpcSession::send_health(GrpcCall& call) {
  const std::size_t before = call.out.size();
  service_.methods.run(call.head.method, {}, serving(), call.out);
  unsent_ += call.out.size() - before;
}

// Ends a stream that would otherwise not end. A health watcher first learns that the server no longer serves.
void GrpcSession::dismiss(GrpcCall& call) {
  if (call.head.method == GrpcMethod::health_watch && serving() == protocol::ServingStatus::not_serving)
    send_health(call);
  finish(call, protocol::GrpcStatus::unavailable, std::string(kShuttingDown));
}

int GrpcSession::on_data(std::int32_t stream, std::string_view data) {
  GrpcCall* call = call_of(stream);
  if (call != nullptr && call->is_foreign) return take_surplus(*call, data.size());
  if (call == nullptr || call->is_finished) return 0;
  if (call->head.method == GrpcMethod::health_watch && !call->is_pending) return 0;
  if (held() + data.size() > kGrpcHeldMax) {
    service_.bounds.refuse(loop::Refused::pipeline);
    finish(*call, protocol::GrpcStatus::resource_exhausted,
           "the calls of this connection have reached their memory limit");
    return 0;
  }
  held_ += data.size();
  call->in.append(data);
  take_messages(*call);
  return 0;
}

void GrpcSession::drop_call(GrpcCall* call) {
  (call->before == nullptr ? open_ : call->before->next) = call->next;
  if (call->next != nullptr) call->next->before = call->before;
  if (call->is_pending) --pending_;
  stop_waiting(*call);
  held_ -= kGrpcCallBytes + call->in.size();
  unsent_ -= call->out.size() - call->sent;
  service_.calls.give(call);
}

// The header fields are complete.
void GrpcSession::start(GrpcCall& call) {
  const GrpcHead& head = call.head;
  call.is_foreign = !head.is_post || !head.is_grpc;
  if (call.is_foreign) return;
  if (auto refused = refuse_grpc_head(head, service_.bounds.http.header_max)) {
    if (refused->status == protocol::GrpcStatus::resource_exhausted) service_.bounds.refuse(loop::Refused::header);
    return finish(call, refused->status, std::move(refused->message));
  }
  if (head.method != GrpcMethod::reflection) return;
  call.is_pending = false;
  --pending_;
  if (is_draining_) dismiss(call);
}

// A plain HTTP answer for clients that do not speak gRPC. It waits for the end of the request, if that comes soon.
void GrpcSession::refuse_http(GrpcCall& call) {
  call.is_answering = call.is_finished = true;
  if (std::exchange(call.is_pending, false)) --pending_;
  ++answered_;
  const bool is_post = call.head.is_post;
  const std::array fields = {field(":status", is_post ? "415" : "405"),
                             is_post ? field("accept", "application/grpc") : field("allow", "POST"),
                             field("content-type", "text/plain; charset=utf-8")};
  call.out = call.head.is_head ? std::string_view() : kSpeaksGrpc;
  unsent_ += call.out.size();
  const nghttp2_data_provider provider = answer_of(call);
  nghttp2_submit_response(http2_, call.stream, fields.data(), fields.size(), call.out.empty() ? nullptr : &provider);
}

int GrpcSession::take_surplus(GrpcCall& call, std::size_t size) {
  call.surplus += size;
  if (call.surplus > 2 * kSurplusMax) return reset(call);
  if (call.surplus > kSurplusMax && !call.is_finished) refuse_http(call);
  return 0;
}

// For a message that can never be answered.
void GrpcSession::refuse_message(GrpcCall& call, const protocol::GrpcMessage& message) {
  const bool is_large = message.state == protocol::GrpcMessage::State::too_large;
  service_.bounds.refuse(is_large ? loop::Refused::body : loop::Refused::malformed);
  GrpcOutcome refused = refuse_grpc_message(message, service_.bounds.body_max);
  finish(call, refused.status, std::move(refused.message));
}

void GrpcSession::take_messages(GrpcCall& call) {
  if (call.head.method == GrpcMethod::reflection) return answer_messages(call);
  const protocol::GrpcMessage message = next_message(call.in);
  if (message.state == protocol::GrpcMessage::State::need_more) return;
  if (message.state != protocol::GrpcMessage::State::complete) {
    return refuse_message(call, message);
  }
  if (message.consumed == call.in.size()) return;  // answered when the request ends
  finish(call, protocol::GrpcStatus::unimplemented, "this method takes one message; the client sent more than one");
}

// Answers each message of a reflection stream in order, but not faster than the client reads the answers.
void GrpcSession::answer_messages(GrpcCall& call) {
  std::size_t used = 0;
  protocol::GrpcMessage message;
  while (!call.is_finished && call.out.size() - call.sent < kAnswersAhead) {
    message = next_message(std::string_view(call.in).substr(used));
    if (message.state != protocol::GrpcMessage::State::complete) break;
    used += message.consumed;
    run(call, message.payload);
  }
  if (call.is_finished) return;
  call.in.erase(0, used);
  held_ -= used;
  if (used > 0) call.message_due = kNever;
  if (call.out.size() - call.sent >= kAnswersAhead) return;  // later
  if (message.state != protocol::GrpcMessage::State::need_more) {
    return refuse_message(call, message);
  }
  if (!call.has_request_end) return wait_for_message(call);
  if (call.in.empty()) return finish(call, protocol::GrpcStatus::ok);
  finish(call, protocol::GrpcStatus::internal, "the request ended in the middle of a message");
}

// A stream may be silent for days, but not within a message, which stays in memory until it is complete.
void GrpcSession::wait_for_message(GrpcCall& call) {
  if (call.in.empty() || call.message_due != kNever) return;
  call.message_due = service_.limiter.now() + kGrpcRequestMax;
  earliest_ = std::min(earliest_, call.message_due);
}

void GrpcSession::end_request(GrpcCall& call) {
  if (call.is_foreign) return refuse_http(call);
  if (call.head.method == GrpcMethod::reflection) return answer_messages(call);
  if (!call.is_pending) return;  // trailers after the end
  const protocol::GrpcMessage message = next_message(call.in);
  if (message.state == protocol::GrpcMessage::State::complete) return run(call, message.payload);
  if (call.in.empty())
    return finish(call, protocol::GrpcStatus::unimplemented, "this method takes one message; the client sent none");
  finish(call, protocol::GrpcStatus::internal, "the request ended in the middle of a message");
}

void GrpcSession::run(GrpcCall& call, std::string_view message) {
  const std::size_t before = call.out.size();
  const bool is_check = call.head.method == GrpcMethod::should_rate_limit;
  GrpcOutcome outcome;
  if (sheds_ && is_check) {
    shed(call);
  } else if (service_.tasks != nullptr && is_check) {
    if (!decide_on_fiber(call, message, outcome)) return;
  } else {
    outcome = decide(call, message);
  }
  answer(call, before, std::move(outcome));
}

void GrpcSession::shed(GrpcCall& call) {
  service_.bounds.refuse(loop::Refused::overload);
  append_overload_answer(service_.bounds.on_overload, call.out);
}

// False if it must wait: then the request is complete, and take_decided() continues with it.
bool GrpcSession::decide_on_fiber(GrpcCall& call, std::string_view message, GrpcOutcome& outcome) {
  std::unique_ptr<GrpcDecision> decision = service_.decisions.take();
  switch (decision->start(*this, call, message)) {
    case GrpcDecision::Started::waits:
      call.decision = decision.release();
      if (std::exchange(call.is_pending, false)) --pending_;
      return false;
    case GrpcDecision::Started::not_at_all:
      shed(call);
      break;
    case GrpcDecision::Started::ended:
      call.out.append(decision->answer());
      outcome = std::move(decision->outcome());
      break;
  }
  service_.decisions.give(std::move(decision));
  return true;
}

// Runs on the decision's fiber. The answer is written by wake(), outside of any nghttp2 callback.
void GrpcSession::on_decided(GrpcDecision& decision) {
  decision.next = std::exchange(decided_, &decision);
  if (owner_ != nullptr) owner_->on_ready();
}

void GrpcSession::take_decided() {
  const std::size_t before = answered_;
  while (decided_ != nullptr) {
    std::unique_ptr<GrpcDecision> decision = next_decided();
    if (GrpcCall* const call = decision->call(); call != nullptr) {
      call->decision = nullptr;
      const std::size_t size = call->out.size();
      call->out.append(decision->answer());
      answer(*call, size, std::move(decision->outcome()));
    }
    service_.decisions.give(std::move(decision));
  }
  answered_late_ += answered_ - before;
  allowance_.earn(answered_ - before);
}

// The part of `out` from `before` on is new.
void GrpcSession::answer(GrpcCall& call, std::size_t before, GrpcOutcome outcome) {
  unsent_ += call.out.size() - before;
  if (outcome.status != protocol::GrpcStatus::ok) return finish(call, outcome.status, std::move(outcome.message));
  if (held() > kGrpcHeldMax) {
    service_.bounds.refuse(loop::Refused::unread);
    unsent_ -= call.out.size() - before;
    call.out.resize(before);
    return finish(call, protocol::GrpcStatus::resource_exhausted,
                  "the client does not read the responses of this connection");
  }
  if (!is_stream(call.head.method)) return finish(call, protocol::GrpcStatus::ok);
  ++answered_;
  if (std::exchange(call.is_pending, false)) --pending_;
  if (call.head.method == GrpcMethod::health_watch) drop_input(call);
  if (call.is_dated && call.head.timeout > kGrpcRequestMax) {  // kGrpcRequestMax is only for requests
    call.deadline = call.head.timeout == kNever ? kNever : call.deadline - kGrpcRequestMax + call.head.timeout;
  }
  open_response(call);
  resume(call);
  if (call.head.method == GrpcMethod::health_watch && is_draining_) {
    finish(call, protocol::GrpcStatus::unavailable, std::string(kShuttingDown));
  }
}

GrpcOutcome GrpcSession::decide(GrpcCall& call, std::string_view message) {
  observe::ListenerDenials& denials = service_.methods.denials();
  denials.request_id = call.head.request_id;
  const auto run = [&] { return service_.methods.run(call.head.method, message, serving(), call.out); };
  if (service_.traces == nullptr || call.head.method != GrpcMethod::should_rate_limit) return run();
  return observe::trace_call(*service_.traces, call.head.trace, denials, service_.limiter, run);
}

void GrpcSession::open_response(GrpcCall& call) {
  if (std::exchange(call.is_answering, true)) return;
  const std::string& id = call.head.request_id;
  const std::array fields = {field(":status", "200"), field("content-type", "application/grpc"),
                             copied(protocol::kRequestIdField, id)};
  const nghttp2_data_provider provider = answer_of(call);
  nghttp2_submit_response(http2_, call.stream, fields.data(), fields.size() - (id.empty() ? 1 : 0), &provider);
}

// The status is sent last: after the messages, or alone if there are none.
void GrpcSession::finish(GrpcCall& call, protocol::GrpcStatus status, std::string message) {
  stop_waiting(call);
  if (!is_stream(call.head.method) || call.is_pending) ++answered_;
  if (std::exchange(call.is_pending, false)) --pending_;
  call.status = status;
  call.message = std::move(message);
  call.is_finished = true;
  drop_input(call);
  if (call.is_answering || !call.out.empty()) {
    open_response(call);
    return resume(call);
  }
  call.is_answering = true;
  std::string encoded;
  std::array<nghttp2_nv, 5> fields = {field(":status", "200"), field("content-type", "application/grpc"),
                                      field("grpc-status", protocol::to_string(status))};
  std::size_t count = 3;
  if (!call.message.empty()) {
    encoded = protocol::percent_encoded(call.message);
    fields[count++] = copied("grpc-message", encoded);
  }
  if (call.head.is_encoded) fields[count++] = field("grpc-accept-encoding", "identity");
  nghttp2_submit_response(http2_, call.stream, fields.data(), count, nullptr);
}

void GrpcSession::resume(GrpcCall& call) {
  if (std::exchange(call.is_waiting, false)) nghttp2_session_resume_data(http2_, call.stream);
}

void GrpcSession::submit_trailers(GrpcCall& call) {
  std::array<nghttp2_nv, 2> fields = {field("grpc-status", protocol::to_string(call.status))};
  if (call.message.empty()) {
    nghttp2_submit_trailer(http2_, call.stream, fields.data(), 1);
    return;
  }
  const std::string encoded = protocol::percent_encoded(call.message);
  fields[1] = copied("grpc-message", encoded);
  nghttp2_submit_trailer(http2_, call.stream, fields.data(), fields.size());
}

ssize_t GrpcSession::on_read(nghttp2_session*, std::int32_t, std::uint8_t* buffer, std::size_t size,
                             std::uint32_t* flags, nghttp2_data_source* source, void* self) {
  try {
    return static_cast<GrpcSession*>(self)->read_answer(*static_cast<GrpcCall*>(source->ptr), buffer, size, flags);
  } catch (const std::exception&) {
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
}

// As many bytes as the client's windows allow.
ssize_t GrpcSession::read_answer(GrpcCall& call, std::uint8_t* buffer, std::size_t size, std::uint32_t* flags) {
  const std::size_t part = std::min(size, call.out.size() - call.sent);
  std::memcpy(buffer, call.out.data() + call.sent, part);
  call.sent += part;
  unsent_ -= part;
  call.take_due = kNever;
  if (call.sent < call.out.size()) return static_cast<ssize_t>(part);
  call.out.clear();
  call.sent = 0;
  if (call.head.method == GrpcMethod::reflection && !call.is_finished) answer_messages(call);
  if (!call.out.empty()) return static_cast<ssize_t>(part);
  if (call.is_finished) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (call.is_foreign) return static_cast<ssize_t>(part);
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    submit_trailers(call);
    return static_cast<ssize_t>(part);
  }
  if (part > 0) return static_cast<ssize_t>(part);
  call.is_waiting = true;
  return NGHTTP2_ERR_DEFERRED;
}

}  // namespace weir::server::grpc
