// Listening sockets: bound to an address, or an error that says what to do instead.
//
// Every loop has its own socket on the same port, and the kernel distributes connections among them. A unix socket
// has one socket for all loops. Used while the server starts, by one thread. Tested by listener_test.cc and
// tests/server/lifecycle.sh.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "server/loop/address.h"
#include "weir/result.h"

namespace weir {

struct Listening {
  Address address;                  // the actual address: port 0 is replaced by a port
  std::vector<Descriptor> sockets;  // as many as requested; of a unix socket, one
};

// The address a socket is bound to. An abstract unix socket has a path that begins with `@`.
Address address_of(const Descriptor& socket);

// listen_on()
//
// `option` is the flag that an error message names: `--http`. A port with any other listener is refused, another weir
// server included. The file of a unix socket that no process serves is replaced.
Result<Listening> listen_on(const Address& address, std::string_view option, std::size_t sockets);

}  // namespace weir
