// Detects HEADERS and DATA on closed streams of a gRPC connection: those that the client has ended, reset or skipped.
//
// HTTP/2 demands that such frames end the connection. nghttp2 detects them only if it keeps a thousand closed streams
// of every connection, some 300 KB. This class reads the frame headers and takes a line or two of cache. It knows the
// last few streams and the last gap, so it may miss an error but never reports a false one. It also counts the frames
// that ask for nothing (grpc_allowance.h). One thread. Tested by grpc_past_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "server/grpc/grpc_greeting.h"

namespace weir {

class GrpcPast {
 public:
  static constexpr std::size_t kRemembered = 16;
  enum class Fault : std::uint8_t { none, ended, left_out };

  // Takes all input in any pieces, from the preface on, before any other code acts on it. Do not call it again after
  // a fault.
  Fault watch(std::string_view piece);

  // Frames that asked for nothing, since the last call.
  std::uint64_t take_idle_frames() { return std::exchange(idle_frames_, 0); }
  // Whether a frame has begun and not ended.
  bool is_within_frame() const { return have_ > 0 || payload_ > 0; }

 private:
  static constexpr std::size_t kHead = 9;
  static constexpr std::size_t kSmall = 64;  // smaller data hardly advances a request

  Fault judge(std::uint8_t type, std::uint8_t flags, std::int32_t stream);
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

}  // namespace weir
