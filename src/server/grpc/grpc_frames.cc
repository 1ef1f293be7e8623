// Reads HTTP/2 frame headers. See grpc_frames.h.
#include "server/grpc/grpc_frames.h"

#include <algorithm>
#include <cstring>

#include "base/big_endian.h"

namespace weir::server::grpc {
namespace {

constexpr std::uint8_t kData = 0, kHeaders = 1, kRstStream = 3, kContinuation = 9;  // frame types
constexpr std::uint8_t kEndStream = 1;                                              // a flag

}  // namespace

GrpcFrames::Fault GrpcFrames::watch(std::string_view piece) {
  for (;;) {
    const std::size_t passed = std::min(payload_, piece.size());
    payload_ -= passed;
    piece.remove_prefix(passed);
    const std::size_t part = std::min(kHead - have_, piece.size());
    std::memcpy(head_.data() + have_, piece.data(), part);
    have_ += part;
    piece.remove_prefix(part);
    if (have_ < kHead) return Fault::none;
    have_ = 0;
    const std::string_view head(head_.data(), kHead);
    payload_ = base::big_endian(head.substr(0, 3));
    const auto stream = static_cast<std::int32_t>(base::big_endian(head.substr(5)) & 0x7fff'ffffu);
    const auto type = static_cast<std::uint8_t>(head[3]), flags = static_cast<std::uint8_t>(head[4]);
    if (const Fault fault = check(type, flags, stream); fault != Fault::none) return fault;
  }
}

GrpcFrames::Fault GrpcFrames::check(std::uint8_t type, std::uint8_t flags, std::int32_t stream) {
  const bool is_small = type == kData && payload_ < kSmall && (flags & kEndStream) == 0;
  const bool asks = type == kHeaders || type == kRstStream || type == kContinuation || (type == kData && !is_small);
  if (!asks) ++idle_frames_;
  if (type == kRstStream) end(stream);
  if ((type != kData && type != kHeaders) || stream == 0) return Fault::none;
  if (stream >= gap_begin_ && stream < gap_end_) return Fault::left_out;
  if (std::ranges::find(ended_, stream) != ended_.end()) return Fault::ended;
  if (type == kHeaders && stream > last_) begin(stream);
  if ((flags & kEndStream) != 0) end(stream);
  return Fault::none;
}

void GrpcFrames::begin(std::int32_t stream) {
  if (stream - 2 > last_) {
    gap_begin_ = last_ + 2;
    gap_end_ = stream;
  }
  last_ = stream;
}

}  // namespace weir::server::grpc
