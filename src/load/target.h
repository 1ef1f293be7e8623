// The server to put under load: its address as a person writes it, and connections to it.
//
// `127.0.0.1:6380`, `:6380`, `localhost:6380`, `[::1]:6380`, `unix:/run/weir.sock`; a scheme before it, such as the
// redis:// that `weir serve` prints, does no harm. Any thread. Tested by target_test.cc.
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

// By its name: a unix socket, localhost or an address of loopback.
bool is_on_this_machine(const Target& target);

// A socket that does not block and does not wait to fill packets. The caller closes it.
Result<int> connect_to(const Target& target);

}  // namespace weir::load
