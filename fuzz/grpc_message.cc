// gRPC's framing: cut anywhere, the same messages come out; a timeout and a text of an error stay within their bounds.
//
// What was read is framed again, and must be the bytes that it came from.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/grpc_message.h"

namespace {

using State = weir::GrpcMessage::State;

void require(bool condition) {
  if (!condition) std::abort();
}

// All messages of `bytes`, fed in pieces, and the state that it ends in.
std::vector<std::string> messages(std::string_view bytes, std::size_t piece, State& last) {
  std::vector<std::string> out;
  std::string held;
  last = State::need_more;
  while (!bytes.empty() && last == State::need_more) {
    held += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (true) {
      const weir::GrpcMessage message = weir::read_grpc_message(held);
      last = message.state;
      if (last != State::complete) break;
      require(message.consumed == weir::kGrpcHeadBytes + message.payload.size());
      require(message.payload.size() <= weir::kGrpcMessageMax);
      out.emplace_back(message.payload);
      held.erase(0, message.consumed);
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  State whole = State::need_more, cut = State::need_more;
  const auto expected = messages(bytes, size + 1, whole);
  require(messages(bytes, 1, cut) == expected && cut == whole);
  require(messages(bytes, 7, cut) == expected && cut == whole);

  std::string again;
  for (const std::string& payload : expected) {
    const std::size_t begin = weir::begin_grpc_message(again);
    again += payload;
    weir::end_grpc_message(again, begin);
  }
  require(bytes.substr(0, again.size()) == again);

  if (const auto timeout = weir::parse_grpc_timeout(bytes)) require(*timeout >= weir::Micros{0});
  for (const char c : weir::percent_encoded(bytes)) require(c >= 0x20 && c < 0x7f);
  return 0;
}
