// What a server prints to stdout when it is ready: its listeners, and commands to try.
//
// Scripts wait for the last line, `ready`. One thread. Tested by tests/server/first_check.sh, which runs the
// commands.
#pragma once

#include <cstddef>
#include <string>

#include "server/server.h"

namespace weir::serve {

struct Announced {
  std::string state{};   // the file's path; empty: none
  std::string config{};  // the file's path; empty: no rules
  std::size_t rules = 0;
  bool needs_client_certificate = false;
  std::string changes{};   // the file's path; empty: in memory
  std::string envoy{};     // a summary of Envoy's files; empty: none
  std::string store{};     // the shared Redis; empty: none
  bool is_watched = true;  // whether a changed file is reloaded without SIGHUP
};

void announce(const server::Server& server, const Announced& what);

}  // namespace weir::serve
