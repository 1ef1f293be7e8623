// Resolves and connects. See connect.h.
#include "net/connect.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "weir/clock.h"

namespace weir::net {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kAddressesMax = 16;
constexpr nanoseconds kLastWait{std::chrono::seconds{1}};
constexpr int kSliceMs = 50;
constexpr int kFullMs = 1;  // until the next try of a unix socket whose backlog is full

static_assert(base::kSocketPathMax == sizeof(sockaddr_un::sun_path) - 1);

SocketAddress unix_address(const std::string& path) {
  SocketAddress address{.size = sizeof(sockaddr_un)};
  auto& place = reinterpret_cast<sockaddr_un&>(address.storage);
  place.sun_family = AF_UNIX;
  std::memcpy(place.sun_path, path.data(), std::min(path.size(), base::kSocketPathMax));
  return address;
}

}  // namespace

Result<std::vector<SocketAddress>> resolve(const base::Endpoint& endpoint, int flags) {
  if (endpoint.host.empty()) return std::vector{unix_address(endpoint.path)};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list);
  if (error != 0) {
    return fail(ErrorCode::unavailable, "cannot resolve " + endpoint.host + ": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  std::vector<SocketAddress> found;
  for (const addrinfo* one = list; one != nullptr && found.size() < kAddressesMax; one = one->ai_next) {
    SocketAddress& address = found.emplace_back(SocketAddress{.size = one->ai_addrlen});
    std::memcpy(&address.storage, one->ai_addr, std::min<std::size_t>(one->ai_addrlen, sizeof address.storage));
  }
  if (found.empty()) return fail(ErrorCode::unavailable, "cannot resolve " + endpoint.host + ": it has no address");
  return found;
}

base::Descriptor begin_connect(const SocketAddress& address, int& error) {
  const int family = address.storage.ss_family;
  base::Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  error = socket ? 0 : errno;
  if (!socket) return socket;
  const int on = 1;
  if (family != AF_UNIX) (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0) error = errno;
  return socket;
}

int connect_error(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Deadline::Deadline(nanoseconds timeout, const std::atomic<bool>* is_ending)
    : is_ending_(is_ending), at_(read_stopwatch() + timeout) {}

Deadline Deadline::share(std::size_t sharers) const {
  Deadline part = *this;
  const nanoseconds now = read_stopwatch();
  part.at_ = now + (at_ - now) / static_cast<std::int64_t>(sharers);
  return part;
}

bool Deadline::is_over() {
  const nanoseconds now = read_stopwatch();
  if (is_ending_ != nullptr && *is_ending_ && !is_last_) {
    is_last_ = true;
    at_ = std::min(at_, now + kLastWait);
  }
  return now >= at_;
}

bool Deadline::wait_for(int socket, short events) {
  while (!is_over()) {
    pollfd watched{socket, events, 0};
    if (::poll(&watched, 1, kSliceMs) > 0) return true;
  }
  return false;
}

Result<base::Descriptor> connect_to(const base::Endpoint& endpoint, Deadline deadline) {
  const auto addresses = resolve(endpoint);
  if (!addresses) return fail(addresses.error());
  int error = 0;
  std::size_t left = addresses->size();
  for (const SocketAddress& address : *addresses) {
    Deadline part = deadline.share(left--);
    base::Descriptor socket = begin_connect(address, error);
    while (error == EAGAIN && !part.is_over()) {
      ::poll(nullptr, 0, kFullMs);
      socket = begin_connect(address, error);
    }
    if (error == EINPROGRESS) error = part.wait_for(socket.get(), POLLOUT) ? connect_error(socket.get()) : ETIMEDOUT;
    if (error == 0) return socket;
  }
  if (error == ECONNREFUSED || error == ENOENT) {
    return fail(ErrorCode::unavailable, "no server listens on " + base::to_string(endpoint) + "; start one first");
  }
  if (error == EAGAIN) error = ETIMEDOUT;
  return fail(ErrorCode::unavailable, "cannot connect to " + base::to_string(endpoint) + ": " + std::strerror(error));
}

}  // namespace weir::net
