// A gRPC connection on nghttp2: the class behind make_grpc_session(), in two files.
//
// grpc_session.cc is the connection: input, callbacks and output of nghttp2. grpc_call_life.cc is a call from its
// header fields to its trailers. A call is the user data of its stream, and ends when the stream is closed. Only
// these files see nghttp2. One thread. Tested by grpc_session_test.cc and grpc_abuse_test.cc.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/grpc/grpc_frames.h"
#include "server/grpc/grpc_session.h"

namespace weir::server::grpc {

// Conversions between our strings and the bytes and flags of nghttp2.
inline constexpr std::uint8_t kNoCopy = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;

inline std::uint8_t* bytes_of(std::string_view text) {
  return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
}

// field() is for literals, which nghttp2 need not copy; copied() is for values that do not last.
inline nghttp2_nv field(std::string_view name, std::string_view value) {
  return {bytes_of(name), bytes_of(value), name.size(), value.size(), kNoCopy};
}
inline nghttp2_nv copied(std::string_view name, std::string_view value) {
  return {bytes_of(name), bytes_of(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

inline std::string_view view_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline bool has_flag(const nghttp2_frame* frame, std::uint8_t flag) { return (frame->hd.flags & flag) != 0; }

// How many bytes a plain HTTP client may send before it gets its answer. After twice as many, the server ends the
// request.
inline constexpr std::size_t kSurplusMax = std::size_t{64} << 10;

class GrpcSession final : public loop::Session, private GrpcDecisionOwner {
 public:
  explicit GrpcSession(GrpcService& service) : service_(service), allowance_(service.bounds.grpc.frames_per_second) {}
  GrpcSession(const GrpcSession&) = delete;
  GrpcSession& operator=(const GrpcSession&) = delete;
  ~GrpcSession() override {
    while (open_ != nullptr) drop_call(open_);
    while (decided_ != nullptr) service_.decisions.give(next_decided());
    nghttp2_session_del(http2_);
  }

  void set_owner(loop::SessionOwner* owner) override { owner_ = owner; }

  loop::Progress consume(std::string_view input, loop::Turn& turn, std::string& output) override;
  Micros due() const override { return std::min({earliest_, take_due_, is_final_ ? kNever : final_due_}); }
  void wake(Micros now, std::string& output) override;
  void announce_stop(std::string& output) override;
  void drain(std::string& output) override;
  bool is_drained() const override;
  void give_up(loop::GiveUp why, std::string& output) override;
  std::size_t held() const override { return held_ + unsent_; }

 private:
  void begin();
  loop::Progress greet(std::string_view input, std::string& output);
  ssize_t receive(std::string_view piece, Micros now);
  bool is_calm(Micros now);
  bool send(std::string& output);
  bool take_frames(std::string& output);
  void set_deadlines();
  void watch_answers();
  void drop_unread(Micros now);
  bool is_blocked(const GrpcCall& call) const;
  loop::Phase phase() const;
  void begin_drain();
  void send_last_goaway();

  // Callbacks of nghttp2.
  template <auto kMember>
  struct Callback;
  int on_begin_headers(const nghttp2_frame* frame);
  int on_header(const nghttp2_frame* frame, std::string_view name, std::string_view value);
  int on_data(std::int32_t stream, std::string_view data);
  int on_frame(const nghttp2_frame* frame);
  int on_sent(const nghttp2_frame* frame);
  int on_close(std::int32_t stream);
  void note_reset(std::uint32_t error);
  void note_end(std::uint32_t error);
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
  void drop_call(GrpcCall* call);
  void start(GrpcCall& call);
  int take_surplus(GrpcCall& call, std::size_t size);
  void refuse_http(GrpcCall& call);
  protocol::GrpcMessage next_message(std::string_view bytes) const {
    return protocol::read_grpc_message(bytes, service_.bounds.body_max);
  }
  void refuse_message(GrpcCall& call, const protocol::GrpcMessage& message);
  void take_messages(GrpcCall& call);
  void answer_messages(GrpcCall& call);
  void wait_for_message(GrpcCall& call);
  void end_request(GrpcCall& call);
  void run(GrpcCall& call, std::string_view message);
  GrpcOutcome decide(GrpcCall& call, std::string_view message);
  void shed(GrpcCall& call);
  bool decide_on_fiber(GrpcCall& call, std::string_view message, GrpcOutcome& outcome);
  void on_decided(GrpcDecision& decision) override;
  void take_decided();
  std::unique_ptr<GrpcDecision> next_decided() {
    return std::unique_ptr<GrpcDecision>(std::exchange(decided_, decided_->next));
  }
  void answer(GrpcCall& call, std::size_t before, GrpcOutcome outcome);
  static void stop_waiting(GrpcCall& call) {
    if (call.decision != nullptr) std::exchange(call.decision, nullptr)->drop_result();
  }
  void open_response(GrpcCall& call);
  void finish(GrpcCall& call, protocol::GrpcStatus status, std::string message = {});
  void submit_trailers(GrpcCall& call);
  void resume(GrpcCall& call);
  void send_health(GrpcCall& call);
  void dismiss(GrpcCall& call);
  void expire(GrpcCall& call);
  void drop_input(GrpcCall& call) {
    held_ -= call.in.size();
    call.in.clear();
  }
  // A process that has handed over also drains, but the server still serves.
  protocol::ServingStatus serving() const {
    const bool is_stopping = service_.stopping == nullptr ? is_draining_ : service_.stopping->load();
    return is_stopping ? protocol::ServingStatus::not_serving : protocol::ServingStatus::serving;
  }

  GrpcService& service_;
  loop::SessionOwner* owner_ = nullptr;
  GrpcDecision* decided_ = nullptr;   // decisions that have ended and are not processed yet
  nghttp2_session* http2_ = nullptr;  // null until the client's preface has come
  GrpcCall* open_ = nullptr;          // all calls, newest first
  std::size_t pending_ = 0;           // calls whose request is not complete
  std::size_t held_ = 0;              // bytes of requests
  std::size_t unsent_ = 0;            // bytes of answers
  std::size_t answered_ = 0;          // since consume() began
  std::size_t answered_late_ = 0;     // calls that a fiber answered before consume() began
  Micros earliest_ = kNever;          // no deadline is earlier
  Micros take_due_ = kNever;          // the same for GrpcCall::take_due
  Micros final_due_ = kNever;
  GrpcFrames frames_;
  FrameAllowance allowance_;
  std::uint64_t resets_ = 0;    // resets that the server sent because of client errors
  std::int32_t header_of_ = 0;  // the stream whose header fields are arriving
  bool is_greeted_ = false;
  bool sheds_ = false;      // new calls are answered without a decision
  bool is_broken_ = false;  // nothing more can be sent
  bool is_draining_ = false;
  bool is_final_ = false;  // the last GOAWAY is sent
};

}  // namespace weir::server::grpc
