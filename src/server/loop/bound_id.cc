// Builds ids that include what they are bound to. See bound_id.h.
#include "server/loop/bound_id.h"

#include <cstddef>
#include <span>
#include <utility>

#include "base/sha256.h"
#include "base/text.h"
#include "weir/limiter.h"

namespace weir::server::loop {
namespace {

constexpr std::size_t kHashBytes = 31;  // bytes of the SHA-256 that fit in an id behind a letter

bool is_one(std::string_view id) { return !id.empty() && id.size() <= kRequestIdBytesMax; }

// A hash has a first letter of its own, so that it never equals another text.
std::string fitted(std::string text) {
  if (text.size() <= kRequestIdBytesMax) return text;
  const auto hash = base::sha256(text);
  return "h" + base::hex(std::span(hash).first(kHashBytes));
}

}  // namespace

std::string bound_id(std::string_view id, const Request& request) {
  if (!is_one(id)) return std::string(id);
  std::string text = "r";
  base::append_sized(text, id);
  for (const std::string_view part : {request.user, request.api_key, request.ip, request.tenant, request.plan,
                                      request.method, request.host, request.path}) {
    base::append_sized(text, part);
  }
  for (const Attribute& entry : request.entries) {
    base::append_sized(text, entry.name);
    base::append_sized(text, entry.value);
  }
  return fitted(std::move(text));
}

}  // namespace weir::server::loop
