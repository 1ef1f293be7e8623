// Where Redis is, as a person writes it, and how to get in.
//
//     redis://user:secret@redis.example:6379/2           rediss://... with TLS
//     redis+sentinel://a,b:26380,[2001:db8::1]/main/2    redis+cluster://a,b,c        redis+unix:///run/redis.sock
//
// Behind a `?` may stand settings: user, password_file, sentinel_user, sentinel_password_file, ca, cert, key,
// server_name, verify=no, db (of a unix socket). A password is read from its file at each connect, so that it can be
// changed; nothing here ever prints one. Any thread. Tested by url_test.cc and fuzz/redis_url.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::redis {

inline constexpr std::size_t kUrlMax = 4096;
inline constexpr std::size_t kEndpointsMax = 64;  // of one address
inline constexpr std::size_t kPasswordMax = 4096;

struct Endpoint {
  std::string host{};  // a name or an IP address, without brackets; empty for a unix socket
  std::uint16_t port = 0;
  std::string path{};

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};
std::string to_string(const Endpoint& endpoint);

struct Credentials {
  std::string user{};
  std::string password{};
  std::string password_file{};

  bool are_given() const { return !password.empty() || !password_file.empty(); }
};

struct TlsSettings {
  bool is_on = false;
  std::string ca{};           // PEM; empty: those that the system trusts
  std::string certificate{};  // PEM, with its key, if the server asks for one
  std::string key{};
  std::string server_name{};  // empty: the host
  bool is_verified = true;
};

enum class Layout : std::uint8_t { single, sentinel, cluster };

struct Target {
  Layout layout = Layout::single;
  std::vector<Endpoint> endpoints{};  // single: one; else the sentinels, or some of the cluster's nodes
  std::string master_name{};          // sentinel
  int db = 0;
  Credentials credentials{};
  Credentials sentinel_credentials{};
  TlsSettings tls{};
};

Result<Target> parse_url(std::string_view url);

// As an address again, without a password.
std::string to_string(const Target& target);

// What is to be sent: the given password, or what its file says now, without the end of its last line.
Result<std::string> read_password(const Credentials& credentials);

}  // namespace weir::redis
