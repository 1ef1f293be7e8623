// Access control of the admin API: the token, the Host name of the call, and no calls from pages of other sites.
//
// A browser on the operator's machine reaches loopback, too. So the Host must be an address, localhost or an allowed
// name, which stops DNS rebinding. An Origin must be the server's own. A call that changes something must send JSON,
// which no HTML form can do. Pure; any thread. Tested by admin_access_test.cc and tests/server/hostile_admin.sh.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/site_access.h"

namespace weir::server::admin {

struct AdminAccess {
  std::string token{};               // empty: no token is required
  std::vector<std::string> hosts{};  // accepted Host names
  bool any_host = false;             // as on a unix socket, which browsers cannot reach

  bool has_token() const { return !token.empty(); }
};

struct AdminRefusal {
  int status = 403;
  std::string_view title;
  std::string detail;
};

// Nothing if the server may answer the call.
std::optional<AdminRefusal> refuse_admin(const AdminAccess& access, const http::HttpCall& call);

bool is_known_host(const AdminAccess& access, std::string_view host);

}  // namespace weir::server::admin
