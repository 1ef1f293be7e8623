// Which web pages may call the HTTP port: none, unless their origin is allowed.
//
// A browser next to the server reaches its port, and a page of any site can make that browser post a refund. Browsers
// mark such requests: `Sec-Fetch-Site` says how page and port are related, `Origin` says where the page is from.
// Other clients send neither field. An origin counts as the server's own only if the port was called by an address or
// as localhost. A DNS name can be rebound to this server, and then page and port have the same name. Forward-auth is
// exempt: there these fields come from the gateway's client. Pure; any thread. Tested by site_access_test.cc and
// tests/server/other_sites.sh.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/http/http_service.h"
#include "weir/result.h"

namespace weir::server::http {

// The value of the field with this name; empty if the name occurs several times, nothing if it does not occur.
std::optional<std::string_view> only_field(const HttpCall& call, std::string_view name);

// Whether the page's origin is the address that the call was sent to.
bool is_our_origin(std::string_view origin, std::string_view host);

// Whether the Host of a call is an address, localhost or one of these names, and so not rebound to this server.
bool is_known_host(std::span<const std::string> names, std::string_view host);

// Why a call is refused; nothing if it is permitted.
std::optional<std::string> refuse_site(std::span<const std::string> allowed, const HttpCall& call);

// Why a browser can never send this as an origin; nothing if it can.
std::optional<Error> refuse_origin(std::string_view origin);

}  // namespace weir::server::http
