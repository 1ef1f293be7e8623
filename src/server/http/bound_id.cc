// Builds ids that include what they are bound to. See bound_id.h.
#include "server/http/bound_id.h"

#include <cstddef>
#include <span>
#include <utility>

#include "base/sha256.h"
#include "base/sized.h"
#include "weir/limiter.h"

namespace weir {
namespace {

constexpr std::size_t kHashBytes = 31;  // bytes of the SHA-256 that fit in an id behind a letter

bool is_one(std::string_view id) { return !id.empty() && id.size() <= kRequestIdBytesMax; }

// A hash has a first letter of its own, so that it never equals another text.
std::string fitted(std::string text) {
  if (text.size() <= kRequestIdBytesMax) return text;
  const auto hash = sha256(text);
  return "h" + hex(std::span(hash).first(kHashBytes));
}

}  // namespace

std::string bound_id(std::string_view id, const Request& request) {
  if (!is_one(id)) return std::string(id);
  std::string text = "r";
  append_sized(text, id);
  for (const std::string_view part : {request.user, request.api_key, request.ip, request.tenant, request.plan,
                                      request.method, request.host, request.path}) {
    append_sized(text, part);
  }
  for (const Attribute& entry : request.entries) {
    append_sized(text, entry.name);
    append_sized(text, entry.value);
  }
  return fitted(std::move(text));
}

}  // namespace weir
