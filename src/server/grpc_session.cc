// gRPC over HTTP/2, by nghttp2. See grpc_session.h.
//
// With grpc_fields.h, all that sees nghttp2. It is fed what arrived and calls back; what it wants to send is taken from
// it after each piece. Nothing may be thrown through it. A call is the user data of its stream, and is gone once that
// is closed.
#include "server/grpc_session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <utility>

#include "server/grpc_fields.h"
#include "server/grpc_greeting.h"
#include "server/grpc_past.h"

namespace weir {
namespace {

// So much is read before what it causes is sent: an answer is rarely more than ten times its request.
constexpr std::size_t kPiece = std::size_t{16} << 10;
// A stream of questions is answered no further while so many bytes of answers are not taken.
constexpr std::size_t kAnswersAhead = std::size_t{64} << 10;
// What a client of plain HTTP may send before it is answered. Twice as much ends its request, answer or not.
constexpr std::size_t kSurplusMax = std::size_t{64} << 10;
constexpr std::int32_t kConnectionWindow = 1 << 20;
constexpr std::string_view kShuttingDown = "the server is shutting down";

class GrpcSession final : public Session {
 public:
  explicit GrpcSession(GrpcService& service) : service_(service) { begin(); }
  GrpcSession(const GrpcSession&) = delete;
  GrpcSession& operator=(const GrpcSession&) = delete;
  ~GrpcSession() override {
    while (open_ != nullptr) forget(open_);
    nghttp2_session_del(http2_);
  }

  Progress consume(std::string_view input, Turn& turn, std::string& output) override;
  Micros due() const override { return std::min(earliest_, is_final_ ? kNever : final_due_); }
  void wake(Micros now, std::string& output) override;
  void tell_watchers(std::string& output) override;
  void drain(std::string& output) override;
  bool is_drained() const override;
  void give_up(GiveUp why, std::string& output) override;
  std::size_t held() const override { return held_; }

 private:
  void begin();
  Progress greet(std::string_view input, std::string& output);
  ssize_t receive(std::string_view piece);
  bool send(std::string& output);
  void set_deadlines();
  Phase phase() const;
  void say_goodbye();

  // What nghttp2 calls.
  template <auto kMember>
  struct Callback;
  int on_begin_headers(const nghttp2_frame* frame);
  int on_header(const nghttp2_frame* frame, std::string_view name, std::string_view value);
  int on_data(std::int32_t stream, std::string_view data);
  int on_frame(const nghttp2_frame* frame);
  int on_sent(const nghttp2_frame* frame);
  int on_close(std::int32_t stream);
  int reset(const GrpcCall& call) {
    return nghttp2_submit_rst_stream(http2_, NGHTTP2_FLAG_NONE, call.stream, NGHTTP2_NO_ERROR);
  }
  static nghttp2_data_provider answer_of(GrpcCall& call) {
    nghttp2_data_provider provider{};
    provider.source.ptr = &call;
    provider.read_callback = on_read;
    return provider;
  }
  static ssize_t on_read(nghttp2_session*, std::int32_t, std::uint8_t* buffer, std::size_t size, std::uint32_t* flags,
                         nghttp2_data_source* source, void* self);
  ssize_t read_answer(GrpcCall& call, std::uint8_t* buffer, std::size_t size, std::uint32_t* flags);

  // The life of a call.
  GrpcCall* call_of(std::int32_t stream) {
    return static_cast<GrpcCall*>(nghttp2_session_get_stream_user_data(http2_, stream));
  }
  void forget(GrpcCall* call);
  void start(GrpcCall& call);
  int take_surplus(GrpcCall& call, std::size_t size);
  void refuse_http(GrpcCall& call);
  void take_messages(GrpcCall& call);
  void answer_questions(GrpcCall& call);
  void end_request(GrpcCall& call);
  void run(GrpcCall& call, std::string_view message);
  void open_response(GrpcCall& call);
  void finish(GrpcCall& call, GrpcStatus status, std::string message = {});
  void submit_trailers(GrpcCall& call);
  void resume(GrpcCall& call);
  void tell_health(GrpcCall& call);
  void dismiss(GrpcCall& call);
  void expire(GrpcCall& call);
  void drop_input(GrpcCall& call) {
    held_ -= call.in.size();
    call.in.clear();
  }
  // Whoever has handed over drains too, and the server goes on.
  ServingStatus serving() const {
    const bool is_stopping = service_.stopping == nullptr ? is_draining_ : service_.stopping->load();
    return is_stopping ? ServingStatus::not_serving : ServingStatus::serving;
  }

