// Access control of the admin API, check by check. See admin_access.h.
#include "server/admin/admin_access.h"

#include "base/nearest.h"
#include "base/text.h"
#include "protocol/http1.h"
#include "server/observe/wrong_secret.h"

namespace weir::server::admin {
namespace {

bool is_json(std::string_view type) {
  return protocol::equals_ignoring_case(base::trimmed(type.substr(0, type.find(';'))), protocol::kJsonType);
}

bool has_token(const AdminAccess& access, const http::HttpCall& call) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view given = http::only_field(call, "authorization").value_or("");
  if (given.size() <= kScheme.size() || !protocol::equals_ignoring_case(given.substr(0, kScheme.size()), kScheme))
    return false;
  return observe::is_same_secret(given.substr(kScheme.size()), access.token);
}

}  // namespace

bool is_known_host(const AdminAccess& access, std::string_view host) {
  return access.any_host || http::is_known_host(access.hosts, host);
}

std::optional<AdminRefusal> refuse_admin(const AdminAccess& access, const http::HttpCall& call) {
  const std::string_view host = http::only_field(call, "host").value_or("");
  if (!call.target.starts_with('/') || !is_known_host(access, host)) {
    return AdminRefusal{403, "Forbidden",
                        "call the admin API by IP address or as localhost, not as " + base::in_quotes(host) +
                            "; --admin-host NAME allows a name"};
  }
  const auto origin = http::only_field(call, "origin");
  if (origin && !http::is_our_origin(*origin, host)) {
    return AdminRefusal{403, "Forbidden",
                        "web pages of other origins may not call the admin API; Origin is " + base::in_quotes(*origin)};
  }
  if (!access.token.empty() && !has_token(access, call)) {
    return AdminRefusal{401, "Unauthorized", "send Authorization: Bearer TOKEN with the token from --admin-token-file"};
  }
  const bool is_reading = call.method == "GET" || call.method == "HEAD";
  if (!is_reading && !is_json(http::only_field(call, "content-type").value_or(""))) {
    return AdminRefusal{415, "Unsupported media type", "send JSON, with Content-Type: application/json"};
  }
  return {};
}

}  // namespace weir::server::admin
