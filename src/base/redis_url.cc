// Parses addresses of Redis piece by piece, and prints them. See redis_url.h.
//
// An error names the piece that is wrong, and never quotes what precedes the @.
#include "base/redis_url.h"

#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/nearest.h"

namespace weir::redis {
namespace {

struct Scheme {
  std::string_view name;
  Layout layout;
  bool has_tls;
  bool is_unix;
};
constexpr std::array<Scheme, 7> kSchemes = {{
    {"redis", Layout::single, false, false},
    {"rediss", Layout::single, true, false},
    {"redis+unix", Layout::single, false, true},
    {"redis+sentinel", Layout::sentinel, false, false},
    {"rediss+sentinel", Layout::sentinel, true, false},
    {"redis+cluster", Layout::cluster, false, false},
    {"rediss+cluster", Layout::cluster, true, false},
}};

constexpr std::uint16_t kRedisPort = 6379;
constexpr std::uint16_t kSentinelPort = 26'379;
constexpr int kDbMax = 65'535;

tl::unexpected<Error> wrong(std::string what) {
  return fail(ErrorCode::invalid_argument, "Redis URL: " + std::move(what));
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = lower(c);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// Empty if a percent sign is not followed by two hexadecimal digits, or if the result would contain a zero byte.
std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0') return std::nullopt;
    out += c;
  }
  return out;
}

std::string escaped(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-._~/+";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain =
        (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || kPlain.find(c) != kPlain.npos;
    if (is_plain) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

template <class Number>
std::optional<Number> number_in(std::string_view text, Number most) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value > most || value < 0) {
    return std::nullopt;
  }
  return value;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= 255 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '.' || c == '-' || c == '_';
  });
}

bool is_v6(std::string_view text) {
  return text.find(':') != text.npos && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
           return hex_digit(c) >= 0 || c == ':' || c == '.' || c == '%' || (lower(c) >= 'a' && lower(c) <= 'z');
         });
}

Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
  Endpoint endpoint{.port = default_port};
  std::string_view host = text, port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return wrong(in_quotes(text) + " has no closing bracket; write [2001:db8::1]:6379");
    host = text.substr(1, end - 1);
    if (!is_v6(host)) return wrong(in_quotes(host) + " is not an IPv6 address; write [2001:db8::1]:6379");
    port = text.substr(end + 1);
    has_port = !port.empty();
    if (has_port && !port.starts_with(':')) return wrong(in_quotes(text) + ": only a port may follow the bracket");
  } else {
    const std::size_t colon = text.find(':');
    host = text.substr(0, colon);
    if (!is_host(host))
      return wrong(in_quotes(host) + " is not a host; write a name, an IP address, or [an IPv6 address]");
    has_port = colon != text.npos;
    if (has_port) port = text.substr(colon);
  }
  endpoint.host = host;
  if (!has_port) return endpoint;
  const auto number = number_in<int>(port.substr(1), 65'535);
  if (!number || *number == 0)
    return wrong(in_quotes(port.substr(1)) + " is not a port; write a number from 1 to 65535");
  endpoint.port = static_cast<std::uint16_t>(*number);
  return endpoint;
}

Result<void> read_endpoints(std::string_view text, const Scheme& scheme, Target& target) {
  const std::uint16_t port = scheme.layout == Layout::sentinel ? kSentinelPort : kRedisPort;
  if (scheme.layout == Layout::single && text.find(',') != text.npos) {
    return wrong("several hosts need redis+cluster:// or redis+sentinel://");
  }
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    auto endpoint = parse_endpoint(text.substr(0, comma), port);
    if (!endpoint) return fail(endpoint.error());
    if (target.endpoints.size() == kEndpointsMax) return wrong("more than 64 hosts; list only some of them");
    target.endpoints.push_back(*std::move(endpoint));
    if (comma == text.size()) return {};
    text.remove_prefix(comma + 1);
  }
}

