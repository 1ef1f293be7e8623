// Evaluates the header fields by which browsers mark a page's requests. See site_access.h.
#include "server/http/site_access.h"

#include <algorithm>

#include "base/ip_address.h"
#include "base/nearest.h"
#include "protocol/http1.h"

namespace weir::server::http {
namespace {

// Whether the text is an IP address of this notation.
bool is_address(std::string_view text, bool is_v6) {
  return (text.find(':') != text.npos) == is_v6 && base::parse_ip(text);
}

}  // namespace

std::optional<std::string_view> only_field(const HttpCall& call, std::string_view name) {
  std::optional<std::string_view> found;
  for (const Attribute& one : call.fields) {
    if (!protocol::equals_ignoring_case(one.name, name)) continue;
    if (found) return std::string_view();
    found = one.value;
  }
  return found;
}

bool is_our_origin(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme) && protocol::equals_ignoring_case(origin.substr(scheme.size()), host)) return true;
  }
  return false;
}

bool is_known_host(std::span<const std::string> names, std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end != host.npos && is_address(host.substr(1, end - 1), true);
  }
  std::string name = base::lower(host.substr(0, std::min(host.rfind(':'), host.size())));
  if (name.ends_with('.')) name.pop_back();
  if (name == "localhost" || is_address(name, false)) return true;
  return std::ranges::any_of(names, [&](const std::string& one) { return base::lower(one) == name; });
}

std::optional<std::string> refuse_site(std::span<const std::string> allowed, const HttpCall& call) {
  const auto origin = only_field(call, "origin"), site = only_field(call, "sec-fetch-site");
  if (!origin && !site) return {};  // not a browser
  const auto is_it = [&](const std::string& one) { return base::lower(one) == base::lower(*origin); };
  if (origin && std::ranges::any_of(allowed, is_it)) return {};
  const bool is_near = !site || *site == "same-origin" || *site == "none";
  const std::string_view host = only_field(call, "host").value_or("");
  if (is_near && (!origin || (is_our_origin(*origin, host) && is_known_host({}, host)))) return {};
  const std::string page =
      origin ? "Origin is " + base::in_quotes(*origin, 80) : "Sec-Fetch-Site is " + base::in_quotes(*site, 80);
  return "web pages may not call this listener (" + page + "); --allow-origin ORIGIN allows one origin";
}

std::optional<Error> refuse_origin(std::string_view origin) {
  const std::size_t scheme = origin.find("://");
  const std::string_view host = scheme == origin.npos ? std::string_view() : origin.substr(scheme + 3);
  const bool is_plain = std::ranges::all_of(origin, [](char c) { return c > ' ' && c <= '~'; });
  if (scheme != 0 && !host.empty() && is_plain && host.find_first_of("/?#@*") == host.npos) return {};
  return Error{ErrorCode::invalid_argument,
               base::in_quotes(origin) +
                   " is not an origin; write scheme, host and, if it is not the default, port, such as "
                   "https://app.example.com or http://localhost:3000"};
}

}  // namespace weir::server::http
