// Notifies systemd, or another service manager, of the server's state: one datagram per message, no library.
//
// NOTIFY_SOCKET has the manager's address; without that variable nothing is sent. It is a file or, with a leading
// `@`, an abstract socket. Any thread may call, after construction. Tested by tests/server/systemd.sh.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "weir/clock.h"

namespace weir::server::life {

class ServiceManager {
 public:
  ServiceManager();

  void ready();
  void reloading();
  // `most`: how long the manager should wait for it.
  void stopping(Micros most);
  void alive();
  // Another process is the service now; nothing is sent after this.
  void hand_over(pid_t successor);

  // The watchdog's period, in which it expects at least one alive(); 0: no watchdog.
  Micros watchdog() const { return watchdog_; }

 private:
  void send(std::string_view message);

  std::string address_;  // empty: no service manager
  base::Descriptor socket_;
  Micros watchdog_{0};
  std::atomic<bool> is_silent_{false};
};

}  // namespace weir::server::life
