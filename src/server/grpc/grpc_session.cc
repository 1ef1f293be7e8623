// The connection of a gRPC session, on nghttp2. See grpc_http2.h.
//
// Input is fed to nghttp2, which calls back. After each piece of input its output is taken. No exception may pass
// through nghttp2. Tested by grpc_session_test.cc and grpc_abuse_test.cc.
#include "server/grpc/grpc_session.h"

#include <array>
#include <chrono>
#include <exception>
#include <utility>

#include "server/grpc/grpc_greeting.h"
#include "server/grpc/grpc_http2.h"

namespace weir::server::grpc {
namespace {

// Input is read in pieces of this size, and output is sent between them: an answer is rarely more than ten times its
// request.
constexpr std::size_t kPiece = std::size_t{16} << 10;
// A call whose header fields exceed their bound is refused. At this multiple of the bound, its connection ends.
constexpr std::size_t kHeaderTimes = 4;
constexpr std::int32_t kConnectionWindow = 1 << 20;

}  // namespace

// The C functions that call the members; an exception ends the connection.
template <auto kMember>
struct GrpcSession::Callback {
  template <class... Args>
  static int call(void* self, Args... args) {
    try {
      return (static_cast<GrpcSession*>(self)->*kMember)(args...);
    } catch (const std::exception&) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }
  static int call_with_frame(nghttp2_session*, const nghttp2_frame* frame, void* self) { return call(self, frame); }
};

// Called only when the client has sent its preface, to save memory: many clients connect in advance and send nothing
// for days.
void GrpcSession::begin() {
  nghttp2_session_callbacks* callbacks = nullptr;
  WEIR_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
                                                          Callback<&GrpcSession::on_begin_headers>::call_with_frame);
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
        return Callback<&GrpcSession::on_header>::call(self, frame, view_of(name, name_size),
                                                       view_of(value, value_size));
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data, std::size_t size,
                    void* self) { return Callback<&GrpcSession::on_data>::call(self, stream, view_of(data, size)); });
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callback<&GrpcSession::on_frame>::call_with_frame);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callback<&GrpcSession::on_sent>::call_with_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, std::int32_t stream, std::uint32_t, void* self) {
        return Callback<&GrpcSession::on_close>::call(self, stream);
      });
  nghttp2_option* options = nullptr;
  WEIR_ASSERT(nghttp2_option_new(&options) == 0);
  nghttp2_option_set_no_closed_streams(options, 1);
  const loop::GrpcBounds& bounds = service_.bounds.grpc;
  nghttp2_option_set_stream_reset_rate_limit(options, 2 * bounds.resets_per_second, bounds.resets_per_second);
  WEIR_ASSERT(nghttp2_session_server_new2(&http2_, callbacks, this, options) == 0);
  nghttp2_option_del(options);
  nghttp2_session_callbacks_del(callbacks);

  const std::array<nghttp2_settings_entry, 2> settings = {
      {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, bounds.calls_max},
       {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(service_.bounds.http.header_max)}}};
  WEIR_ASSERT(nghttp2_submit_settings(http2_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0);
  WEIR_ASSERT(nghttp2_session_set_local_window_size(http2_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) == 0);
}

loop::Progress GrpcSession::consume(std::string_view input, loop::Turn& turn, std::string& output) {
  if (!is_greeted_) {
    const loop::Progress greeted = greet(input, output);
    if (!is_greeted_) return greeted;
    begin();
    if (is_draining_) begin_drain();
  }
  loop::Progress progress;
  answered_ = 0;
  sheds_ = turn.sheds();
  is_broken_ = is_broken_ || !send(output);
  while (!is_broken_ && output.size() < service_.bounds.output_max && progress.consumed < input.size()) {
    const std::string_view piece = input.substr(progress.consumed, kPiece);
    const std::size_t answered = answered_;
    const ssize_t used = receive(piece, turn.now());
    if (used >= 0) progress.consumed += static_cast<std::size_t>(used);
    allowance_.earn(answered_ - answered);
    is_broken_ = !send(output) || used < 0 || (!is_calm(turn.now()) && !send(output));
  }
  set_deadlines();
  const bool wants_write = nghttp2_session_want_write(http2_) != 0;
  progress.full =
      !is_broken_ && output.size() >= service_.bounds.output_max && (wants_write || progress.consumed < input.size());
  progress.close = is_broken_ || (nghttp2_session_want_read(http2_) == 0 && !wants_write);
  if (progress.close) progress.consumed = input.size();
  progress.answered = answered_ + std::exchange(answered_late_, 0);
  progress.phase = phase();
  return progress;
}

