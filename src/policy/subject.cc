// Converts between ids of subjects and their texts. See subject.h.
//
// An id begins with the number of the kind. The prefix bits of an address or the name of a named kind follow, the name
// encoded as a key part. The last part is the value as in the key.
#include "policy/subject.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include "base/ip_address.h"
#include "base/key_part.h"
#include "base/nearest.h"
#include "base/sha256.h"
#include "policy/dimension.h"
#include "policy/key_name.h"

namespace weir {
namespace {

constexpr std::string_view kHash = "sha256:";
constexpr std::uint8_t kHashedAddress = 0xff;  // in place of the prefix bits

bool says_who(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::user:
    case AttributeKind::api_key:
    case AttributeKind::ip:
    case AttributeKind::tenant:
    case AttributeKind::identity:
      return true;
    default:
      return false;
  }
}

static_assert(kFirstNamedKind == static_cast<unsigned char>(AttributeKind::header));

bool is_named(AttributeKind kind) { return kind >= AttributeKind::header; }
bool may_say_who(AttributeKind kind) { return is_named(kind) && kind != AttributeKind::capture; }

// The index in `per` of the attribute that identifies the subject; per.size() if none does.
std::size_t place_of_who(const std::vector<Dimension>& per) {
  std::size_t may = per.size();
  for (std::size_t i = 0; i < per.size(); ++i) {
    if (says_who(per[i].kind)) return i;
    if (may == per.size() && may_say_who(per[i].kind)) may = i;
  }
  return may;
}

// Removes the bytes of one attribute from a key.
bool skip(const Dimension& dimension, std::string_view& rest) {
  if (dimension.kind == AttributeKind::identity) {
    if (rest.empty()) return false;
    const auto kind = static_cast<AttributeKind>(rest.front());
    rest.remove_prefix(1);
    if (is_named(kind) && !take_key_part(rest)) return false;
  }
  return take_key_part(rest).has_value();
}

// The number of prefix bits that the address in a key part has.
std::uint8_t bits_of(const KeyPart& part, const Dimension& dimension) {
  return part.bytes.size() == 4 ? dimension.v4_bits : dimension.v6_bits;
}

std::string part_text(std::string_view bytes) {
  KeyArena arena;
  arena.begin({});
  arena.part(bytes);
  return std::string(arena.end());
}

class Id {
 public:
  explicit Id(SubjectRoom& room) : begin_(room.data()), at_(room.data()) {}
  void raw(std::string_view bytes) { at_ = std::copy(bytes.begin(), bytes.end(), at_); }
  void byte(std::uint8_t value) { *at_++ = static_cast<char>(value); }
  void part(std::string_view bytes) {
    if (bytes.size() > kPartBytesMax) return raw(part_text(bytes));
    byte(static_cast<std::uint8_t>(bytes.size()));
    raw(bytes);
  }
  std::string_view end() const { return {begin_, static_cast<std::size_t>(at_ - begin_)}; }

 private:
  char* begin_;
  char* at_;
};

std::string_view whole(std::string_view from, std::string_view rest) {
  return from.substr(0, from.size() - rest.size());
}

std::string hex_of(std::string_view bytes) {
  return hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::string hash_part(std::string_view bytes) {
  const auto hash = sha256(bytes);
  return kHashedPart + std::string(hash.begin(), hash.end());
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::optional<std::string> from_hex(std::string_view text) {
  std::string out;
  if (text.size() != 64) return {};
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit_of(text[i]), low = digit_of(text[i + 1]);
    if (high < 0 || low < 0) return {};
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

// The inverse of escaped(). A backslash that begins no escape stands for itself.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 3 < text.size() && text[i + 1] == 'x' && digit_of(text[i + 2]) >= 0 &&
                           digit_of(text[i + 3]) >= 0;
    out += is_escape ? static_cast<char>(digit_of(text[i + 2]) * 16 + digit_of(text[i + 3])) : text[i];
    if (is_escape) i += 3;
  }
  return out;
}

tl::unexpected<Error> wrong_subject(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid_argument, in_quotes(text) + " is not a subject: " + std::string(why));
}

Result<std::string> address_id(std::string_view text, std::string_view value) {
  const std::size_t slash = value.find('/');
  const auto address = parse_ip(value.substr(0, slash));
  if (!address) return wrong_subject(text, "write an address such as ip:192.0.2.1 or ip:2001:db8::/64");
  unsigned bits = address->is_v4() ? 32 : 64;
  const unsigned most = address->is_v4() ? 32 : 128;
  if (slash != value.npos) {
    const std::string_view digits = value.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc{} || end != digits.data() + digits.size() || bits > most) {
      return wrong_subject(text, "a prefix has 0 to " + std::to_string(most) + " bits");
    }
  }
  const IpAddress network = truncated(*address, std::min(bits, 32U), bits);
  const auto* bytes = reinterpret_cast<const char*>(network.bytes.data());
  std::string id(1, static_cast<char>(AttributeKind::ip));
  id += static_cast<char>(bits);
  return id + part_text(address->is_v4() ? std::string_view(bytes + 12, 4) : std::string_view(bytes, 16));
}

std::string network_text(std::uint8_t bits, std::string_view bytes) {
  IpAddress address{};
  if (bytes.size() == 4) address.bytes[10] = address.bytes[11] = 0xff;
  std::ranges::copy(bytes, address.bytes.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(bytes.size(), 16)));
  const bool is_plain = bytes.size() == 4 && bits == 32;
  return to_string(address) + (is_plain ? "" : '/' + std::to_string(bits));
}

}  // namespace