  GrpcService& service_;
  nghttp2_session* http2_ = nullptr;
  GrpcCall* open_ = nullptr;  // all calls, the newest first
  std::size_t pending_ = 0;   // of them: the request is not complete
  std::size_t held_ = 0;      // bytes of requests and answers
  std::size_t answered_ = 0;  // since consume() began
  Micros earliest_ = kNever;  // no deadline is earlier
  Micros final_due_ = kNever;
  GrpcPast past_;
  std::int32_t header_of_ = 0;  // the stream whose header fields are coming
  bool is_greeted_ = false;
  bool is_broken_ = false;  // nothing more can be said
  bool is_draining_ = false;
  bool is_final_ = false;  // the last GOAWAY was said
};

// The C functions behind the members; an exception becomes the end of the connection.
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
};

void GrpcSession::begin() {
  nghttp2_session_callbacks* callbacks = nullptr;
  WEIR_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0);
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        return Callback<&GrpcSession::on_begin_headers>::call(self, frame);
      });
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
        return Callback<&GrpcSession::on_header>::call(self, frame, text(name, name_size), text(value, value_size));
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data, std::size_t size,
                    void* self) { return Callback<&GrpcSession::on_data>::call(self, stream, text(data, size)); });
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
                                                       [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
                                                         return Callback<&GrpcSession::on_frame>::call(self, frame);
                                                       });
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks,
                                                       [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
                                                         return Callback<&GrpcSession::on_sent>::call(self, frame);
                                                       });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, std::int32_t stream, std::uint32_t, void* self) {
        return Callback<&GrpcSession::on_close>::call(self, stream);
      });
  nghttp2_option* options = nullptr;
  WEIR_ASSERT(nghttp2_option_new(&options) == 0);
  nghttp2_option_set_no_closed_streams(options, 1);
  nghttp2_option_set_stream_reset_rate_limit(options, kGrpcResetsBurst, kGrpcResetsPerSecond);
  WEIR_ASSERT(nghttp2_session_server_new2(&http2_, callbacks, this, options) == 0);
  nghttp2_option_del(options);
  nghttp2_session_callbacks_del(callbacks);

  const std::array<nghttp2_settings_entry, 2> settings = {
      {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kGrpcCallsMax},
       {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(kGrpcHeaderMax)}}};
  WEIR_ASSERT(nghttp2_submit_settings(http2_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0);
  WEIR_ASSERT(nghttp2_session_set_local_window_size(http2_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) == 0);
}

Progress GrpcSession::consume(std::string_view input, Turn&, std::string& output) {
  if (!is_greeted_) {
    const Progress greeted = greet(input, output);
    if (!is_greeted_) return greeted;
  }
  Progress progress;
  answered_ = 0;
  is_broken_ = is_broken_ || !send(output);
  while (!is_broken_ && output.size() < kOutputMax && progress.consumed < input.size()) {
    const std::string_view piece = input.substr(progress.consumed, kPiece);
    const ssize_t used = receive(piece);
    if (used >= 0) progress.consumed += static_cast<std::size_t>(used);
    is_broken_ = !send(output) || used < 0;
  }
  set_deadlines();
  const bool wants_write = nghttp2_session_want_write(http2_) != 0;
  progress.full = !is_broken_ && output.size() >= kOutputMax && (wants_write || progress.consumed < input.size());
  progress.close = is_broken_ || (nghttp2_session_want_read(http2_) == 0 && !wants_write);
  if (progress.close) progress.consumed = input.size();
  progress.answered = answered_;
  progress.phase = phase();
  return progress;
}

// How much of it was used; negative if the connection is to end.
ssize_t GrpcSession::receive(std::string_view piece) {
  const GrpcPast::Fault fault = past_.watch(piece);
  if (fault == GrpcPast::Fault::none) return nghttp2_session_mem_recv(http2_, bytes_of(piece), piece.size());
  const bool has_ended = fault == GrpcPast::Fault::ended;
  nghttp2_session_terminate_session(http2_, has_ended ? NGHTTP2_STREAM_CLOSED : NGHTTP2_PROTOCOL_ERROR);
  return -1;
}

Progress GrpcSession::greet(std::string_view input, std::string& output) {
  Progress progress;
  const Greeting greeting = read_greeting(input);
  progress.phase = input.empty() ? Phase::idle : Phase::header;
  is_greeted_ = greeting.state == Greeting::State::http2;
  if (greeting.state != Greeting::State::foreign) return progress;
  output.append(greeting.answer);
  progress.consumed = input.size();
  progress.close = true;
  return progress;
}

