// What a proxy asks forward-auth about: the request that it received, found in what nginx, Caddy, Traefik and Envoy
// send.
//
//   X-Forwarded-Uri, -Method, -Host     Caddy, Traefik, and nginx if it is told to
//   X-Original-URI, -URL, -Method       nginx, as many configs have it
//   none of them                        Envoy's ext_authz: the call itself, below /auth
//
// A field that says two things at once was partly written by the client, so it is refused rather than believed. Pure;
// any thread. Tested by forward_auth_test.cc.
#pragma once

#include <span>
#include <string_view>

#include "weir/request.h"
#include "weir/result.h"

namespace weir {

inline constexpr std::string_view kForwardAuthPath = "/auth";

// Whether forward-auth is asked: /auth, or anything below it.
bool is_forward_auth(std::string_view path);

// original_request()
//
// Views of what is given. The address is that of the peer: who is behind it is for the rules to find in the headers.
Result<Request> original_request(std::string_view method, std::string_view target, std::span<const Attribute> fields,
                                 std::string_view peer);

}  // namespace weir
