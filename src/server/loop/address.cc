// Parses and prints listening addresses. See address.h.
#include "server/loop/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <charconv>
#include <optional>

#include "base/nearest.h"

namespace weir {
namespace {

tl::unexpected<Error> bad_address(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid_argument, in_quotes(text) + " is not an address: " + std::string(why) +
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

std::optional<std::uint16_t> parse_port(std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return port;
}

bool is_numeric(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  if (text.starts_with(kUnix)) return parse_path(text);
  if (text.find("://") != std::string_view::npos) return bad_address(text, "leave out the scheme");
  if (parse_port(text)) return bad_address(text, "a port alone needs a colon before it");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) return bad_address(text, "the port is missing");
  const auto port = parse_port(text.substr(colon + 1));
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

}  // namespace weir
