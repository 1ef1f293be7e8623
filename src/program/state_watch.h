// Says why when another program truncates the state file under a running server, and ends the server.
//
// The file is mapped: an access behind its new end is a SIGBUS, which would kill the process without a word. The
// library installs no handler of signals; this is for `weir serve` only. A fault anywhere else is left to the system.
// Made and destroyed by the main thread, one at a time; the handler may run on any. Tested by
// tests/server/truncated.sh.
#pragma once

#include <string>

namespace weir {

class StateWatch {
 public:
  // Of a file that is open and mapped; an empty path is none.
  explicit StateWatch(const std::string& path);
  ~StateWatch();
  StateWatch(const StateWatch&) = delete;
  StateWatch& operator=(const StateWatch&) = delete;
};

}  // namespace weir
