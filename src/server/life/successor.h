// The process that replaces a server: the same command with the same sockets, started while the old process serves.
//
//   auto successor = Successor::start({.command = {"weir", "serve"}, .sockets = ...});
//   ...poll(successor->descriptor())... if (successor->read_report() == Successor::Report::ready) stop_accepting();
//
// It gets the sockets as systemd would pass them (inheritance.h), and reports through a pipe when it serves. Between
// fork and exec only async-signal-safe functions run, as in any process with threads. One thread. Tested by
// tests/server/upgrade.sh.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "server/life/inheritance.h"
#include "weir/result.h"

namespace weir::server::life {

// How to start it.
struct Succession {
  std::vector<std::string> command{};  // its arguments, the first is the program
  std::string program{};               // the program's path at the start; used if the command's name is no longer found
};

class Successor {
 public:
  enum class Report : std::uint8_t { nothing, ready, failed };

  // `files` are the listeners whose socket files it must remove at its end.
  static Result<Successor> start(const Succession& how, const std::vector<NamedSocket>& sockets,
                                 const std::vector<std::string>& files);

  pid_t pid() const { return pid_; }
  // Readable when there is a report.
  int descriptor() const { return pipe_.get(); }
  // Reads its message. After `failed` the process is gone, and why() gives the reason.
  Report read_report();
  const std::string& why() const { return why_; }
  // Ends it: it was not ready in time, or is not needed.
  void end();

 private:
  Successor(pid_t pid, base::Descriptor pipe) : pid_(pid), pipe_(std::move(pipe)) {}

  pid_t pid_;
  base::Descriptor pipe_;
  std::string why_;
};

// The command line of this process and the path of its program, even if the file was replaced since.
Succession own_command();

}  // namespace weir::server::life
