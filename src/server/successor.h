// The process that takes a server's place: the same command anew, with the same sockets, while the old one serves.
//
//   auto successor = Successor::start({.command = {"weir", "serve"}, .sockets = ...});
//   ...poll(successor->descriptor())... if (successor->hear() == Successor::Said::ready) stop_accepting();
//
// It is given the sockets as systemd would give them, see inheritance.h, and says over a pipe that it serves. Between
// fork and exec only what a process with threads may do there is done. One thread. Tested by tests/server/upgrade.sh.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/descriptor.h"
#include "server/inheritance.h"
#include "weir/result.h"

namespace weir {

// How to start it.
struct Succession {
  std::vector<std::string> command{};  // its arguments, the first of them the program
  std::string program{};               // where that was found before; for a name that is found no more
};

class Successor {
 public:
  enum class Said : std::uint8_t { nothing, ready, failed };

  // `files` are the doors whose socket files it is to remove at its end.
  static Result<Successor> start(const Succession& how, const std::vector<NamedSocket>& sockets,
                                 const std::vector<std::string>& files);

  pid_t pid() const { return pid_; }
  // There is something to hear once it can be read.
  int descriptor() const { return pipe_.get(); }
  // What it says; when it has failed, it is gone, and why() says why.
  Said hear();
  const std::string& why() const { return why_; }
  // Ends it: it was not ready in time, or is not needed.
  void end();

 private:
  Successor(pid_t pid, Descriptor pipe) : pid_(pid), pipe_(std::move(pipe)) {}

  pid_t pid_;
  Descriptor pipe_;
  std::string why_;
};

// The command line of this process, and where its program lies, whatever has been put there meanwhile.
Succession own_command();

}  // namespace weir
