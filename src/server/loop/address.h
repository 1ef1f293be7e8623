// A listening address, parsed from text: `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `:8080`,
// `unix:/run/weir.sock`.
//
// An address without a host means loopback, so the server is open to the network only if the operator says so. Port 0
// means any free port. Pure; any thread. Tested by address_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir {

struct Address {
  std::string host = "127.0.0.1";  // a numeric address, IPv6 without its brackets
  std::uint16_t port = 0;
  std::string path{};  // of a unix socket; host and port are then unused

  bool is_unix() const { return !path.empty(); }
  bool is_loopback() const;
  friend bool operator==(const Address&, const Address&) = default;
};

Result<Address> parse_address(std::string_view text);

// "127.0.0.1:8080", "[::1]:8080", "unix:/run/weir.sock"
std::string to_string(const Address& address);

}  // namespace weir