std::string_view subject_of(std::string_view body, const std::vector<Dimension>& per,
                            const std::vector<Dimension>& identity, SubjectRoom& room) {
  const std::size_t who = place_of_who(per);
  if (who == per.size() || !take_key_part(body)) return {};
  for (std::size_t i = 0; i < who; ++i) {
    if (!skip(per[i], body)) return {};
  }
  Id id(room);
  const Dimension* found = &per[who];
  if (found->kind == AttributeKind::identity) {
    const std::string_view from = body;
    if (body.empty()) return {};
    const auto kind = static_cast<AttributeKind>(body.front());
    body.remove_prefix(1);
    if (is_named(kind) && !take_key_part(body)) return {};
    id.raw(whole(from, body));
    if (kind == AttributeKind::ip) {
      const auto same = std::ranges::find(identity, kind, &Dimension::kind);
      if (same != identity.end()) found = &*same;
    }
    const std::string_view value = body;
    const auto part = take_key_part(body);
    if (!part) return {};
    if (kind == AttributeKind::ip) id.byte(bits_of(*part, *found));
    id.raw(whole(value, body));
    return id.end();
  }
  const std::string_view value = body;
  const auto part = take_key_part(body);
  if (!part) return {};
  id.byte(static_cast<std::uint8_t>(found->kind));
  if (found->kind == AttributeKind::ip) id.byte(bits_of(*part, *found));
  if (is_named(found->kind)) id.part(found->name);
  id.raw(whole(value, body));
  return id.end();
}

std::string hashed_subject(std::string_view id) {
  if (id.empty()) return {};
  const auto kind = static_cast<AttributeKind>(id.front());
  if (kind == AttributeKind::api_key) return std::string(id);  // it is a hash already
  std::string_view rest = id.substr(1);
  if (kind == AttributeKind::ip) {
    if (rest.empty() || static_cast<std::uint8_t>(rest.front()) == kHashedAddress) return std::string(id);
    return std::string(1, id.front()) + static_cast<char>(kHashedAddress) + hash_part(rest);
  }
  if (is_named(kind)) static_cast<void>(take_key_part(rest));
  const std::string before(whole(id, rest));
  const auto part = take_key_part(rest);
  return !part || part->is_hash ? std::string(id) : before + hash_part(part->bytes);
}

std::string subject_text(std::string_view id) {
  if (id.empty()) return "*";
  const auto kind = static_cast<AttributeKind>(id.front());
  std::string out = std::string(to_string(kind)) + ':';
  id.remove_prefix(1);
  std::uint8_t bits = 0;
  if (kind == AttributeKind::ip && !id.empty()) {
    bits = static_cast<std::uint8_t>(id.front());
    id.remove_prefix(1);
  }
  if (is_named(kind)) {
    const auto name = take_key_part(id);
    if (name) out += (name->is_hash ? std::string(kHash) + hex_of(name->bytes) : std::string(name->bytes)) + '=';
  }
  const auto value = take_key_part(id);
  if (!value) return out;
  if (value->is_hash || kind == AttributeKind::api_key) return out.append(kHash) + hex_of(value->bytes);
  return out + (kind == AttributeKind::ip ? network_text(bits, value->bytes) : escaped(value->bytes));
}

Result<std::string> parse_subject(std::string_view text) {
  if (text == "*") return std::string();
  const std::size_t colon = text.find(':');
  constexpr std::string_view kForms =
      "write it like user:42, tenant:acme, api_key:KEY, ip:192.0.2.1 or header:x-org=acme";
  if (colon == text.npos || colon + 1 == text.size()) return wrong_subject(text, kForms);
  std::string_view value = text.substr(colon + 1);
  AttributeKind kind = AttributeKind::user;
  while (to_string(kind) != text.substr(0, colon)) {
    if (kind == AttributeKind::capture) return wrong_subject(text, kForms);
    kind = static_cast<AttributeKind>(static_cast<std::uint8_t>(kind) + 1);
  }
  if ((!says_who(kind) && !may_say_who(kind)) || kind == AttributeKind::identity) return wrong_subject(text, kForms);
  std::string id(1, static_cast<char>(kind));
  if (is_named(kind)) {
    const std::size_t equals = value.find('=');
    if (equals == value.npos || equals == 0) return wrong_subject(text, "write it like header:x-org=acme");
    const std::string_view name = value.substr(0, equals);
    const auto name_hash = name.starts_with(kHash) ? from_hex(name.substr(kHash.size())) : std::nullopt;
    id += name_hash ? kHashedPart + *name_hash : part_text(name);
    value.remove_prefix(equals + 1);
  }
  const auto hash = value.starts_with(kHash) ? from_hex(value.substr(kHash.size())) : std::nullopt;
  if (hash) {  // no value that is stored unhashed is this long
    if (kind == AttributeKind::api_key) return id + part_text(*hash);
    if (kind == AttributeKind::ip) id += static_cast<char>(kHashedAddress);
    return id + kHashedPart + *hash;
  }
  if (kind == AttributeKind::ip) return address_id(text, value);
  if (kind == AttributeKind::api_key) {
    if (value.starts_with(kHash)) return wrong_subject(text, "a hash has 64 digits of 0-9 and a-f");
    const auto known_by = sha256(value);
    return id + part_text({reinterpret_cast<const char*>(known_by.data()), known_by.size()});
  }
  return id + part_text(unescaped(value));
}

}  // namespace weir