// Returns how much was used; negative if the connection must end.
ssize_t GrpcSession::receive(std::string_view piece, Micros now) {
  const GrpcFrames::Fault fault = frames_.watch(piece);
  if (!is_calm(now)) return -1;
  if (fault == GrpcFrames::Fault::none) return nghttp2_session_mem_recv(http2_, bytes_of(piece), piece.size());
  const bool has_ended = fault == GrpcFrames::Fault::ended;
  nghttp2_session_terminate_session(http2_, has_ended ? NGHTTP2_STREAM_CLOSED : NGHTTP2_PROTOCOL_ERROR);
  return -1;
}

// False if the client keeps the server busy with frames that are not calls: the connection is then ending.
bool GrpcSession::is_calm(Micros now) {
  if (allowance_.charge(frames_.take_idle_frames() + std::exchange(resets_, 0), now)) return true;
  service_.bounds.refuse(loop::Refused::streams);
  nghttp2_session_terminate_session(http2_, NGHTTP2_ENHANCE_YOUR_CALM);
  return false;
}

loop::Progress GrpcSession::greet(std::string_view input, std::string& output) {
  loop::Progress progress;
  const Greeting greeting = read_greeting(input, service_.is_redis_command);
  progress.phase = input.empty() ? loop::Phase::idle : loop::Phase::header;
  is_greeted_ = greeting.state == Greeting::State::http2;
  if (greeting.state != Greeting::State::foreign) return progress;
  service_.bounds.refuse(loop::Refused::malformed);
  output.append(greeting.answer);
  progress.consumed = input.size();
  progress.close = true;
  return progress;
}

// Takes nghttp2's output. False if the connection cannot continue.
bool GrpcSession::send(std::string& output) {
  const bool is_sound = take_frames(output);
  take_due_ = kNever;
  if (unsent_ > 0) watch_answers();
  return is_sound;
}

bool GrpcSession::take_frames(std::string& output) {
  while (output.size() < service_.bounds.output_max) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(http2_, &data);
    if (size < 0) return false;
    if (size == 0) return true;
    output.append(view_of(data, static_cast<std::size_t>(size)));
  }
  return true;
}

// The clock is read only for calls that outlive the input they came with. New calls are first in the list.
void GrpcSession::set_deadlines() {
  if (open_ == nullptr) {
    earliest_ = kNever;
    return;
  }
  if (open_->is_dated) return;
  const Micros now = service_.limiter.now();
  for (GrpcCall* call = open_; call != nullptr && !call->is_dated; call = call->next) {
    call->is_dated = true;
    if (call->is_finished && !call->is_foreign) continue;
    const Micros most = call->is_pending || call->is_foreign ? kGrpcRequestMax : kNever;
    const Micros wait = std::min(call->head.timeout, most);
    call->deadline = wait == kNever ? kNever : now + wait;
    earliest_ = std::min(earliest_, call->deadline);
  }
}

// Output that is left over waits for the client to widen a window. The connection detects a socket that accepts
// nothing, but a closed window shows only here. Output is rarely left over, so looking at all calls costs nothing.
void GrpcSession::watch_answers() {
  const Micros due = service_.limiter.now() + std::chrono::seconds(service_.bounds.write_seconds);
  for (GrpcCall* call = open_; call != nullptr; call = call->next) {
    if (call->sent == call->out.size()) continue;
    call->take_due = std::min(call->take_due, due);
    take_due_ = std::min(take_due_, call->take_due);
  }
}

