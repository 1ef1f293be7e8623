// What this process was given at birth: sockets that listen, by systemd or by the server that it succeeds.
//
// The protocol is systemd's: LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, with the descriptors from 3 on. Names say which
// door a socket belongs to: http, grpc, resp, admin; several of one name are one door's. A predecessor adds
// WEIR_SUCCEEDS: the descriptor of a pipe that it listens to, and the doors whose socket files are now ours to remove.
// The variables are taken away, so call it before there are threads. Tested by inheritance_test.cc and
// tests/server/socket_activation.sh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/descriptor.h"
#include "weir/result.h"

namespace weir {

// What systemd and a predecessor give begins here.
inline constexpr int kFirstSocket = 3;

struct NamedSocket {
  std::string door;
  Descriptor socket;
};

struct Inheritance {
  std::vector<NamedSocket> sockets{};
  std::vector<std::string> files{};  // doors whose socket files the predecessor had made
  Descriptor predecessor{};          // waits for tell_predecessor(); none: nobody does
};

// take_inheritance()
//
// Nothing, if nothing was given to this process. A socket that does not listen, or whose door is not known, is an
// error that says what to change.
Result<Inheritance> take_inheritance();

// That we serve now: it stops accepting.
void tell_predecessor(Descriptor& predecessor);

}  // namespace weir
