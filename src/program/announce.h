// What a server says on stdout when it is ready: its doors, and commands to try.
//
// Scripts wait for the last line, `ready`. One thread. Tested by tests/server/first_check.sh, which runs the commands.
#pragma once

#include <cstddef>
#include <string>

#include "server/server.h"

namespace weir {

struct Announced {
  std::string state{};   // the file; empty: none
  std::string config{};  // the file; empty: there are no rules
  std::size_t rules = 0;
  bool asks_clients = false;  // for a certificate
  std::string changes{};      // the file; empty: in memory
  std::string envoy{};        // files of Envoy's, for people; empty: none
  std::string store{};        // the Redis that it shares with others; empty: none
};

void announce(const Server& server, const Announced& what);

}  // namespace weir
