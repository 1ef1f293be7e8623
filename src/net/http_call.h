// One HTTP/1.1 call on a connection of its own, plain or TLS; for clients that may block.
//
// Any thread. Tested by http_call_test.cc, tests/server/commands.sh, tls.sh and traces.sh there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/endpoint.h"
#include "net/tls.h"
#include "weir/result.h"

namespace weir::net {

struct HttpHead {
  int status = 0;
  std::optional<std::uint64_t> length{};  // of the body, if the head says so
};
// Parses the head of an answer, with all its line breaks. Nothing if it is not HTTP/1.
std::optional<HttpHead> parse_http_head(std::string_view text);

struct HttpAnswer {
  int status = 0;
  std::string body{};
};

struct HttpClientCall {
  base::Endpoint server{};
  const TlsContext* tls = nullptr;  // null: plain
  std::string request{};            // with `Connection: close`
  std::size_t answer_max = 0;       // bytes; 0: only the status is needed
  // The time-out of the whole call, or of each step: connecting, and each time that the server accepts or sends bytes.
  std::chrono::nanoseconds timeout{};
  bool is_timeout_per_step = false;
  const std::atomic<bool>* is_ending = nullptr;  // ends the call within a second
};
Result<HttpAnswer> call_http(const HttpClientCall& call);

}  // namespace weir::net
