// Who may use the admin port: by a token, by the name the port was called by, and never from a page of another site.
//
// A browser on the operator's machine reaches loopback, too. So the Host must be an address, localhost or a name that
// was allowed (a rebound name is none of these), an Origin must be our own, and what changes anything must be JSON,
// which no form can send. Pure; any thread. Tested by admin_access_test.cc and tests/server/hostile_admin.sh.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http_service.h"

namespace weir {

struct AdminAccess {
  std::string token{};               // empty: none is asked for
  std::vector<std::string> hosts{};  // names that the port may be called by
  bool any_host = false;             // as on a unix socket, which no browser reaches

  bool has_token() const { return !token.empty(); }
};

struct AdminRefusal {
  int status = 403;
  std::string_view title;
  std::string detail;
};

// Nothing if the call may be answered.
std::optional<AdminRefusal> refuse_admin(const AdminAccess& access, const HttpCall& call);

bool is_known_host(const AdminAccess& access, std::string_view host);

// The value of the only field of that name; of several, an empty one.
std::optional<std::string_view> only_field(const HttpCall& call, std::string_view name);

// Whether a page of this origin came from where the call went to.
bool is_our_origin(std::string_view origin, std::string_view host);

}  // namespace weir
