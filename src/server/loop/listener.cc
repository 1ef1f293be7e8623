// Creates listening sockets, with an error message for each way to fail. See listener.h.
#include "server/loop/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace weir {
namespace {

// An address in the kernel's format.
struct Endpoint {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
  int family() const { return bytes.ss_family; }
};

template <class T>
Endpoint endpoint_of(const T& address) {
  Endpoint endpoint;
  std::memcpy(&endpoint.bytes, &address, sizeof address);
  endpoint.size = sizeof address;
  return endpoint;
}

Endpoint endpoint_of(const Address& address) {
  if (address.is_unix()) {
    sockaddr_un local{};
    local.sun_family = AF_UNIX;
    std::memcpy(local.sun_path, address.path.data(), address.path.size());
    return endpoint_of(local);
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(address.port);
  if (inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) == 1) return endpoint_of(v4);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr);
  return endpoint_of(v6);
}

Error cannot_listen(std::string_view option, const Address& address, int error) {
  std::string message = "cannot listen on " + to_string(address) + ": ";
  const std::string free_port = std::string(option) + " " + to_string({address.host, 0, {}});
  if (address.is_unix()) {
    message += error == EADDRINUSE
                   ? "another server is listening there. Choose another path"
                   : std::string(std::strerror(error)) + ". Choose a path in an existing, writable folder";
  } else if (error == EADDRINUSE) {
    message += "the port is in use. Choose another, or any free one with " + free_port;
  } else if (error == EACCES) {
    message += "this port needs privileges. Choose one above 1023, or any free one with " + free_port;
  } else if (error == EADDRNOTAVAIL) {
    message += "this machine has no such address. Try " + std::string(option) + " " +
               to_string({"127.0.0.1", address.port, {}});
  } else {
    message += std::strerror(error);
  }
  return {ErrorCode::unavailable, std::move(message), 0};
}

enum class Sharing : bool { alone, among_loops };

// A bound socket; on failure none, with errno.
Descriptor bound(const Address& address, Sharing sharing) {
  Endpoint endpoint = endpoint_of(address);
  Descriptor socket(::socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  const int on = 1;
  if (!address.is_unix()) {
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (sharing == Sharing::among_loops) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  }
  if (bind(socket.get(), endpoint.get(), endpoint.size) != 0) return {};
  return socket;
}

bool start_listening(const Descriptor& socket) { return ::listen(socket.get(), SOMAXCONN) == 0; }

// Whether the file was left behind by a killed server. If a server uses it, connecting succeeds.
bool is_left_behind(const Address& address) {
  struct stat status {};
  if (::stat(address.path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  Endpoint endpoint = endpoint_of(address);
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return probe && connect(probe.get(), endpoint.get(), endpoint.size) != 0 && errno == ECONNREFUSED;
}

Result<Listening> listen_on_path(const Address& address, std::string_view option) {
  if (is_left_behind(address)) ::unlink(address.path.c_str());
  Listening listening{address, {}};
  listening.sockets.push_back(bound(address, Sharing::alone));
  if (!listening.sockets[0] || !start_listening(listening.sockets[0])) {
    return fail(cannot_listen(option, address, errno));
  }
  return listening;
}

}  // namespace

Address address_of(const Descriptor& socket) {
  Address address;
  Endpoint endpoint;
  endpoint.size = sizeof endpoint.bytes;
  if (getsockname(socket.get(), endpoint.get(), &endpoint.size) != 0) return address;
  if (endpoint.family() == AF_UNIX) {
    const char* path = reinterpret_cast<const sockaddr_un*>(&endpoint.bytes)->sun_path;
    const std::size_t room = endpoint.size - std::min<std::size_t>(endpoint.size, offsetof(sockaddr_un, sun_path));
    address.path = room == 0 || path[0] == '\0' ? "@" + std::string(path + (room > 0), room - (room > 0))
                                                : std::string(path, strnlen(path, room));
    return address;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&endpoint.bytes);
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&endpoint.bytes);
  const void* bytes = endpoint.family() == AF_INET ? static_cast<const void*>(&v4->sin_addr) : &v6->sin6_addr;
  inet_ntop(endpoint.family(), bytes, text.data(), text.size());
  address.host = text.data();
  address.port = ntohs(v4->sin_port);  // the field is at the same offset in both families
  return address;
}

Result<Listening> listen_on(const Address& address, std::string_view option, std::size_t sockets) {
  if (address.is_unix()) return listen_on_path(address, option);
  Listening listening{address, {}};
  {
    // With SO_REUSEPORT, the loops' sockets would share the port with another process's, too. So first bind it
    // without sharing. If the kernel chooses the port, this socket fixes the choice for all loops.
    const Descriptor alone = bound(address, Sharing::alone);
    if (!alone || !start_listening(alone)) return fail(cannot_listen(option, address, errno));
    listening.address.port = address_of(alone).port;
  }
  for (std::size_t i = 0; i < sockets; ++i) {
    Descriptor socket = bound(listening.address, Sharing::among_loops);
    if (!socket || !start_listening(socket)) return fail(cannot_listen(option, listening.address, errno));
    listening.sockets.push_back(std::move(socket));
  }
  return listening;
}

}  // namespace weir
