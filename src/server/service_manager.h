// systemd, or whoever else starts services and wants to hear how they fare: one datagram a message, no library.
//
// Who it is stands in NOTIFY_SOCKET; without that variable nothing is sent. A file or, behind an `@`, an abstract
// socket. Any thread may call, after the construction. Tested by tests/server/systemd.sh.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <string_view>

#include "server/descriptor.h"
#include "weir/clock.h"

namespace weir {

class ServiceManager {
 public:
  ServiceManager();

  void ready();
  void reloading();
  // `most`: how long it may take; it is waited for.
  void stopping(Micros most);
  void alive();
  // That another process is the service now; nothing is sent after it.
  void hand_over(pid_t successor);

  // How often it wants to hear alive(), at least; 0: it does not care.
  Micros watchdog() const { return watchdog_; }

 private:
  void send(std::string_view message);

  std::string address_;  // empty: there is nobody
  Descriptor socket_;
  Micros watchdog_{0};
  std::atomic<bool> is_silent_{false};
};

}  // namespace weir