bool GrpcSession::is_blocked(const GrpcCall& call) const {
  return nghttp2_session_get_remote_window_size(http2_) <= 0 ||
         nghttp2_session_get_stream_remote_window_size(http2_, call.stream) <= 0;
}

// Ends the calls whose output the client has not read for too long. Other calls of this connection continue: behind a
// proxy they may belong to other clients.
void GrpcSession::drop_unread(Micros now) {
  for (GrpcCall* call = open_; call != nullptr; call = call->next) {
    if (call->take_due > now) continue;
    call->take_due = kNever;
    if (!is_blocked(*call)) continue;
    service_.bounds.refuse(loop::Refused::unread);
    nghttp2_submit_rst_stream(http2_, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

loop::Phase GrpcSession::phase() const {
  if (header_of_ != 0) return loop::Phase::header;
  if (pending_ > 0) return loop::Phase::body;
  return frames_.is_within_frame() ? loop::Phase::header : loop::Phase::idle;
}

void GrpcSession::wake(Micros now, std::string& output) {
  if (http2_ == nullptr) return;
  take_decided();
  earliest_ = kNever;
  for (GrpcCall *call = open_, *next = nullptr; call != nullptr; call = next) {
    next = call->next;
    if (call->is_finished && !call->is_foreign) continue;
    if (const Micros due = std::min(call->deadline, call->message_due); due <= now) {
      expire(*call);
    } else {
      earliest_ = std::min(earliest_, due);
    }
  }
  if (now >= take_due_) drop_unread(now);
  if (is_draining_ && !is_final_ && now >= final_due_) send_last_goaway();
  is_broken_ = is_broken_ || !send(output);
}

// A client that has not sent its preface gets the notice after its preface.
void GrpcSession::drain(std::string& output) {
  if (std::exchange(is_draining_, true) || !is_greeted_) return;
  begin_drain();
  is_broken_ = is_broken_ || !send(output);
}

// First a shutdown notice, which the client has seen once it has answered a ping. Then the last GOAWAY, after which
// no call can be lost on the way.
void GrpcSession::begin_drain() {
  final_due_ = service_.limiter.now() + kGrpcDrainNotice;
  for (GrpcCall *call = open_, *next = nullptr; call != nullptr; call = next) {
    next = call->next;
    if (is_stream(call->head.method) && !call->is_pending && !call->is_finished) dismiss(*call);
  }
  nghttp2_submit_shutdown_notice(http2_);
  nghttp2_submit_ping(http2_, NGHTTP2_FLAG_NONE, nullptr);
}

void GrpcSession::announce_stop(std::string& output) {
  if (!is_greeted_) return;
  for (GrpcCall* call = open_; call != nullptr; call = call->next) {
    if (call->head.method != GrpcMethod::health_watch || call->is_pending || call->is_finished) continue;
    send_health(*call);
    resume(*call);
  }
  is_broken_ = is_broken_ || !send(output);
}

void GrpcSession::send_last_goaway() {
  is_final_ = true;
  const std::int32_t last = nghttp2_session_get_last_proc_stream_id(http2_);
  nghttp2_submit_goaway(http2_, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0);
}

bool GrpcSession::is_drained() const {
  if (!is_greeted_ || is_broken_) return true;
  return is_final_ && open_ == nullptr && nghttp2_session_want_write(http2_) == 0;
}

void GrpcSession::give_up(loop::GiveUp why, std::string& output) {
  if (!is_greeted_ && why == loop::GiveUp::too_slow) return;  // the client's protocol is unknown
  if (http2_ == nullptr) begin();
  const std::string_view all = loop::reason_of(why),
                         reason = all.substr(0, all.find(';'));  // short enough for a GOAWAY
  nghttp2_submit_goaway(http2_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(http2_),
                        NGHTTP2_ENHANCE_YOUR_CALM, bytes_of(reason), reason.size());
  is_broken_ = is_broken_ || !send(output);
}

int GrpcSession::on_begin_headers(const nghttp2_frame* frame) {
  if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  GrpcCall* call = service_.calls.take();
  call->stream = frame->hd.stream_id;
  call->next = open_;
  if (open_ != nullptr) open_->before = call;
  open_ = call;
  ++pending_;
  held_ += kGrpcCallBytes;
  header_of_ = call->stream;
  nghttp2_session_set_stream_user_data(http2_, call->stream, call);
  return 0;
}

int GrpcSession::on_header(const nghttp2_frame* frame, std::string_view name, std::string_view value) {
  GrpcCall* const call = call_of(frame->hd.stream_id);
  if (call == nullptr) return 0;
  if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
    read_grpc_field(name, value, call->head);
  } else {
    count_grpc_field(name, value, call->head);
  }
  if (call->head.bytes <= kHeaderTimes * service_.bounds.http.header_max) return 0;
  service_.bounds.refuse(loop::Refused::header);
  nghttp2_session_terminate_session(http2_, NGHTTP2_ENHANCE_YOUR_CALM);
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

int GrpcSession::on_frame(const nghttp2_frame* frame) {
  const nghttp2_frame_hd& head = frame->hd;
  if (head.type == NGHTTP2_PING) {
    if (has_flag(frame, NGHTTP2_FLAG_ACK) && is_draining_ && !is_final_) send_last_goaway();
    return 0;
  }
  if (head.type != NGHTTP2_HEADERS && head.type != NGHTTP2_DATA) return 0;
  GrpcCall* call = call_of(head.stream_id);
  if (head.type == NGHTTP2_HEADERS) header_of_ = 0;
  if (call == nullptr) return 0;
  call->has_request_end = has_flag(frame, NGHTTP2_FLAG_END_STREAM);
  if (head.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) start(*call);
  if (call->has_request_end && !call->is_finished) end_request(*call);
  return 0;
}

// If a client is answered before the end of its request, it need not send the rest. But a plain HTTP client that is
// still sending could lose the answer when the stream is reset, so it may send up to twice kSurplusMax first.
int GrpcSession::on_sent(const nghttp2_frame* frame) {
  if (frame->hd.type == NGHTTP2_RST_STREAM) note_reset(frame->rst_stream.error_code);
  if (frame->hd.type == NGHTTP2_GOAWAY) note_end(frame->goaway.error_code);
  if (!has_flag(frame, NGHTTP2_FLAG_END_STREAM)) return 0;
  const GrpcCall* call = call_of(frame->hd.stream_id);
  if (call == nullptr || call->has_request_end || call->surplus > kSurplusMax) return 0;
  return reset(*call);
}

void GrpcSession::note_reset(std::uint32_t error) {
  if (error == NGHTTP2_NO_ERROR) return;
  ++resets_;
  if (error == NGHTTP2_REFUSED_STREAM) service_.bounds.refuse(loop::Refused::streams);
}

// nghttp2 reports an internal error if a client resets too much. ENHANCE_YOUR_CALM is counted where it is sent.
void GrpcSession::note_end(std::uint32_t error) {
  if (error == NGHTTP2_NO_ERROR || error == NGHTTP2_ENHANCE_YOUR_CALM) return;
  service_.bounds.refuse(error == NGHTTP2_INTERNAL_ERROR ? loop::Refused::streams : loop::Refused::malformed);
}

int GrpcSession::on_close(std::int32_t stream) {
  if (header_of_ == stream) header_of_ = 0;
  if (GrpcCall* call = call_of(stream)) drop_call(call);
  return 0;
}

std::unique_ptr<loop::Session> make_grpc_session(GrpcService& service) {
  return std::make_unique<GrpcSession>(service);
}

}  // namespace weir::server::grpc
