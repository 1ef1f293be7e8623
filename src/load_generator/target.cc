// Parses addresses and connects. See target.h.
#include "load_generator/target.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/nearest.h"

namespace weir::load {
namespace {

tl::unexpected<Error> bad_target(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid_argument, in_quotes(text) + " is not an address: " + std::string(why) +
                                               "; write 127.0.0.1:6380, :6380 or unix:/run/weir.sock");
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }) &&
         std::stoi(std::string(text)) <= 65'535;
}

tl::unexpected<Error> cannot_connect(const Target& target, int error) {
  if (error == ECONNREFUSED || error == ENOENT) {
    return fail(ErrorCode::unavailable, "no server listens on " + to_string(target) + "; start one first");
  }
  return fail(ErrorCode::unavailable, "cannot connect to " + to_string(target) + ": " + std::strerror(error));
}

Result<int> connect_socket(const Target& target, int family, const sockaddr* address, socklen_t size) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return cannot_connect(target, errno);
  if (connect(fd, address, size) != 0) {
    const int error = errno;
    close(fd);
    return cannot_connect(target, error);
  }
  const int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // fails on a unix socket, harmlessly
  (void)fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

Result<int> connect_unix(const Target& target) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(target.path, address.sun_path);  // parse_target() has checked the length
  return connect_socket(target, AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

}  // namespace

Result<Target> parse_target(std::string_view text) {
  std::string_view rest = text;
  if (const std::size_t scheme = rest.find("://"); scheme != rest.npos) rest.remove_prefix(scheme + 3);
  if (rest.starts_with("unix:")) rest.remove_prefix(5);
  if (rest.starts_with('/')) {
    if (rest.size() >= sizeof(sockaddr_un::sun_path)) return bad_target(text, "the socket path is too long");
    return Target{.path = std::string(rest)};
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t colon = rest.rfind(':');
  if (colon == rest.npos || rest.ends_with(']')) return bad_target(text, "the port is missing");
  if (!is_port(rest.substr(colon + 1))) return bad_target(text, "the port must be a number up to 65535");
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) host = "127.0.0.1";
  return Target{.host = std::string(host), .port = std::string(rest.substr(colon + 1))};
}

std::string to_string(const Target& target) {
  if (target.host.empty()) return "unix:" + target.path;
  const bool is_v6 = target.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + target.host + "]" : target.host) + ":" + target.port;
}

Result<int> connect_to(const Target& target) {
  if (target.host.empty()) return connect_unix(target);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &list); error != 0) {
    return fail(ErrorCode::unavailable, in_quotes(target.host) + ": " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  Result<int> last = cannot_connect(target, EADDRNOTAVAIL);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    last = connect_socket(target, one->ai_family, one->ai_addr, one->ai_addrlen);
    if (last) return last;
  }
  return last;
}

bool is_on_this_machine(const Target& target) {
  if (target.host.empty() || target.host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, target.host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  in6_addr v6{};
  return inet_pton(AF_INET6, target.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

}  // namespace weir::load
