// Finds two things in the frame headers of a gRPC connection: frames on closed streams, and frames without a request.
//
// HTTP/2 demands that HEADERS and DATA on streams that the client has ended, reset or skipped end the connection.
// nghttp2 detects them only if it keeps a thousand closed streams of every connection, some 300 KB. This class reads
// the frame headers and takes one or two cache lines. It remembers only the last few streams and the last gap, so it
// may miss an error, but it never reports a false one. It also counts the frames without a request (FrameAllowance).
// One thread. Tested by grpc_frames_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "server/grpc/grpc_greeting.h"
#include "weir/clock.h"

namespace weir::server::grpc {

class GrpcFrames {
 public:
  static constexpr std::size_t kRemembered = 16;
  enum class Fault : std::uint8_t { none, ended, left_out };

  // Takes all input in any pieces, from the preface on, before any other code acts on it. Do not call it again after
  // a fault.
  Fault watch(std::string_view piece);

  // Returns the number of frames without a request since the last call.
  std::uint64_t take_idle_frames() { return std::exchange(idle_frames_, 0); }
  // Whether a frame has begun and not ended.
  bool is_within_frame() const { return have_ > 0 || payload_ > 0; }

 private:
  static constexpr std::size_t kHead = 9;
  static constexpr std::size_t kSmall = 64;  // smaller data hardly advances a request

  Fault check(std::uint8_t type, std::uint8_t flags, std::int32_t stream);
  void begin(std::int32_t stream);
  void end(std::int32_t stream) { ended_[next_++ % kRemembered] = stream; }

  std::array<std::int32_t, kRemembered> ended_{};
  std::uint32_t next_ = 0;
  std::int32_t last_ = -1;                      // the last stream that was begun, or begun and refused
  std::int32_t gap_begin_ = 0, gap_end_ = 0;    // the stream ids that were skipped before one of those
  std::size_t payload_ = kHttp2Preface.size();  // bytes until the next frame header
  std::size_t have_ = 0;                        // bytes of that header
  std::uint64_t idle_frames_ = 0;
  std::array<char, kHead> head_{};
};

// Bounds the frames without a request, so that no client keeps a loop busy with them. The allowance is a number per
// second; unused frames of up to ten seconds accumulate. Each answered call adds a few, since it needs window updates
// and small pieces of data. A client that exceeds it gets ENHANCE_YOUR_CALM, and its connection ends.
class FrameAllowance {
 public:
  static constexpr std::uint64_t kSecondsSaved = 10;
  static constexpr std::uint64_t kFramesOfCall = 8;

  explicit FrameAllowance(std::uint64_t per_second) : per_second_(per_second), left_(most()) {}

  void earn(std::uint64_t calls) { left_ = std::min(left_ + calls * kFramesOfCall, most()); }

  // False if fewer are left.
  bool charge(std::uint64_t frames, Micros now) {
    if (frames == 0) return true;
    if (left_ < frames) refill(now);
    if (left_ < frames) return false;
    left_ -= frames;
    return true;
  }

 private:
  std::uint64_t most() const { return kSecondsSaved * per_second_; }

  void refill(Micros now) {
    const auto seconds = static_cast<std::uint64_t>(std::max<std::int64_t>((now - filled_).count(), 0) / 1'000'000);
    if (seconds == 0) return;
    filled_ = now;
    left_ = std::min(left_ + std::min(seconds, kSecondsSaved) * per_second_, most());
  }

  std::uint64_t per_second_;
  std::uint64_t left_;
  Micros filled_{0};
};

}  // namespace weir::server::grpc
