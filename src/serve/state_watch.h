// Logs the reason when another program truncates the state file of a running server, and ends the server.
//
// The file is mapped: an access beyond its new end raises SIGBUS, which would kill the process silently. The library
// installs no signal handlers; this is for `weir serve` only. A fault at any other address is left to the system. The
// main thread creates and destroys it, one at a time; the handler may run on any thread. Tested by
// tests/server/truncated.sh.
#pragma once

#include <string>

namespace weir::serve {

class StateWatch {
 public:
  // `path` is a file that is open and mapped; empty: none.
  explicit StateWatch(const std::string& path);
  ~StateWatch();
  StateWatch(const StateWatch&) = delete;
  StateWatch& operator=(const StateWatch&) = delete;
};

}  // namespace weir::serve
