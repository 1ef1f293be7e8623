// Decodes keys. See key_name.h; Rulebook::append() encodes them.
#include "policy/key_name.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "base/ip_address.h"
#include "base/key_part.h"
#include "base/sha256.h"
#include "policy/dimension.h"
#include "policy/fields.h"
#include "policy/key_arena.h"

namespace weir {
namespace {

std::string hex_start(std::string_view bytes) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return hex(std::span(from, std::min<std::size_t>(bytes.size(), 8)));
}

std::string address_text(std::string_view bytes, const Dimension& dimension) {
  if (bytes.size() != 4 && bytes.size() != 16) return {};
  IpAddress address{};
  if (bytes.size() == 4) address.bytes[10] = address.bytes[11] = 0xff;
  std::ranges::copy(bytes, address.bytes.end() - static_cast<std::ptrdiff_t>(bytes.size()));
  const unsigned bits = bytes.size() == 4 ? dimension.v4_bits : dimension.v6_bits;
  return to_string(address) + (bits == bytes.size() * 8 ? "" : '/' + std::to_string(bits));
}

std::string value_text(const Dimension& dimension, const KeyPart& part, const ShowValue& show) {
  switch (dimension.kind) {
    case AttributeKind::path:  // as the policy writes it
      if (part.bytes.empty()) return "*";
      return part.is_hash ? "sha256:" + hex_start(part.bytes) : escaped(part.bytes);
    case AttributeKind::api_key:
      return show("sha256:" + hex_start(part.bytes));
    case AttributeKind::ip:
      return show(address_text(part.bytes, dimension));
    default:
      return show(part.is_hash ? "sha256:" + hex_start(part.bytes) : std::string(part.bytes));
  }
}

// As commands take subjects: user:42, and header:x-org=acme.
std::string named(const Dimension& dimension, const std::string& value) {
  const bool is_plain = dimension.kind == AttributeKind::ip || dimension.name.empty();
  return is_plain ? std::string(to_string(dimension.kind)) + ':' + value : to_string(dimension) + '=' + value;
}

// Returns the attribute that stood for the identity.
std::optional<Dimension> take_identity(std::string_view& rest, const std::vector<Dimension>& identity) {
  if (rest.empty()) return {};
  Dimension found{.kind = static_cast<AttributeKind>(rest.front())};
  rest.remove_prefix(1);
  if (found.kind >= AttributeKind::header) {
    const auto name = take_key_part(rest);
    if (!name) return {};
    found.name = name->bytes;
  }
  const auto same = std::ranges::find_if(
      identity, [&](const Dimension& one) { return one.kind == found.kind && one.name == found.name; });
  return same == identity.end() ? found : *same;
}

}  // namespace

std::string escaped(std::string_view value) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '\\' || c == ',') {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

std::string_view key_body(std::string_view key, std::string_view suffix) {
  key.remove_suffix(std::min(suffix.size(), key.size()));
  key.remove_prefix(std::min<std::size_t>(key.size(), 1));  // kRuleKeys
  static_cast<void>(take_key_part(key));
  return key;
}

std::string key_name(std::string_view body, const std::vector<Dimension>& per, const std::vector<Dimension>& identity,
                     const ShowValue& show) {
  KeyArena arena;
  arena.begin({});
  arena.part(print_dimensions(per));
  if (!body.starts_with(arena.end())) return {};
  body.remove_prefix(arena.end().size());
  if (per.empty()) return "all";
  std::string out;
  for (const Dimension& wanted : per) {
    out += out.empty() ? "" : ",";
    const bool is_identity = wanted.kind == AttributeKind::identity;
    const auto dimension = is_identity ? take_identity(body, identity) : wanted;
    const auto part = dimension ? take_key_part(body) : std::nullopt;
    if (!part) return out + "...";
    out += named(*dimension, value_text(*dimension, *part, show));
  }
  return out;
}

}  // namespace weir