Result<void> read_user(std::string_view text, Credentials& credentials) {
  const std::size_t colon = text.find(':');
  auto user = unescaped(text.substr(0, colon));
  auto password = unescaped(colon == text.npos ? std::string_view{} : text.substr(colon + 1));
  if (!user || !password) {
    return wrong("two hexadecimal digits must follow a % before the @; write %25 for the character %");
  }
  if (password->size() > kPasswordMax) return wrong("the password is longer than 4096 bytes");
  credentials.user = *std::move(user);
  credentials.password = *std::move(password);
  return {};
}

Result<void> read_db(std::string_view text, Target& target) {
  const auto db = number_in<int>(text, kDbMax);
  if (!db) return wrong(in_quotes(text) + " is not a database number; write one such as 0");
  if (target.layout == Layout::cluster && *db != 0) return wrong("a cluster has only database 0; remove the number");
  target.db = *db;
  return {};
}

// Reads what follows the hosts: the master's name for Sentinel, and the database number.
Result<void> read_path(std::string_view path, const Scheme& scheme, Target& target) {
  if (scheme.is_unix) {
    auto file = unescaped(path);
    if (!file || file->size() < 2)
      return wrong("the path of the socket is missing; write redis+unix:///run/redis.sock");
    if (file->size() >= sizeof(sockaddr_un::sun_path))
      return wrong("the path of a unix socket must be shorter than 108 bytes");
    target.endpoints = {Endpoint{.path = *std::move(file)}};
    return {};
  }
  if (path.starts_with('/')) path.remove_prefix(1);
  if (scheme.layout == Layout::sentinel) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    auto name = unescaped(path.substr(0, slash));
    if (!name || name->empty()) return wrong("the master's name is missing; write redis+sentinel://host,host/name");
    target.master_name = *std::move(name);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return path.empty() ? Result<void>{} : read_db(path, target);
}

Result<void> use_setting(std::string_view name, std::string value, bool is_unix, Target& target) {
  const std::array<std::pair<std::string_view, std::string*>, 8> texts = {{
      {"password_file", &target.credentials.password_file},
      {"user", &target.credentials.user},
      {"sentinel_user", &target.sentinel_credentials.user},
      {"sentinel_password_file", &target.sentinel_credentials.password_file},
      {"ca", &target.tls.ca},
      {"cert", &target.tls.certificate},
      {"key", &target.tls.key},
      {"server_name", &target.tls.server_name},
  }};
  constexpr std::array<std::string_view, 10> kNames = {
      "password_file", "user", "sentinel_user", "sentinel_password_file", "ca", "cert", "key", "server_name",
      "verify",        "db"};
  if (name == "verify") {
    if (value != "no" && value != "yes") return wrong("verify=" + in_quotes(value) + ": write yes or no");
    target.tls.is_verified = value == "yes";
    return {};
  }
  if (name == "db") {
    if (!is_unix) return wrong("db= is only for redis+unix://; write the number after the host, as in redis://host/2");
    return read_db(value, target);
  }
  for (const auto& row : texts) {
    if (row.first != name) continue;
    if (value.empty()) return wrong("the setting " + std::string(name) + " has no value; give it one or remove it");
    *row.second = std::move(value);
    return {};
  }
  const std::string_view meant = nearest(name, kNames);
  return wrong("unknown setting " + in_quotes(name) +
               (meant.empty()
                    ? std::string("; known settings are password_file, user, ca, cert, key, server_name, verify")
                    : "; did you mean '" + std::string(meant) + "'?"));
}

Result<void> read_settings(std::string_view text, bool is_unix, Target& target) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view setting = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = setting.find('=');
    const std::string_view name = setting.substr(0, equals);
    auto value = unescaped(equals == setting.npos ? std::string_view{} : setting.substr(equals + 1));
    if (!value) return wrong("in the setting " + in_quotes(name) + ", two hexadecimal digits must follow a %");
    if (auto used = use_setting(name, *std::move(value), is_unix, target); !used) return used;
  }
  return {};
}

