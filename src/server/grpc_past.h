// Streams of a gRPC connection on which nothing may come any more: the client has ended or reset them, or left them
// out.
//
// HTTP/2 wants the connection to end if HEADERS or DATA come on those. nghttp2 sees it only if it keeps a thousand
// closed streams of every connection, some 300 KB; this reads the heads of the frames and takes a line or two of cache.
// It knows the last few streams and the last gap, so it may miss a mistake but finds none where there is none. It also
// counts the frames that ask for nothing: see grpc_allowance.h. One thread. Tested by grpc_past_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "server/grpc_greeting.h"

namespace weir {

class GrpcPast {
 public:
  static constexpr std::size_t kRemembered = 16;
  enum class Fault : std::uint8_t { none, ended, left_out };

  // All that the client sends, from the preface on and in any pieces, before anybody else acts on it. After a fault
  // there is no next piece.
  Fault watch(std::string_view piece);

  // Frames that asked for nothing, since it was last asked.
  std::uint64_t take_idle_frames() { return std::exchange(idle_frames_, 0); }
  // Whether a frame has begun and not ended.
  bool is_within_frame() const { return have_ > 0 || payload_ > 0; }

 private:
  static constexpr std::size_t kHead = 9;
  static constexpr std::size_t kSmall = 64;  // data that hardly brings a request further

  Fault judge(std::uint8_t type, std::uint8_t flags, std::int32_t stream);
  void begin(std::int32_t stream);
  void end(std::int32_t stream) { ended_[next_++ % kRemembered] = stream; }

  std::array<std::int32_t, kRemembered> ended_{};
  std::uint32_t next_ = 0;
  std::int32_t last_ = -1;                      // that was begun, or begun and refused
  std::int32_t gap_begin_ = 0, gap_end_ = 0;    // what was left out before one of those
  std::size_t payload_ = kHttp2Preface.size();  // bytes until the next head
  std::size_t have_ = 0;                        // bytes of that head
  std::uint64_t idle_frames_ = 0;
  std::array<char, kHead> head_{};
};

}  // namespace weir
