// Sockets that listen: bound to an address, or an error that says what to do instead.
//
// Every loop has a socket of its own on the same port, and the kernel deals connections out among them; a unix socket
// is one for all loops. Used while the server starts, by one thread. Tested by listener_test.cc and
// tests/server/lifecycle.sh.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "server/address.h"
#include "server/descriptor.h"
#include "weir/result.h"

namespace weir {

struct Listening {
  Address address;                  // where it really is: port 0 has become a port
  std::vector<Descriptor> sockets;  // as many as were asked for; of a unix socket, one
};

// Where a socket is bound; a unix socket without a file has a path that begins with `@`.
Address address_of(const Descriptor& socket);

// listen_on()
//
// `option` is what a message tells the user to change: `--http`. A port that anybody listens on is refused, another
// server of ours included. The file of a unix socket that nobody serves any more is replaced.
Result<Listening> listen_on(const Address& address, std::string_view option, std::size_t sockets);

}  // namespace weir
