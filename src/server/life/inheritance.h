// The listening sockets that this process inherits, from systemd or from the server that it replaces.
//
// The protocol is systemd's: LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, with the descriptors from 3 on. A name says
// which listener a socket belongs to: http, grpc, resp or admin. Several sockets of one name belong to one listener.
// A predecessor adds WEIR_SUCCEEDS: the descriptor of the pipe that it reads, and the listeners whose socket files
// this process must remove later. Reading removes the variables, so call it before threads start. Tested by
// inheritance_test.cc and tests/server/socket_activation.sh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "weir/result.h"

namespace weir::server::life {

// The first inherited descriptor, from systemd and from a predecessor.
inline constexpr int kFirstSocket = 3;

struct NamedSocket {
  std::string listener;
  base::Descriptor socket;
};

struct Inheritance {
  std::vector<NamedSocket> sockets{};
  std::vector<std::string> files{};  // listeners whose socket files the predecessor created
  base::Descriptor predecessor{};    // waits for notify_predecessor(); none: there is no predecessor
};

// take_inheritance()
//
// Empty if this process inherits nothing. A socket that does not listen, or whose name is unknown, is an error that
// says what to change.
Result<Inheritance> take_inheritance();

// The parts between the colons of a text, as in PATH and LISTEN_FDNAMES. A colon at the end adds no empty part.
std::vector<std::string> parts_of(std::string_view text);

// Notifies the predecessor that this process serves now; it then stops accepting.
void notify_predecessor(base::Descriptor& predecessor);

}  // namespace weir::server::life
