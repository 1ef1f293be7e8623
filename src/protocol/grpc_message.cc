// gRPC framing and header fields. See grpc_message.h.
#include "protocol/grpc_message.h"

#include <array>

#include "base/big_endian.h"
#include "base/text.h"

namespace weir::protocol {
namespace {

constexpr std::array<std::string_view, 17> kStatuses = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                                        "9", "10", "11", "12", "13", "14", "15", "16"};

constexpr std::string_view kTimeoutUnits = "HMSmun";
constexpr std::int64_t kUnitNanoseconds[] = {3'600'000'000'000, 60'000'000'000, 1'000'000'000, 1'000'000, 1'000, 1};

}  // namespace

std::string_view to_string(GrpcStatus status) { return kStatuses[static_cast<std::size_t>(status)]; }

GrpcMessage read_grpc_message(std::string_view bytes, std::size_t length_max) {
  using State = GrpcMessage::State;
  GrpcMessage message;
  if (bytes.empty()) return message;
  if (static_cast<unsigned char>(bytes[0]) > 1) return {.state = State::bad_flag};
  if (bytes.size() < kGrpcHeadBytes) return message;
  message.length = static_cast<std::uint32_t>(base::big_endian(bytes.substr(1, 4)));
  if (bytes[0] == 1) {
    message.state = State::compressed;
  } else if (message.length > length_max) {
    message.state = State::too_large;
  } else if (bytes.size() - kGrpcHeadBytes >= message.length) {
    message.state = State::complete;
    message.payload = bytes.substr(kGrpcHeadBytes, message.length);
    message.consumed = kGrpcHeadBytes + message.length;
  }
  return message;
}

std::size_t begin_grpc_message(std::string& out) {
  const std::size_t begin = out.size();
  out.append(kGrpcHeadBytes, '\0');
  return begin;
}

void end_grpc_message(std::string& out, std::size_t begin) {
  const std::size_t length = out.size() - begin - kGrpcHeadBytes;
  for (std::size_t i = 0; i < 4; ++i) out[begin + 1 + i] = static_cast<char>(length >> (24 - 8 * i) & 0xff);
}

std::optional<Micros> parse_grpc_timeout(std::string_view text) {
  constexpr std::size_t kDigitsMax = 8;
  if (text.size() < 2 || text.size() > kDigitsMax + 1) return std::nullopt;
  const std::size_t place = kTimeoutUnits.find(text.back());
  const auto count = base::to_number<std::uint32_t>(text.substr(0, text.size() - 1));
  if (place == kTimeoutUnits.npos || !count) return std::nullopt;
  const std::int64_t unit = kUnitNanoseconds[place];
  if (unit >= 1'000) return Micros{*count * (unit / 1'000)};
  return Micros{(std::int64_t{*count} + 999) / 1'000};
}

std::string percent_encoded(std::string_view text) {
  return base::percent_encoded(text, [](char c) { return c >= 0x20 && c <= 0x7e && c != '%'; });
}

}  // namespace weir::protocol