// Takes what there is to send. False if the connection is beyond repair.
bool GrpcSession::send(std::string& output) {
  while (output.size() < kOutputMax) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(http2_, &data);
    if (size < 0) return false;
    if (size == 0) return true;
    output.append(text(data, static_cast<std::size_t>(size)));
  }
  return true;
}

// The clock is read only for calls that outlive the bytes that they came with. The new ones stand first.
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
    const Micros most = call->is_pending || call->is_foreign ? kGrpcPatience : kNever;
    const Micros wait = std::min(call->head.timeout, most);
    call->deadline = wait == kNever ? kNever : now + wait;
    earliest_ = std::min(earliest_, call->deadline);
  }
}

Phase GrpcSession::phase() const {
  if (header_of_ != 0) return Phase::header;
  return pending_ > 0 ? Phase::body : Phase::idle;
}

void GrpcSession::wake(Micros now, std::string& output) {
  earliest_ = kNever;
  for (GrpcCall *call = open_, *next = nullptr; call != nullptr; call = next) {
    next = call->next;
    if (call->is_finished && !call->is_foreign) continue;
    if (call->deadline <= now) {
      expire(*call);
    } else {
      earliest_ = std::min(earliest_, call->deadline);
    }
  }
  if (is_draining_ && !is_final_ && now >= final_due_) say_goodbye();
  is_broken_ = is_broken_ || !send(output);
}

void GrpcSession::expire(GrpcCall& call) {
  if (!call.is_foreign) return finish(call, GrpcStatus::deadline_exceeded, "the deadline has passed");
  if (!call.is_finished) return refuse_http(call);
  reset(call);
}

// First a notice, which every client has heard once it has answered a ping; then the last GOAWAY, after which no call
// can be lost on the way.
void GrpcSession::drain(std::string& output) {
  if (std::exchange(is_draining_, true) || !is_greeted_) return;
  final_due_ = service_.limiter.now() + kGrpcDrainNotice;
  for (GrpcCall *call = open_, *next = nullptr; call != nullptr; call = next) {
    next = call->next;
    if (is_stream(call->head.method) && !call->is_pending && !call->is_finished) dismiss(*call);
  }
  nghttp2_submit_shutdown_notice(http2_);
  nghttp2_submit_ping(http2_, NGHTTP2_FLAG_NONE, nullptr);
  is_broken_ = is_broken_ || !send(output);
}

void GrpcSession::tell_watchers(std::string& output) {
  for (GrpcCall* call = open_; call != nullptr; call = call->next) {
    if (call->head.method != GrpcMethod::health_watch || call->is_pending || call->is_finished) continue;
    tell_health(*call);
    resume(*call);
  }
  is_broken_ = is_broken_ || !send(output);
}

void GrpcSession::tell_health(GrpcCall& call) {
  const std::size_t before = call.out.size();
  service_.methods.run(call.head.method, {}, serving(), call.out);
  held_ += call.out.size() - before;
}

// Ends a stream that would go on for ever: whoever watches is told that the server no longer serves.
void GrpcSession::dismiss(GrpcCall& call) {
  if (call.head.method == GrpcMethod::health_watch && serving() == ServingStatus::not_serving) tell_health(call);
  finish(call, GrpcStatus::unavailable, std::string(kShuttingDown));
}

void GrpcSession::say_goodbye() {
  is_final_ = true;
  const std::int32_t last = nghttp2_session_get_last_proc_stream_id(http2_);
  nghttp2_submit_goaway(http2_, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0);
}

bool GrpcSession::is_drained() const {
  if (!is_greeted_ || is_broken_) return true;
  return is_final_ && open_ == nullptr && nghttp2_session_want_write(http2_) == 0;
}

void GrpcSession::give_up(GiveUp why, std::string& output) {
  if (!is_greeted_ && why == GiveUp::too_slow) return;  // nobody knows what it would have spoken
  std::string_view reason = "a request was not finished in time";
  if (why == GiveUp::no_room) reason = "all connections together hold as much memory as they may";
  if (why == GiveUp::too_crowded) reason = "as many connections as may be are open";
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
  if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  if (GrpcCall* call = call_of(frame->hd.stream_id)) read_grpc_field(name, value, call->head);
  return 0;
}

