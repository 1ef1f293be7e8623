// Parses addresses of Redis piece by piece, and prints them. See redis_url.h.
//
// An error names the piece that is wrong, and never quotes what precedes the @.
#include "base/redis_url.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/text.h"

namespace weir::base::redis {
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

// Empty if a percent sign is not followed by two hexadecimal digits, or if the result would contain a zero byte.
std::optional<std::string> unescaped(std::string_view text) {
  auto out = percent_decoded(text);
  if (out && out->find('\0') != out->npos) out.reset();
  return out;
}

std::string escaped(std::string_view text) {
  constexpr std::string_view kPlain = "-._~/+";
  return percent_encoded(text, [=](char c) { return is_letter_or_digit(c) || kPlain.find(c) != kPlain.npos; });
}

template <class Number>
std::optional<Number> number_in(std::string_view text, Number most) {
  const auto value = to_number<Number>(text);
  return value && *value <= most && *value >= 0 ? value : std::nullopt;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= 255 &&
         std::ranges::all_of(text, [](char c) { return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_'; });
}

bool is_v6(std::string_view text) {
  return text.find(':') != text.npos && text.size() <= 64 &&
         std::ranges::all_of(text, [](char c) { return is_letter_or_digit(c) || c == ':' || c == '.' || c == '%'; });
}

Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
  const auto parts = split_host_port(text);
  if (!parts) {
    return wrong(in_quotes(text) + (text.find(']') == text.npos ? " has no closing bracket; write [2001:db8::1]:6379"
                                                                : ": only a port may follow the bracket"));
  }
  const auto& [host, port] = *parts;
  if (text.starts_with('[') && !is_v6(host)) {
    return wrong(in_quotes(host) + " is not an IPv6 address; write [2001:db8::1]:6379");
  }
  if (!text.starts_with('[') && !is_host(host)) {
    return wrong(in_quotes(host) + " is not a host; write a name, an IP address, or [an IPv6 address]");
  }
  const auto number = port ? to_number<std::uint16_t>(*port) : default_port;
  if (number.value_or(0) == 0) return wrong(in_quotes(*port) + " is not a port; write a number from 1 to 65535");
  return Endpoint{.host = std::string(host), .port = *number};
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
    if (file->size() > kSocketPathMax) return wrong("the path of a unix socket must be shorter than 108 bytes");
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
  if (tls.certificate.empty() != tls.key.empty()) return wrong("cert and key belong together; give both or neither");
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
               " Write redis://, redis+unix://, redis+sentinel:// or redis+cluster://; with TLS rediss://, "
               "rediss+sentinel:// or rediss+cluster://");
}

}  // namespace

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
  for (std::size_t i = 0; i < target.endpoints.size(); ++i) {
    if (i > 0) text += ",";
    text += is_unix ? escaped(target.endpoints[i].path) : base::to_string(target.endpoints[i]);
  }
  if (target.layout == Layout::sentinel) text += "/" + escaped(target.master_name);
  if (target.db != 0) text += (is_unix ? "?db=" : "/") + std::to_string(target.db);
  return text;
}

namespace {

constexpr const char* kFix = "; write the password into it, and make it readable for the user that runs this program";

tl::unexpected<Error> bad_file(const std::string& file, const std::string& what) {
  return fail(ErrorCode::unavailable, "the password file " + file + " " + what);
}

}  // namespace

Result<std::string> read_password(const Credentials& credentials) {
  if (credentials.password_file.empty()) return credentials.password;
  const std::string& name = credentials.password_file;
  const Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // opening a pipe would block
  if (!file) return bad_file(name, std::string("cannot be opened: ") + std::strerror(errno) + kFix);
  auto text = read_rest(file.get(), "the password file " + name, kPasswordMax + 2);
  if (!text && text.error().code != ErrorCode::out_of_range)
    return fail(text.error().code, text.error().message + kFix);
  if (text && text->ends_with('\n')) text->pop_back();
  if (text && text->ends_with('\r')) text->pop_back();
  if (!text || text->size() > kPasswordMax) {
    return bad_file(name, "has more than 4096 bytes; write only the password into it");
  }
  if (text->empty()) return bad_file(name, "is empty; write the password into it");
  return text;
}

}  // namespace weir::base::redis
