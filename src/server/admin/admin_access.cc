// Access control of the admin API, check by check. See admin_access.h.
#include "server/admin/admin_access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/nearest.h"
#include "protocol/http1.h"
#include "server/admin/wrong_secret.h"

namespace weir {
namespace {

bool is_numeric(const std::string& host, int family) {
  std::array<std::uint8_t, 16> address{};
  return inet_pton(family, host.c_str(), address.data()) == 1;
}

bool is_json(std::string_view type) {
  type = type.substr(0, std::min(type.find(';'), type.size()));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  return equals_ignoring_case(type, kJsonType);
}

bool has_token(const AdminAccess& access, const HttpCall& call) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view given = only_field(call, "authorization").value_or("");
  if (given.size() <= kScheme.size() || !equals_ignoring_case(given.substr(0, kScheme.size()), kScheme)) return false;
  return is_same_secret(given.substr(kScheme.size()), access.token);
}

}  // namespace

std::optional<std::string_view> only_field(const HttpCall& call, std::string_view name) {
  std::optional<std::string_view> found;
  for (const Attribute& one : call.fields) {
    if (!equals_ignoring_case(one.name, name)) continue;
    if (found) return std::string_view();
    found = one.value;
  }
  return found;
}

bool is_our_origin(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme) && equals_ignoring_case(origin.substr(scheme.size()), host)) return true;
  }
  return false;
}

bool is_known_host(const AdminAccess& access, std::string_view host) {
  if (access.any_host) return true;
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end != host.npos && is_numeric(std::string(host.substr(1, end - 1)), AF_INET6);
  }
  std::string name = lower(host.substr(0, std::min(host.rfind(':'), host.size())));
  if (name.ends_with('.')) name.pop_back();
  if (name == "localhost" || is_numeric(name, AF_INET)) return true;
  return std::ranges::any_of(access.hosts, [&](const std::string& one) { return lower(one) == name; });
}

std::optional<AdminRefusal> refuse_admin(const AdminAccess& access, const HttpCall& call) {
  const std::string_view host = only_field(call, "host").value_or("");
  if (!call.target.starts_with('/') || !is_known_host(access, host)) {
    return AdminRefusal{403, "Forbidden",
                        "call the admin API by IP address or as localhost, not as " + in_quotes(host) +
                            "; --admin-host NAME allows a name"};
  }
  const auto origin = only_field(call, "origin");
  if (origin && !is_our_origin(*origin, host)) {
    return AdminRefusal{403, "Forbidden",
                        "web pages of other origins may not call the admin API; Origin is " + in_quotes(*origin)};
  }
  if (!access.token.empty() && !has_token(access, call)) {
    return AdminRefusal{401, "Unauthorized", "send Authorization: Bearer TOKEN with the token from --admin-token-file"};
  }
  const bool is_reading = call.method == "GET" || call.method == "HEAD";
  if (!is_reading && !is_json(only_field(call, "content-type").value_or(""))) {
    return AdminRefusal{415, "Unsupported media type", "send JSON, with Content-Type: application/json"};
  }
  return {};
}

}  // namespace weir
