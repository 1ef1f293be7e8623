// Listening addresses, and sockets that are bound to them, or an error that says what to do instead.
//
// An address is written `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `:8080` or `unix:/run/weir.sock`. Without a
// host it means loopback, so the server is open to the network only if the operator says so. Port 0 means any free
// port. Every loop has its own socket on the same port, and the kernel distributes connections among them. A unix
// socket has one socket for all loops. Parsing is pure; the rest is used while the server starts, by one thread. Tested
// by listener_test.cc and tests/server/lifecycle.sh.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "weir/result.h"

namespace weir::server::loop {

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

struct Listening {
  Address address;                        // the actual address: port 0 is replaced by a port
  std::vector<base::Descriptor> sockets;  // as many as requested; of a unix socket, one
};

// An address in the kernel's format. For a unix socket the host is 127.0.0.1, since its peer is on this machine. An
// abstract unix socket has a path that begins with `@`.
Address address_of(const sockaddr_storage& address, socklen_t size);
// The address that a socket is bound to.
Address address_of(const base::Descriptor& socket);

// listen_on()
//
// `option` is the flag that an error message names: `--http`. A port with any other listener is refused, another weir
// server included. The file of a unix socket that no process serves is replaced.
Result<Listening> listen_on(const Address& address, std::string_view option, std::size_t sockets);

}  // namespace weir::server::loop
