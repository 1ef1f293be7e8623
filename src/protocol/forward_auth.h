// Finds the original request in a forward-auth call from nginx, Caddy, Traefik or Envoy.
//
//   X-Forwarded-Uri, -Method, -Host     Caddy, Traefik, and nginx if configured so
//   X-Original-URI, -URL, -Method       nginx, in many existing configs
//   none of them                        Envoy's ext_authz: the call itself, below /auth
//
// If these fields contradict each other, the client wrote some of them, so the call is refused. Pure; any thread may
// call it. Tested by forward_auth_test.cc.
#pragma once

#include <span>
#include <string_view>

#include "weir/request.h"
#include "weir/result.h"

namespace weir::protocol {

inline constexpr std::string_view kForwardAuthPath = "/auth";

// Whether a path is a forward-auth call: /auth, or anything below it.
bool is_forward_auth(std::string_view path);

// original_request()
//
// Returns views of the arguments. The address is the peer's; the rules find the client's address in the headers.
Result<Request> original_request(std::string_view method, std::string_view target, std::span<const Attribute> fields,
                                 std::string_view peer);

}  // namespace weir::protocol
