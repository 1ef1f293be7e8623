// Ids with what they are bound to. See bound_id.h.
#include "server/bound_id.h"

#include <cstddef>
#include <span>
#include <utility>

#include "sha256.h"
#include "weir/limiter.h"

namespace weir {
namespace {

constexpr std::size_t kHashBytes = 31;  // of a SHA-256: as many as an id has room for behind a letter

bool is_one(std::string_view id) { return !id.empty() && id.size() <= kRequestIdBytesMax; }

void append_part(std::string& out, std::string_view part) {
  out.append(std::to_string(part.size())).push_back(':');
  out.append(part);
}

// An own first letter, so that no hash is the text of something else.
std::string fitted(std::string text) {
  if (text.size() <= kRequestIdBytesMax) return text;
  const auto hash = sha256(text);
  return "h" + hex(std::span(hash).first(kHashBytes));
}

}  // namespace

std::string bound_id(std::string_view id, std::string_view key, Algorithm algorithm) {
  if (!is_one(id)) return std::string(id);
  std::string text = "k";
  append_part(text, id);
  append_part(text, std::to_string(static_cast<int>(algorithm)));
  append_part(text, key);
  return fitted(std::move(text));
}

std::string bound_id(std::string_view id, const Request& request) {
  if (!is_one(id)) return std::string(id);
  std::string text = "r";
  append_part(text, id);
  for (const std::string_view part : {request.user, request.api_key, request.ip, request.tenant, request.plan,
                                      request.method, request.host, request.path}) {
    append_part(text, part);
  }
  for (const Attribute& entry : request.entries) {
    append_part(text, entry.name);
    append_part(text, entry.value);
  }
  return fitted(std::move(text));
}

}  // namespace weir
