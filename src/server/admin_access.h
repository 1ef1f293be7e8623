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

// In a time that tells nothing about where they differ, or how long the right one is.
bool is_same_secret(std::string_view given, std::string_view right);

bool is_known_host(const AdminAccess& access, std::string_view host);

}  // namespace weir
