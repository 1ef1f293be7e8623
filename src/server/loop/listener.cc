// Parses addresses and creates listening sockets, with an error message for each way to fail. See listener.h.
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

#include "base/nearest.h"
#include "base/text.h"

namespace weir::server::loop {
namespace {

tl::unexpected<Error> bad_address(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid_argument, base::in_quotes(text) + " is not an address: " + std::string(why) +
                                               "; write 127.0.0.1:8080, [::1]:8080, :8080 or unix:/run/weir.sock");
}

constexpr std::string_view kUnix = "unix:";

Result<Address> parse_path(std::string_view text) {
  Address address{{}, 0, std::string(text.substr(kUnix.size()))};
  if (address.path.empty()) return bad_address(text, "the path of the socket is missing");
  if (address.path.size() >= sizeof(sockaddr_un::sun_path)) {
    return bad_address(text,
                       "a socket path has at most " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes");
  }
  return address;
}

bool is_numeric(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

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
base::Descriptor bound(const Address& address, Sharing sharing) {
  Endpoint endpoint = endpoint_of(address);
  base::Descriptor socket(::socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  const int on = 1;
  if (!address.is_unix()) {
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (sharing == Sharing::among_loops) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  }
  if (bind(socket.get(), endpoint.get(), endpoint.size) != 0) return {};
  return socket;
}

bool start_listening(const base::Descriptor& socket) { return ::listen(socket.get(), SOMAXCONN) == 0; }

// Whether the file was left behind by a killed server. If a server uses it, connecting succeeds.
bool is_left_behind(const Address& address) {
  struct stat status {};
  if (::stat(address.path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  Endpoint endpoint = endpoint_of(address);
  const base::Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
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

Result<Address> parse_address(std::string_view text) {
  if (text.starts_with(kUnix)) return parse_path(text);
  if (text.find("://") != std::string_view::npos) return bad_address(text, "leave out the scheme");
  if (base::to_number<std::uint16_t>(text)) return bad_address(text, "a port alone needs a colon before it");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) return bad_address(text, "the port is missing");
  const auto port = base::to_number<std::uint16_t>(text.substr(colon + 1));
  if (!port) return bad_address(text, "the port must be a number from 0 to 65535");
  std::string_view host = text.substr(0, colon);
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (!has_brackets && host.find(':') != std::string_view::npos) {
    return bad_address(text, "an IPv6 address needs brackets");
  }
  Address address{std::string(host), *port, {}};
  if (host.empty() && !has_brackets) address.host = "127.0.0.1";
  if (host == "localhost") address.host = "127.0.0.1";
  if (!is_numeric(address.host) || (has_brackets && host.find(':') == std::string_view::npos)) {
    return bad_address(text, "the host is not an IP address");
  }
  return address;
}

bool Address::is_loopback() const { return is_unix() || host == "::1" || host.starts_with("127."); }

std::string to_string(const Address& address) {
  if (address.is_unix()) return std::string(kUnix) + address.path;
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? '[' + address.host + ']' : address.host) + ':' + std::to_string(address.port);
}

Address address_of(const sockaddr_storage& address, socklen_t size) {
  Address found;
  if (address.ss_family == AF_UNIX) {
    const char* path = reinterpret_cast<const sockaddr_un&>(address).sun_path;
    const std::size_t length = size - std::min<std::size_t>(size, offsetof(sockaddr_un, sun_path));
    found.path = length == 0 || path[0] == '\0' ? "@" + std::string(path + (length > 0), length - (length > 0))
                                                : std::string(path, strnlen(path, length));
    return found;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  const void* bytes = address.ss_family == AF_INET ? static_cast<const void*>(&v4.sin_addr) : &v6.sin6_addr;
  inet_ntop(address.ss_family, bytes, text.data(), text.size());
  found.host = text.data();
  found.port = ntohs(v4.sin_port);  // the field is at the same offset in both families
  return found;
}

Address address_of(const base::Descriptor& socket) {
  Endpoint endpoint;
  endpoint.size = sizeof endpoint.bytes;
  if (getsockname(socket.get(), endpoint.get(), &endpoint.size) != 0) return {};
  return address_of(endpoint.bytes, endpoint.size);
}

Result<Listening> listen_on(const Address& address, std::string_view option, std::size_t sockets) {
  if (address.is_unix()) return listen_on_path(address, option);
  Listening listening{address, {}};
  {
    // With SO_REUSEPORT, the loops' sockets would share the port with another process's, too. So first bind it
    // without sharing. If the kernel chooses the port, this socket fixes the choice for all loops.
    const base::Descriptor alone = bound(address, Sharing::alone);
    if (!alone || !start_listening(alone)) return fail(cannot_listen(option, address, errno));
    listening.address.port = address_of(alone).port;
  }
  for (std::size_t i = 0; i < sockets; ++i) {
    base::Descriptor socket = bound(listening.address, Sharing::among_loops);
    if (!socket || !start_listening(socket)) return fail(cannot_listen(option, listening.address, errno));
    listening.sockets.push_back(std::move(socket));
  }
  return listening;
}

}  // namespace weir::server::loop
