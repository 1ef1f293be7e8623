// Evaluates the header fields by which browsers mark a page's requests. See site_access.h.
#include "server/http/site_access.h"

#include <algorithm>

#include "base/nearest.h"
#include "server/admin/admin_access.h"

namespace weir {
namespace {

bool is_own_page(std::string_view origin, std::string_view host) {
  return is_our_origin(origin, host) && is_known_host({}, host);
}

}  // namespace

std::optional<std::string> refuse_site(std::span<const std::string> allowed, const HttpCall& call) {
  const auto origin = only_field(call, "origin"), site = only_field(call, "sec-fetch-site");
  if (!origin && !site) return {};  // not a browser
  const auto is_it = [&](const std::string& one) { return lower(one) == lower(*origin); };
  if (origin && std::ranges::any_of(allowed, is_it)) return {};
  const bool is_near = !site || *site == "same-origin" || *site == "none";
  if (is_near && (!origin || is_own_page(*origin, only_field(call, "host").value_or("")))) return {};
  const std::string page = origin ? "Origin is " + in_quotes(*origin, 80) : "Sec-Fetch-Site is " + in_quotes(*site, 80);
  return "web pages may not call this listener (" + page + "); --allow-origin ORIGIN allows one origin";
}

std::optional<Error> refuse_origin(std::string_view origin) {
  const std::size_t scheme = origin.find("://");
  const std::string_view host = scheme == origin.npos ? std::string_view() : origin.substr(scheme + 3);
  const bool is_plain = std::ranges::all_of(origin, [](char c) { return c > ' ' && c <= '~'; });
  if (scheme != 0 && !host.empty() && is_plain && host.find_first_of("/?#@*") == host.npos) return {};
  return Error{ErrorCode::invalid_argument,
               in_quotes(origin) +
                   " is not an origin; write scheme, host and, if it is not the default, port, such as "
                   "https://app.example.com or http://localhost:3000"};
}

}  // namespace weir
