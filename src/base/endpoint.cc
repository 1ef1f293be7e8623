// Parses and prints addresses of servers. See endpoint.h.
#include "base/endpoint.h"

#include "base/ip_address.h"
#include "base/nearest.h"
#include "base/text.h"

namespace weir::base {
namespace {

tl::unexpected<Error> no_endpoint(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid_argument, in_quotes(text) + " is not an address: " + std::string(why) +
                                               "; write 127.0.0.1:6380, :6380 or unix:/run/weir.sock");
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.host.empty()) return "unix:" + endpoint.path;
  const bool is_v6 = endpoint.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

std::optional<HostPort> split_host_port(std::string_view text) {
  HostPort parts{.host = text};
  std::size_t colon = text.rfind(':');
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return std::nullopt;
    parts.host = text.substr(1, end - 1);
    colon = end + 1 == text.size() ? text.npos : end + 1;
    if (colon != text.npos && text[colon] != ':') return std::nullopt;
  } else if (colon != text.npos) {
    parts.host = text.substr(0, colon);
  }
  if (colon != text.npos) parts.port = text.substr(colon + 1);
  return parts;
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  std::string_view rest = text;
  if (const std::size_t scheme = rest.find("://"); scheme != rest.npos) rest.remove_prefix(scheme + 3);
  if (rest.starts_with("unix:")) rest.remove_prefix(5);
  if (rest.starts_with('/')) {
    if (rest.size() > kSocketPathMax) return no_endpoint(text, "the socket path is too long");
    return Endpoint{.path = std::string(rest)};
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const auto parts = split_host_port(rest);
  if (!parts || !parts->port) return no_endpoint(text, "the port is missing");
  const auto port = to_number<std::uint16_t>(*parts->port);
  if (!port) return no_endpoint(text, "the port must be a number up to 65535");
  return Endpoint{.host = parts->host.empty() ? "127.0.0.1" : std::string(parts->host), .port = *port};
}

bool is_on_this_machine(const Endpoint& endpoint) {
  if (endpoint.host.empty() || endpoint.host == "localhost") return true;
  const auto address = parse_ip(endpoint.host);
  if (!address) return false;
  constexpr std::size_t kV4At = 12;  // where an IPv4 address begins
  return address->is_v4() ? address->bytes[kV4At] == 127 : *address == parse_ip("::1");
}

}  // namespace weir::base
