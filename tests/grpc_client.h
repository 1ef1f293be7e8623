// A gRPC client on nghttp2 that talks to a session without a socket, for tests of the gRPC port.
//
// It sends requests in pieces of any size and collects answers by stream. It does not know what the server should say.
// One thread. Used by src/server/grpc/grpc_session_test.cc and grpc_abuse_test.cc.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/grpc_message.h"
#include "server/loop/session_fixture.h"

namespace weir::test {

using Fields = std::vector<std::pair<std::string, std::string>>;

inline std::string framed(std::string_view payload) {
  std::string out;
  const std::size_t begin = protocol::begin_grpc_message(out);
  out += payload;
  protocol::end_grpc_message(out, begin);
  return out;
}

// What came back on a stream.
struct Heard {
  std::map<std::string, std::string> fields{};  // of header and trailers
  std::string body{};
  std::size_t headers = 0;  // frames of them
  bool is_closed = false;
  std::uint32_t error = 0;  // of the reset, if it was one

  std::string status() const { return fields.count("grpc-status") > 0 ? fields.at("grpc-status") : "none"; }
  std::string text() const { return fields.count("grpc-message") > 0 ? fields.at("grpc-message") : ""; }
  // The payloads of the messages.
  std::vector<std::string> messages() const {
    std::vector<std::string> out;
    for (std::string_view rest = body; !rest.empty();) {
      const protocol::GrpcMessage message = protocol::read_grpc_message(rest);
      if (message.state != protocol::GrpcMessage::State::complete) break;
      out.emplace_back(message.payload);
      rest.remove_prefix(message.consumed);
    }
    return out;
  }
};

class GrpcClient {
 public:
  GrpcClient(server::loop::Session& session, Limiter& limiter, std::int32_t window = 65'535)
      : player(session, limiter) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option* options = nullptr;
    nghttp2_option_new(&options);
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_session_client_new2(&http2, callbacks, this, options);
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(window)};
    nghttp2_submit_settings(http2, NGHTTP2_FLAG_NONE, &entry, 1);
  }
  GrpcClient(const GrpcClient&) = delete;
  GrpcClient& operator=(const GrpcClient&) = delete;
  ~GrpcClient() { nghttp2_session_del(http2); }

  static Fields usual(const std::string& path) {
    return {{":method", "POST"},    {":scheme", "http"}, {":path", path},
            {":authority", "weir"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  }

  // Begins a request; its body follows by send(), and `ends` says that there is no more.
  std::int32_t begin(const Fields& fields, std::string body = {}, bool ends = false) {
    std::vector<nghttp2_nv> pairs;
    for (const auto& [name, value] : fields) {
      pairs.push_back({bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
    }
    nghttp2_data_provider provider{};
    provider.source.ptr = this;
    provider.read_callback = on_read;
    const std::int32_t stream = nghttp2_submit_request(http2, nullptr, pairs.data(), pairs.size(), &provider, nullptr);
    said[stream] = {std::move(body), ends};
    return stream;
  }
  void send(std::int32_t stream, std::string_view more, bool ends) {
    said[stream].body += more;
    said[stream].ends = ends;
    nghttp2_session_resume_data(http2, stream);
  }

  // A whole call, and what came back.
  Heard& call(const std::string& path, std::string_view payload, const Fields& more = {}) {
    Fields fields = usual(path);
    fields.insert(fields.end(), more.begin(), more.end());
    const std::int32_t stream = begin(fields, framed(payload), true);
    exchange();
    return heard[stream];
  }

  // Both sides say what they have to say, until neither has anything.
  void exchange() {
    while (true) {
      std::string request;
      const std::uint8_t* data = nullptr;
      for (ssize_t size = 0; (size = nghttp2_session_mem_send(http2, &data)) > 0;) {
        request.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
      }
      if (!request.empty()) deliver(request);
      const std::string answer = player.take();
      if (request.empty() && answer.empty()) return;
      hear(answer);
    }
  }
  void hear(std::string_view answer) {
    received += answer;
    if (nghttp2_session_mem_recv(http2, bytes(answer), answer.size()) < 0) is_broken = true;
  }

  static std::uint8_t* bytes(std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  }

  struct Said {
    std::string body;
    bool ends = false;
  };
  server::loop::SessionPlayer player;
  nghttp2_session* http2 = nullptr;
  std::map<std::int32_t, Said> said{};
  std::map<std::int32_t, Heard> heard{};
  std::vector<std::int32_t> goaways{};  // the last streams that they name
  std::string goaway_text{};
  std::string received{};
  server::loop::Progress progress{};  // of the last delivery
  std::size_t piece = 1 << 20;        // the most bytes that the server is fed at once
  std::size_t answered = 0;
  bool takes = true;  // the client opens the windows for what it received, so that the server may send more
  bool is_broken = false;

 private:
  void deliver(std::string_view request) {
    for (; !request.empty() && !progress.close; request.remove_prefix(std::min(piece, request.size()))) {
      progress = player.feed(request.substr(0, piece));
      answered += progress.answered;
    }
  }

  static GrpcClient& self(void* user) { return *static_cast<GrpcClient*>(user); }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
    self(user).heard[frame->hd.stream_id].fields[{reinterpret_cast<const char*>(name), name_size}] = {
        reinterpret_cast<const char*>(value), value_size};
    return 0;
  }
  static int on_data(nghttp2_session* session, std::uint8_t, std::int32_t stream, const std::uint8_t* data,
                     std::size_t size, void* user) {
    self(user).heard[stream].body.append(reinterpret_cast<const char*>(data), size);
    if (self(user).takes) nghttp2_session_consume(session, stream, size);
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_HEADERS) ++self(user).heard[frame->hd.stream_id].headers;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      self(user).goaways.push_back(frame->goaway.last_stream_id);
      self(user).goaway_text.assign(reinterpret_cast<const char*>(frame->goaway.opaque_data),
                                    frame->goaway.opaque_data_len);
    }
    return 0;
  }
  static int on_close(nghttp2_session*, std::int32_t stream, std::uint32_t error, void* user) {
    self(user).heard[stream].is_closed = true;
    self(user).heard[stream].error = error;
    return 0;
  }
  static ssize_t on_read(nghttp2_session*, std::int32_t stream, std::uint8_t* buffer, std::size_t size,
                         std::uint32_t* flags, nghttp2_data_source* source, void*) {
    Said& said = static_cast<GrpcClient*>(source->ptr)->said[stream];
    const std::size_t part = std::min(size, said.body.size());
    std::memcpy(buffer, said.body.data(), part);
    said.body.erase(0, part);
    if (said.body.empty() && said.ends) *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (part == 0 && !said.ends) return NGHTTP2_ERR_DEFERRED;
    return static_cast<ssize_t>(part);
  }
};

}  // namespace weir::test
