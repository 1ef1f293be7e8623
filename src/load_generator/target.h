// The address of the server under load, and connections to it.
//
// Accepts `127.0.0.1:6380`, `:6380`, `localhost:6380`, `[::1]:6380`, `unix:/run/weir.sock`. A scheme before the
// address, such as the redis:// that `weir serve` prints, is ignored. Any thread. Tested by target_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::load {

struct Target {
  std::string host;  // empty for a unix socket
  std::string port;
  std::string path;

  friend bool operator==(const Target&, const Target&) = default;
};

Result<Target> parse_target(std::string_view text);
std::string to_string(const Target& target);

// Judged by its name: a unix socket, localhost or a loopback address.
bool is_on_this_machine(const Target& target);

// Returns a connected, non-blocking socket with TCP_NODELAY. Connecting itself blocks. The caller closes the socket.
Result<int> connect_to(const Target& target);

}  // namespace weir::load