int GrpcSession::on_data(std::int32_t stream, std::string_view data) {
  GrpcCall* call = call_of(stream);
  if (call != nullptr && call->is_foreign) return take_surplus(*call, data.size());
  if (call == nullptr || call->is_finished) return 0;
  if (call->head.method == GrpcMethod::health_watch && !call->is_pending) return 0;
  if (held_ + data.size() > kGrpcHeldMax) {
    finish(*call, GrpcStatus::resource_exhausted, "the calls of this connection hold as much memory as they may");
    return 0;
  }
  held_ += data.size();
  call->in.append(data);
  take_messages(*call);
  return 0;
}

int GrpcSession::on_frame(const nghttp2_frame* frame) {
  const nghttp2_frame_hd& head = frame->hd;
  if (head.type == NGHTTP2_PING) {
    if (has_flag(frame, NGHTTP2_FLAG_ACK) && is_draining_ && !is_final_) say_goodbye();
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

// Whoever was answered before the end of its request need not send the rest. A client of plain HTTP in the midst of
// sending would lose the answer by a reset that comes with it; it has until twice kSurplusMax.
int GrpcSession::on_sent(const nghttp2_frame* frame) {
  if (!has_flag(frame, NGHTTP2_FLAG_END_STREAM)) return 0;
  const GrpcCall* call = call_of(frame->hd.stream_id);
  if (call == nullptr || call->has_request_end || call->surplus > kSurplusMax) return 0;
  return reset(*call);
}

int GrpcSession::on_close(std::int32_t stream) {
  if (header_of_ == stream) header_of_ = 0;
  if (GrpcCall* call = call_of(stream)) forget(call);
  return 0;
}

void GrpcSession::forget(GrpcCall* call) {
  (call->before == nullptr ? open_ : call->before->next) = call->next;
  if (call->next != nullptr) call->next->before = call->before;
  if (call->is_pending) --pending_;
  held_ -= kGrpcCallBytes + call->in.size() + call->out.size() - call->sent;
  service_.calls.give(call);
}

// Its header fields are complete.
void GrpcSession::start(GrpcCall& call) {
  const GrpcHead& head = call.head;
  call.is_foreign = !head.is_post || !head.is_grpc;
  if (call.is_foreign) return;
  if (auto refused = refuse_grpc_head(head)) return finish(call, refused->status, std::move(refused->message));
  if (head.method != GrpcMethod::reflection) return;
  call.is_pending = false;
  --pending_;
  if (is_draining_) dismiss(call);
}

// An answer of HTTP only, for those who do not speak gRPC. It waits for the end of the request, if that comes soon.
void GrpcSession::refuse_http(GrpcCall& call) {
  call.is_answering = call.is_finished = true;
  if (std::exchange(call.is_pending, false)) --pending_;
  ++answered_;
  const bool is_post = call.head.is_post;
  const std::array fields = {field(":status", is_post ? "415" : "405"),
                             is_post ? field("accept", "application/grpc") : field("allow", "POST"),
                             field("content-type", "text/plain; charset=utf-8")};
  call.out = call.head.is_head ? std::string_view() : kSpeaksGrpc;
  held_ += call.out.size();
  const nghttp2_data_provider provider = answer_of(call);
  nghttp2_submit_response(http2_, call.stream, fields.data(), fields.size(), call.out.empty() ? nullptr : &provider);
}

int GrpcSession::take_surplus(GrpcCall& call, std::size_t size) {
  call.surplus += size;
  if (call.surplus > 2 * kSurplusMax) return reset(call);
  if (call.surplus > kSurplusMax && !call.is_finished) refuse_http(call);
  return 0;
}

void GrpcSession::take_messages(GrpcCall& call) {
  if (call.head.method == GrpcMethod::reflection) return answer_questions(call);
  const GrpcMessage message = read_grpc_message(call.in);
  if (message.state == GrpcMessage::State::need_more) return;
  if (message.state != GrpcMessage::State::complete) {
    GrpcOutcome refused = refuse_grpc_message(message);
    return finish(call, refused.status, std::move(refused.message));
  }
  if (message.consumed == call.in.size()) return;  // it is answered when the request ends
  finish(call, GrpcStatus::unimplemented, "this method takes one message, and more than one came");
}

// A stream of questions: each is answered in its turn, but not faster than the answers are taken.
void GrpcSession::answer_questions(GrpcCall& call) {
  std::size_t used = 0;
  GrpcMessage message;
  while (!call.is_finished && call.out.size() - call.sent < kAnswersAhead) {
    message = read_grpc_message(std::string_view(call.in).substr(used));
    if (message.state != GrpcMessage::State::complete) break;
    used += message.consumed;
    run(call, message.payload);
  }
  if (call.is_finished) return;
  call.in.erase(0, used);
  held_ -= used;
  if (call.out.size() - call.sent >= kAnswersAhead) return;  // later
  if (message.state != GrpcMessage::State::need_more) {
    GrpcOutcome refused = refuse_grpc_message(message);
    return finish(call, refused.status, std::move(refused.message));
  }
  if (!call.has_request_end) return;
  if (call.in.empty()) return finish(call, GrpcStatus::ok);
  finish(call, GrpcStatus::internal, "the request ended within a message");
}

void GrpcSession::end_request(GrpcCall& call) {
  if (call.is_foreign) return refuse_http(call);
  if (call.head.method == GrpcMethod::reflection) return answer_questions(call);
  if (!call.is_pending) return;  // of trailers after the end
  const GrpcMessage message = read_grpc_message(call.in);
  if (message.state == GrpcMessage::State::complete) return run(call, message.payload);
  if (call.in.empty()) return finish(call, GrpcStatus::unimplemented, "this method takes one message, and none came");
  finish(call, GrpcStatus::internal, "the request ended within a message");
}

void GrpcSession::run(GrpcCall& call, std::string_view message) {
  const std::size_t before = call.out.size();
  GrpcOutcome outcome = service_.methods.run(call.head.method, message, serving(), call.out);
  held_ += call.out.size() - before;
  if (outcome.status != GrpcStatus::ok) return finish(call, outcome.status, std::move(outcome.message));
  if (held_ > kGrpcHeldMax) {
    held_ -= call.out.size() - before;
    call.out.resize(before);
    return finish(call, GrpcStatus::resource_exhausted, "the answers of this connection are not taken");
  }
  if (!is_stream(call.head.method)) return finish(call, GrpcStatus::ok);
  ++answered_;
  if (std::exchange(call.is_pending, false)) --pending_;
  if (call.head.method == GrpcMethod::health_watch) drop_input(call);
  if (call.is_dated && call.head.timeout > kGrpcPatience) {  // which only holds for requests
    call.deadline = call.head.timeout == kNever ? kNever : call.deadline - kGrpcPatience + call.head.timeout;
  }
  open_response(call);
  resume(call);
  if (call.head.method == GrpcMethod::health_watch && is_draining_) {
    finish(call, GrpcStatus::unavailable, std::string(kShuttingDown));
  }
}

void GrpcSession::open_response(GrpcCall& call) {
  if (std::exchange(call.is_answering, true)) return;
  const std::array fields = {field(":status", "200"), field("content-type", "application/grpc")};
  const nghttp2_data_provider provider = answer_of(call);
  nghttp2_submit_response(http2_, call.stream, fields.data(), fields.size(), &provider);
}

// The status is the last thing to be told: behind the messages, or alone, if there are none.
void GrpcSession::finish(GrpcCall& call, GrpcStatus status, std::string message) {
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
                                      field("grpc-status", to_string(status))};
  std::size_t count = 3;
  if (!call.message.empty()) {
    encoded = percent_encoded(call.message);
    fields[count++] = copied("grpc-message", encoded);
  }
  if (call.head.is_encoded) fields[count++] = field("grpc-accept-encoding", "identity");
  nghttp2_submit_response(http2_, call.stream, fields.data(), count, nullptr);
}

void GrpcSession::resume(GrpcCall& call) {
  if (std::exchange(call.is_waiting, false)) nghttp2_session_resume_data(http2_, call.stream);
}

void GrpcSession::submit_trailers(GrpcCall& call) {
  std::array<nghttp2_nv, 2> fields = {field("grpc-status", to_string(call.status))};
  if (call.message.empty()) {
    nghttp2_submit_trailer(http2_, call.stream, fields.data(), 1);
    return;
  }
  const std::string encoded = percent_encoded(call.message);
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

// So much as the client's windows allow.
ssize_t GrpcSession::read_answer(GrpcCall& call, std::uint8_t* buffer, std::size_t size, std::uint32_t* flags) {
  const std::size_t part = std::min(size, call.out.size() - call.sent);
  std::memcpy(buffer, call.out.data() + call.sent, part);
  call.sent += part;
  held_ -= part;
  if (call.sent < call.out.size()) return static_cast<ssize_t>(part);
  call.out.clear();
  call.sent = 0;
  if (call.head.method == GrpcMethod::reflection && !call.is_finished) answer_questions(call);
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

}  // namespace

std::unique_ptr<Session> make_grpc_session(GrpcService& service) { return std::make_unique<GrpcSession>(service); }

}  // namespace weir
