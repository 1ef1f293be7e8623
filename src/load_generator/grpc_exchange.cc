// gRPC: calls of Envoy's rate limit service over hand-written HTTP/2 frames.
//
// A client library would cost more than the servers under test. So this implements only what a unary call needs:
// HEADERS and DATA out; trailers with grpc-status in; open windows, and answers to PING and SETTINGS. Each call is a
// stream: request n uses stream 2n + 1. See exchange.h. Tested by grpc_exchange_test.cc.
#include <optional>
#include <utility>

#include "base/big_endian.h"
#include "base/nearest.h"
#include "load_generator/exchange.h"
#include "load_generator/header_block.h"

namespace weir::load_generator {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::string_view kMethodPath = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

constexpr std::size_t kFrameHead = 9;
constexpr std::size_t kFrameMax = 16'384;
constexpr std::size_t kBlockMax = 65'536;
constexpr std::int64_t kWindowAtFirst = 65'535;
constexpr std::uint32_t kWindowMax = 0x7fff'ffff;
constexpr std::uint32_t kTableSmall = 1'024;  // below this, the client does not use the peer's table

enum Type : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kResetStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoaway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
enum Flag : std::uint8_t { kEndStream = 1, kAck = 1, kEndHeaders = 4, kPadded = 8, kPriority = 32 };
enum Setting : std::uint16_t {
  kHeaderTableSize = 1,
  kEnablePush = 2,
  kMaxConcurrentStreams = 3,
  kInitialWindowSize = 4,
};

void append_32(std::string& out, std::uint32_t value) {
  out += {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::uint32_t read_32(std::string_view bytes, std::size_t at = 0) {
  return static_cast<std::uint32_t>(base::big_endian(bytes.substr(at, 4)));
}

void append_frame_head(std::string& out, std::size_t size, Type type, unsigned flags, std::uint32_t stream) {
  out += {static_cast<char>(size >> 16), static_cast<char>(size >> 8), static_cast<char>(size), static_cast<char>(type),
          static_cast<char>(flags)};
  append_32(out, stream);
}

void append_setting(std::string& out, Setting setting, std::uint32_t value) {
  out += {static_cast<char>(setting >> 8), static_cast<char>(setting)};
  append_32(out, value);
}

void append_window_update(std::string& out, std::uint32_t by) {
  append_frame_head(out, 4, kWindowUpdate, 0, 0);
  append_32(out, by);
}

struct Frame {
  std::uint8_t type;
  std::uint8_t flags;
  std::uint32_t stream;
  std::string_view payload;

  bool has(Flag flag) const { return (flags & flag) != 0; }
};

// The content without padding and priority; nothing if they exceed the frame.
std::optional<std::string_view> content_of(const Frame& frame) {
  std::string_view content = frame.payload;
  if (frame.has(kPadded)) {
    if (content.empty()) return {};
    const std::size_t padding = static_cast<unsigned char>(content.front());
    content.remove_prefix(1);
    if (padding > content.size()) return {};
    content.remove_suffix(padding);
  }
  if (frame.type == kHeaders && frame.has(kPriority)) {
    if (content.size() < 5) return {};
    content.remove_prefix(5);
  }
  return content;
}

tl::unexpected<Error> broken(std::string_view what) {
  return fail(ErrorCode::invalid_argument, "the server sent invalid HTTP/2: " + std::string(what));
}

class GrpcExchange final : public Exchange {
 public:
  explicit GrpcExchange(const GrpcTemplate& call)
      : message_(call.message),
        fields_{std::string(kMethodPath), call.authority},
        block_(first_header_block(fields_)),
        next_block_(next_header_block()) {}

  void begin(std::string& out) override {
    std::string settings;
    append_setting(settings, kHeaderTableSize, 0);
    append_setting(settings, kEnablePush, 0);
    append_setting(settings, kInitialWindowSize, kWindowMax);
    out += kPreface;
    append_frame_head(out, settings.size(), kSettings, 0, 0);
    out += settings;
    append_window_update(out, kWindowMax - static_cast<std::uint32_t>(kWindowAtFirst));
  }

  bool may_ask() const override {
    return open_ < open_max_ && window_ >= static_cast<std::int64_t>(message_.bytes().size()) &&
           asked_ <= kWindowMax / 2;
  }

  void ask(std::string& out, Keys& keys) override {
    const auto stream = static_cast<std::uint32_t>(2 * asked_ + 1);
    append_frame_head(out, block_.size(), kHeaders, kEndHeaders, stream);
    out += block_;
    ++asked_;
    if (block_ != next_block_) block_ = next_block_;
    append_frame_head(out, message_.bytes().size(), kData, kEndStream, stream);
    message_.append_to(out, keys);
    window_ -= static_cast<std::int64_t>(message_.bytes().size());
    ++open_;
  }

  Result<void> read(std::string_view bytes, Answers& answers, std::string& out) override {
    if (!kept_.empty()) {
      kept_ += bytes;
      bytes = kept_;
    }
    while (bytes.size() >= kFrameHead) {
      const std::size_t size = read_32(bytes) >> 8;
      if (size > kFrameMax) return broken("a frame of " + std::to_string(size) + " bytes");
      if (bytes.size() < kFrameHead + size) break;
      const Frame frame{static_cast<std::uint8_t>(bytes[3]), static_cast<std::uint8_t>(bytes[4]),
                        read_32(bytes, 5) & kWindowMax, bytes.substr(kFrameHead, size)};
      if (auto taken = read_frame(frame, answers, out); !taken) return taken;
      bytes.remove_prefix(kFrameHead + size);
    }
    kept_ = std::string(bytes);
    return {};
  }

 private:
  Result<void> read_frame(const Frame& frame, Answers& answers, std::string& out) {
    switch (frame.type) {
      case kData:
        return read_data(frame, answers, out);
      case kHeaders:
        headers_end_stream_ = frame.has(kEndStream);
        header_block_.clear();
        [[fallthrough]];
      case kContinuation:
        return read_headers(frame, answers);
      case kResetStream:
        if (frame.payload.size() != 4) return broken("a RST_STREAM of a wrong size");
        answers.add_error("the stream was reset, HTTP/2 error " + std::to_string(read_32(frame.payload)));
        return end_call(frame.stream, answers);
      case kSettings:
        return read_settings(frame, out);
      case kPing:
        if (!frame.has(kAck)) {
          append_frame_head(out, frame.payload.size(), kPing, kAck, 0);
          out += frame.payload;
        }
        return {};
      case kGoaway:
        return gone(frame.payload);
      case kWindowUpdate:
        if (frame.payload.size() != 4) return broken("a WINDOW_UPDATE of a wrong size");
        if (frame.stream == 0) window_ += read_32(frame.payload) & kWindowMax;
        return {};
      default:
        return {};  // unknown frame types must be ignored
    }
  }

  // An answer is one message: a flag, four bytes of length, then overall_code as its first field, 1 or 2.
  Result<void> read_data(const Frame& frame, Answers& answers, std::string& out) {
    const auto content = content_of(frame);
    if (!content) return broken("padding beyond its frame");
    if (content->size() >= 7 && (*content)[5] == 0x08 && (*content)[6] == 0x02) ++answers.denied;
    unacknowledged_ += static_cast<std::uint32_t>(frame.payload.size());
    if (unacknowledged_ > kWindowMax / 2) append_window_update(out, std::exchange(unacknowledged_, 0));
    if (!frame.has(kEndStream)) return {};
    answers.add_error("a stream ended without trailers");
    return end_call(frame.stream, answers);
  }

  Result<void> read_headers(const Frame& frame, Answers& answers) {
    const auto content = content_of(frame);
    if (!content) return broken("padding beyond its frame");
    header_block_ += *content;
    if (header_block_.size() > kBlockMax) return broken("a header of more than 64 KiB");
    if (!frame.has(kEndHeaders) || !headers_end_stream_) return {};
    if (header_block_ != last_good_block_) {
      const auto status = grpc_status(header_block_);
      if (!status) return fail(status.error());
      if (*status == "0") {
        last_good_block_ = header_block_;  // most blocks are equal and need no parsing
      } else {
        answers.add_error(status->empty() ? "an answer without grpc-status" : "grpc-status " + *status);
      }
    }
    return end_call(frame.stream, answers);
  }

  Result<void> end_call(std::uint32_t stream, Answers& answers) {
    const std::uint64_t number = stream / 2;
    if (stream % 2 == 0 || number >= asked_ || open_ == 0) return broken("an answer without a request");
    --open_;
    answers.answered.push_back(number);
    return {};
  }

  Result<void> read_settings(const Frame& frame, std::string& out) {
    if (frame.has(kAck)) return {};
    for (std::size_t at = 0; at + 6 <= frame.payload.size(); at += 6) {
      const unsigned setting = read_32(frame.payload, at) >> 16;
      const std::uint32_t value = read_32(frame.payload, at + 2);
      if (setting == kMaxConcurrentStreams) open_max_ = value;
      if (setting == kHeaderTableSize && value < kTableSmall) stop_using_table();
      if (setting == kInitialWindowSize && value < message_.bytes().size()) {
        return fail(ErrorCode::out_of_range, "the server's flow control window is smaller than a request");
      }
    }
    append_frame_head(out, 0, kSettings, kAck, 0);
    return {};
  }

  // The next block sets the size of the peer's table to 0.
  void stop_using_table() {
    next_block_ = plain_header_block(fields_);
    block_ = "\x20" + next_block_;
  }

  static Result<void> gone(std::string_view payload) {
    std::string message = "the server ends the connection (GOAWAY)";
    if (payload.size() >= 8) message += ", HTTP/2 error " + std::to_string(read_32(payload, 4));
    if (payload.size() > 8) message += ": " + base::in_quotes(payload.substr(8), kErrorTextMax);
    return fail(ErrorCode::unavailable, message);
  }

  const Template& message_;
  const CallFields fields_;
  std::string block_;       // for the next call
  std::string next_block_;  // for all later calls

  std::uint64_t asked_ = 0;
  std::uint64_t open_ = 0;
  std::uint64_t open_max_ = kWindowMax;
  std::int64_t window_ = kWindowAtFirst;  // bytes of DATA that the peer still accepts
  std::uint32_t unacknowledged_ = 0;      // received bytes of DATA

  std::string kept_;  // the beginning of an incomplete frame
  std::string header_block_;
  std::string last_good_block_;
  bool headers_end_stream_ = false;
};

void append_varint(std::string& out, std::size_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7f));
  out += static_cast<char>(value);
}

// A length-delimited protobuf field, text or message. The length assumes that the keys are filled in.
std::string field(unsigned number, std::string_view text) {
  std::string out;
  append_varint(out, number << 3 | 2);
  append_varint(out, filled_size(text));
  return out.append(text);
}

}  // namespace

Template rls_template(const RlsRequest& request) {
  std::string entries;
  for (const auto& [key, value] : request.entries) entries += field(1, field(1, key) + field(2, value));
  const std::string message = field(1, request.domain) + field(2, entries);
  std::string prefix(1, '\0');
  append_32(prefix, static_cast<std::uint32_t>(filled_size(message)));
  return Template(prefix + message);
}

std::unique_ptr<Exchange> make_grpc_exchange(const GrpcTemplate& call) { return std::make_unique<GrpcExchange>(call); }

}  // namespace weir::load_generator
