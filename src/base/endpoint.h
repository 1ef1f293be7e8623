// Where a client connects to: a host and its port, or a unix socket; and how it uses TLS there.
//
// Pure; any thread. Tested by endpoint_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::base {

inline constexpr std::size_t kSocketPathMax = 107;  // bytes of a unix socket's path

struct Endpoint {
  std::string host{};  // a name or an IP address, without brackets; empty for a unix socket
  std::uint16_t port = 0;
  std::string path{};

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// "127.0.0.1:8080", "[::1]:8080", "unix:/run/weir.sock"
std::string to_string(const Endpoint& endpoint);

// parse_endpoint()
//
// A server's address as people write it: `127.0.0.1:6380`, `:6380`, `localhost:6380`, `[::1]:6380`,
// `unix:/run/weir.sock`. A scheme before it, such as the redis:// that `weir serve` prints, is ignored.
Result<Endpoint> parse_endpoint(std::string_view text);

// Judged by its name: a unix socket, localhost or a loopback address.
bool is_on_this_machine(const Endpoint& endpoint);

struct TlsSettings {
  bool is_on = false;
  std::string ca{};           // PEM; empty: the system's trusted certificates
  std::string certificate{};  // PEM; with `key`, for servers that require a client certificate
  std::string key{};
  std::string server_name{};  // empty: the host
  bool is_verified = true;
  bool has_user = false;  // a person at the terminal can enter the passphrase of the key
};

// The parts of `host:port`, `[v6]:port` or `host`. Nothing if a bracket is not closed, or if anything but a port
// follows it.
struct HostPort {
  std::string_view host;
  std::optional<std::string_view> port;
};
std::optional<HostPort> split_host_port(std::string_view text);

}  // namespace weir::base
