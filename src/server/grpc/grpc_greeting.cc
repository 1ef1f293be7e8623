// Distinguishes HTTP/2 from HTTP/1.1, Redis and noise. See grpc_greeting.h.
#include "server/grpc/grpc_greeting.h"

#include <algorithm>
#include <array>

namespace weir::server::grpc {
namespace {

constexpr std::string_view kHttpAnswer =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 84\r\n"
    "Connection: close\r\n\r\n"
    "This port speaks gRPC (HTTP/2 with prior knowledge). Use the HTTP port for HTTP/1.1.";
constexpr std::string_view kRedisAnswer = "-ERR this port speaks gRPC; connect Redis clients to the RESP port\r\n";

constexpr std::array<std::string_view, 9> kHttp1Methods = {"GET ",     "POST ",  "HEAD ",    "PUT ",  "DELETE ",
                                                           "OPTIONS ", "PATCH ", "CONNECT ", "TRACE "};

bool is_printable(char c) { return c >= 0x20 && c < 0x7f; }

// A Redis client begins with a star. A person types a command's name and its arguments in a line.
bool is_redis(std::string_view input, IsCommand* is_command) {
  if (input.front() == '*') return true;
  const std::size_t end = input.find('\n');
  return end != input.npos && is_command != nullptr && is_command(input.substr(0, input.find_first_of(" \r\n")));
}

}  // namespace

Greeting read_greeting(std::string_view input, IsCommand* is_command) {
  using State = Greeting::State;
  const std::size_t shared = std::min(input.size(), kHttp2Preface.size());
  if (input.substr(0, shared) == kHttp2Preface.substr(0, shared)) {
    return {shared == kHttp2Preface.size() ? State::http2 : State::need_more};
  }
  const bool is_http =
      std::ranges::any_of(kHttp1Methods, [&](std::string_view method) { return input.starts_with(method); });
  if (is_http) return {State::foreign, kHttpAnswer};
  if (is_redis(input, is_command)) return {State::foreign, kRedisAnswer};
  const bool may_be_words = input.size() < kHttp2Preface.size() && std::ranges::all_of(input, is_printable);
  return {may_be_words ? State::need_more : State::foreign};
}

}  // namespace weir::server::grpc
