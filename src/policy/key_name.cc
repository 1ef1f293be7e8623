// Decodes keys. See key_name.h; Rulebook::append() encodes them.
#include "policy/key_name.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/ip_address.h"
#include "base/key_part.h"
#include "base/sha256.h"
#include "base/text.h"
#include "policy/dimension.h"
#include "policy/fields.h"
#include "policy/key_arena.h"

namespace weir::policy {
namespace {

std::string hex_start(std::string_view bytes) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return base::hex(std::span(from, std::min<std::size_t>(bytes.size(), 8)));
}

std::string address_text(std::string_view bytes, const Dimension& dimension) {
  if (bytes.size() != 4 && bytes.size() != 16) return {};
  base::IpAddress address{};
  if (bytes.size() == 4) address.bytes[10] = address.bytes[11] = 0xff;
  std::ranges::copy(bytes, address.bytes.end() - static_cast<std::ptrdiff_t>(bytes.size()));
  const unsigned bits = bytes.size() == 4 ? dimension.v4_bits : dimension.v6_bits;
  return base::to_string(address) + (bits == bytes.size() * 8 ? "" : '/' + std::to_string(bits));
}

std::string value_text(const Dimension& dimension, const base::KeyPart& part, const ShowValue& show) {
  switch (dimension.kind) {
    case weir::AttributeKind::path:  // as the policy writes it
      if (part.bytes.empty()) return "*";
      return part.is_hash ? "sha256:" + hex_start(part.bytes) : escaped(part.bytes);
    case weir::AttributeKind::api_key:
      return show("sha256:" + hex_start(part.bytes));
    case weir::AttributeKind::ip:
      return show(address_text(part.bytes, dimension));
    default:
      return show(part.is_hash ? "sha256:" + hex_start(part.bytes) : std::string(part.bytes));
  }
}

// Returns the attribute that stood for the identity.
std::optional<Dimension> take_identity(std::string_view& rest, const std::vector<Dimension>& identity) {
  if (rest.empty()) return {};
  Dimension found{.kind = static_cast<weir::AttributeKind>(rest.front())};
  rest.remove_prefix(1);
  if (found.kind >= weir::AttributeKind::header) {
    const auto name = base::take_key_part(rest);
    if (!name) return {};
    found.name = name->bytes;
  }
  const auto same = std::ranges::find_if(
      identity, [&](const Dimension& one) { return one.kind == found.kind && one.name == found.name; });
  return same == identity.end() ? found : *same;
}

}  // namespace

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '\\' || c == ',') {
      base::append_hex(out.append("\\x"), c);
    } else {
      out += c;
    }
  }
  return out;
}

std::string attribute_text(const Dimension& dimension, std::string_view value) {
  const bool is_plain = dimension.kind == weir::AttributeKind::ip || dimension.name.empty();
  std::string text = is_plain ? std::string(to_string(dimension.kind)) + ':' : weir::to_string(dimension) + '=';
  return text.append(value);
}

std::string_view key_body(std::string_view key, std::string_view suffix) {
  key.remove_suffix(std::min(suffix.size(), key.size()));
  key.remove_prefix(std::min<std::size_t>(key.size(), 1));  // kRuleKeys
  static_cast<void>(base::take_key_part(key));
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
    const bool is_identity = wanted.kind == weir::AttributeKind::identity;
    const auto dimension = is_identity ? take_identity(body, identity) : wanted;
    const auto part = dimension ? base::take_key_part(body) : std::nullopt;
    if (!part) return out + "...";
    out += attribute_text(*dimension, value_text(*dimension, *part, show));
  }
  return out;
}

}  // namespace weir::policy
