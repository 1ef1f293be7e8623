// Sends the messages of sd_notify(3). See service_manager.h.
#include "server/life/service_manager.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "log/log.h"

namespace weir::server::life {
namespace {

std::int64_t number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return base::to_number<std::int64_t>(text == nullptr ? "" : text).value_or(0);
}

}  // namespace

ServiceManager::ServiceManager() {
  const char* address = std::getenv("NOTIFY_SOCKET");
  if (address == nullptr || (address[0] != '/' && address[0] != '@')) return;
  if (std::strlen(address) >= sizeof(sockaddr_un::sun_path)) return;
  socket_ = base::Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_) return;
  const timeval most{.tv_sec = 1, .tv_usec = 0};  // the longest delay by a manager that does not read
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  address_ = address;
  const std::int64_t meant_for = number_in("WATCHDOG_PID");
  if (meant_for == 0 || meant_for == getpid()) watchdog_ = Micros{number_in("WATCHDOG_USEC")};
}

void ServiceManager::send(std::string_view message) {
  if (address_.empty() || is_silent_) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  if (sendto(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
             size) < 0) {
    log::log(log::LogLevel::warn, "cannot notify the service manager",
             {{"message", message.substr(0, message.find('\n'))}, {"error", std::strerror(errno)}});
  }
}

void ServiceManager::ready() { send("READY=1\nSTATUS=Serving."); }

void ServiceManager::reloading() {
  const auto now = std::chrono::duration_cast<Micros>(read_stopwatch());
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(now.count()) + "\nSTATUS=Reloading the config.");
}

void ServiceManager::stopping(Micros most) {
  constexpr std::int64_t kMore = 5'000'000;
  send("STOPPING=1\nEXTEND_TIMEOUT_USEC=" + std::to_string(most.count() + kMore) +
       "\nSTATUS=Stopping, finishing requests in flight.");
}

void ServiceManager::alive() { send("WATCHDOG=1"); }

void ServiceManager::hand_over(pid_t successor) {
  send("READY=1\nMAINPID=" + std::to_string(successor) + "\nSTATUS=Serving.");
  is_silent_ = true;
}

}  // namespace weir::server::life
