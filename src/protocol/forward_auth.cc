// Finds the original request. See forward_auth.h.
#include "protocol/forward_auth.h"

#include <string>

#include "base/nearest.h"
#include "protocol/http1.h"
#include "protocol/query.h"

namespace weir::protocol {
namespace {

// Each of the first three may come in several fields, and must be the same in all of them.
struct Original {
  Attribute uri{}, method{}, forwarded_host{};
  std::string_view host{}, api_key{};
};

Result<void> note(Attribute& noted, const Attribute& field) {
  if (!noted.name.empty() && noted.value != field.value) {
    return fail(ErrorCode::invalid_argument,
                std::string(noted.name) + " is " + base::in_quotes(noted.value) + ", but " + std::string(field.name) +
                    " is " + base::in_quotes(field.value) +
                    "; let the proxy set one of them and remove the other from client requests");
  }
  noted = field;
  return {};
}

// Compares the length of the name first, since most fields are none of these.
Result<void> note(Original& original, const Attribute& field) {
  const auto is = [&](std::string_view name) { return equals_ignoring_case(field.name, name); };
  switch (field.name.size()) {
    case 4:
      if (is("host")) original.host = field.value;
      break;
    case 9:
      if (is("x-api-key")) original.api_key = field.value;
      break;
    case 14:
      if (is("x-original-uri") || is("x-original-url")) return note(original.uri, field);
      break;
    case 15:
      if (is("x-forwarded-uri")) return note(original.uri, field);
      break;
    case 16:
      if (is("x-forwarded-host")) return note(original.forwarded_host, field);
      break;
    case 17:
      if (is("x-original-method")) return note(original.method, field);
      break;
    case 18:
      if (is("x-forwarded-method")) return note(original.method, field);
      break;
    default:
      break;
  }
  return {};
}

// Returns the target of the call without /auth. For /auth alone the query is ignored: Caddy adds it, not the client.
std::string_view path_below(std::string_view target) {
  const Target parts = split_target(target);
  const std::string_view below = parts.path.substr(kForwardAuthPath.size());
  if (below.empty()) return "/";
  return {below.data(), static_cast<std::size_t>(target.data() + target.size() - below.data())};
}

}  // namespace

bool is_forward_auth(std::string_view path) {
  return path.starts_with(kForwardAuthPath) &&
         (path.size() == kForwardAuthPath.size() || path[kForwardAuthPath.size()] == '/');
}

Result<Request> original_request(std::string_view method, std::string_view target, std::span<const Attribute> fields,
                                 std::string_view peer) {
  Original original;
  for (const Attribute& field : fields) {
    if (auto noted = note(original, field); !noted) return fail(std::move(noted.error()));
  }
  Request request;
  request.ip = peer;
  request.api_key = original.api_key;
  request.headers = fields;
  request.path = original.uri.value.empty() ? path_below(target) : original.uri.value;
  request.method = original.method.value.empty() ? method : original.method.value;
  request.host = original.forwarded_host.value.empty() ? original.host : original.forwarded_host.value;
  return request;
}

}  // namespace weir::protocol