// Rejects settings that have no effect or contradict each other.
Result<void> check_whole(const Target& target) {
  const Credentials& own = target.credentials;
  if (!own.password.empty() && !own.password_file.empty()) {
    return wrong("both a password and a password_file are given; remove one of them");
  }
  if (!own.user.empty() && !own.are_given()) {
    return wrong("a user needs a password; write user:password@ or add password_file=");
  }
  const Credentials& other = target.sentinel_credentials;
  if (target.layout != Layout::sentinel && (!other.user.empty() || other.are_given())) {
    return wrong("sentinel_user and sentinel_password_file are only for redis+sentinel://");
  }
  if (!other.user.empty() && !other.are_given()) return wrong("sentinel_user needs sentinel_password_file");
  const TlsSettings& tls = target.tls;
  const bool speaks_of_tls =
      !tls.ca.empty() || !tls.certificate.empty() || !tls.key.empty() || !tls.server_name.empty() || !tls.is_verified;
  if (!tls.is_on && speaks_of_tls) return wrong("ca, cert, key, server_name and verify need TLS: write rediss://");
  if (tls.certificate.empty() != tls.key.empty()) return wrong("cert and key belong together; give both or none");
  return {};
}

Result<Scheme> scheme_of(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Scheme& scheme : kSchemes) {
    if (scheme.name == name) return scheme;
    names.push_back(scheme.name);
  }
  const std::string_view meant = nearest(name, names);
  return wrong("unknown scheme " + in_quotes(name) +
               (meant.empty() ? "." : "; did you mean " + std::string(meant) + "://?") +
               " Write redis://, rediss://, redis+unix://, redis+sentinel:// or redis+cluster://");
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.host.empty()) return endpoint.path;
  const bool has_colon = endpoint.host.find(':') != std::string::npos;
  return (has_colon ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

Result<Target> parse_url(std::string_view url) {
  if (url.size() > kUrlMax) return wrong("it is longer than 4096 bytes");
  const std::size_t mark = url.find("://");
  if (mark == url.npos) return wrong("it has no scheme; write redis://host:6379");
  const auto scheme = scheme_of(url.substr(0, mark));
  if (!scheme) return fail(scheme.error());
  std::string_view rest = url.substr(mark + 3);
  const std::size_t question = std::min(rest.find('?'), rest.size());
  const std::string_view settings = rest.substr(std::min(question + 1, rest.size()));
  rest = rest.substr(0, question);
  Target target{.layout = scheme->layout};
  target.tls.is_on = scheme->has_tls;
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  if (const std::size_t at = authority.rfind('@'); at != authority.npos) {
    if (auto user = read_user(authority.substr(0, at), target.credentials); !user) return fail(user.error());
    authority.remove_prefix(at + 1);
  }
  if (scheme->is_unix && !authority.empty())
    return wrong("a unix socket has no host; write redis+unix:///run/redis.sock");
  if (!scheme->is_unix) {
    if (auto hosts = read_endpoints(authority, *scheme, target); !hosts) return fail(hosts.error());
  }
  return read_path(rest.substr(slash), *scheme, target)
      .and_then([&] { return read_settings(settings, scheme->is_unix, target); })
      .and_then([&] { return check_whole(target); })
      .map([&] { return std::move(target); });
}

std::string to_string(const Target& target) {
  const bool is_unix = target.layout == Layout::single && !target.endpoints.empty() && target.endpoints[0].host.empty();
  std::string text = target.tls.is_on ? "rediss" : "redis";
  if (target.layout == Layout::sentinel) text += "+sentinel";
  if (target.layout == Layout::cluster) text += "+cluster";
  if (is_unix) text += "+unix";
  text += "://";
  if (!target.credentials.user.empty()) text += escaped(target.credentials.user) + "@";
  const std::string_view separator = ",";
  for (std::size_t i = 0; i < target.endpoints.size(); ++i) {
    if (i > 0) text += separator;
    text += is_unix ? escaped(target.endpoints[i].path) : to_string(target.endpoints[i]);
  }
  if (target.layout == Layout::sentinel) text += "/" + escaped(target.master_name);
  if (target.db != 0) text += (is_unix ? "?db=" : "/") + std::to_string(target.db);
  return text;
}

}  // namespace weir::redis
