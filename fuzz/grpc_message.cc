// Fuzzes gRPC framing: the messages do not depend on how the bytes are cut into pieces. A timeout and the text of an
// error stay within their bounds.
//
// The messages that were read are framed again, and must give the same bytes.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "protocol/grpc_message.h"

namespace {

using State = weir::protocol::GrpcMessage::State;

// Returns all messages of `bytes`, which arrive in pieces. Sets `last` to the state at the end.
std::vector<std::string> messages(std::string_view bytes, std::size_t piece, State& last) {
  std::vector<std::string> out;
  std::string pending;
  last = State::need_more;
  while (!bytes.empty() && last == State::need_more) {
    pending += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (true) {
      const weir::protocol::GrpcMessage message = weir::protocol::read_grpc_message(pending);
      last = message.state;
      if (last != State::complete) break;
      WEIR_ASSERT(message.consumed == weir::protocol::kGrpcHeadBytes + message.payload.size());
      WEIR_ASSERT(message.payload.size() <= weir::protocol::kGrpcMessageMax);
      out.emplace_back(message.payload);
      pending.erase(0, message.consumed);
    }
  }
  return out;
}

}  // namespace

void fuzz(std::string_view bytes) {
  State whole = State::need_more, cut = State::need_more;
  const auto expected = messages(bytes, bytes.size() + 1, whole);
  WEIR_ASSERT(messages(bytes, 1, cut) == expected && cut == whole);
  WEIR_ASSERT(messages(bytes, 7, cut) == expected && cut == whole);

  std::string again;
  for (const std::string& payload : expected) {
    const std::size_t begin = weir::protocol::begin_grpc_message(again);
    again += payload;
    weir::protocol::end_grpc_message(again, begin);
  }
  WEIR_ASSERT(bytes.substr(0, again.size()) == again);

  if (const auto timeout = weir::protocol::parse_grpc_timeout(bytes)) WEIR_ASSERT(*timeout >= weir::Micros{0});
  for (const char c : weir::protocol::percent_encoded(bytes)) WEIR_ASSERT(c >= 0x20 && c < 0x7f);
}
