// Parses the address of Redis as an operator writes it: hosts, layout, credentials, TLS.
//
//     redis://user:secret@redis.example:6379/2           rediss://... with TLS
//     redis+sentinel://a,b:26380,[2001:db8::1]/main/2    redis+cluster://a,b,c        redis+unix:///run/redis.sock
//
// A `?` starts the settings: user, password_file, sentinel_user, sentinel_password_file, ca, cert, key, server_name,
// verify=no, db (of a unix socket). A password file is read at each connect, so the password can change. No function
// here prints a password. Any thread may call it. Tested by redis_url_test.cc and fuzz/redis_url.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/endpoint.h"
#include "weir/result.h"

namespace weir::base::redis {

inline constexpr std::size_t kUrlMax = 4096;
inline constexpr std::size_t kEndpointsMax = 64;  // of one address
inline constexpr std::size_t kPasswordMax = 4096;

struct Credentials {
  std::string user{};
  std::string password{};
  std::string password_file{};

  bool are_given() const { return !password.empty() || !password_file.empty(); }
};

enum class Layout : std::uint8_t { single, sentinel, cluster };

struct Target {
  Layout layout = Layout::single;
  std::vector<Endpoint> endpoints{};  // single: one; else the sentinels, or some nodes of the cluster
  std::string master_name{};          // sentinel
  int db = 0;
  Credentials credentials{};
  Credentials sentinel_credentials{};
  TlsSettings tls{};
};

Result<Target> parse_url(std::string_view url);

// Returns the address as text, without the password.
std::string to_string(const Target& target);

// Returns the password to send: the given one, or the current content of its file without the last line end.
Result<std::string> read_password(const Credentials& credentials);

}  // namespace weir::base::redis
