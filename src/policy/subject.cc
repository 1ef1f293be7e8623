// Converts between ids of subjects and their texts. See subject.h.
//
// An id begins with the number of the kind. The prefix bits of an address or the name of a named kind follow, the name
// encoded as a key part. The last part is the value as in the key.
#include "policy/subject.h"

#include <algorithm>
#include <optional>

#include "base/ip_address.h"
#include "base/key_part.h"
#include "base/nearest.h"
#include "base/sha256.h"
#include "base/text.h"
#include "policy/dimension.h"
#include "policy/key_name.h"

namespace weir::policy {
namespace {

constexpr std::string_view kHash = "sha256:";
constexpr std::uint8_t kHashedAddress = 0xff;  // in place of the prefix bits

bool identifies_client(weir::AttributeKind kind) {
  switch (kind) {
    case weir::AttributeKind::user:
    case weir::AttributeKind::api_key:
    case weir::AttributeKind::ip:
    case weir::AttributeKind::tenant:
    case weir::AttributeKind::identity:
      return true;
    default:
      return false;
  }
}

static_assert(base::kFirstNamedKind == static_cast<unsigned char>(weir::AttributeKind::header));

bool is_named(weir::AttributeKind kind) { return kind >= weir::AttributeKind::header; }
bool may_identify_client(weir::AttributeKind kind) { return is_named(kind) && kind != weir::AttributeKind::capture; }

// The index in `per` of the attribute that identifies the subject; per.size() if none does.
std::size_t subject_index(const std::vector<Dimension>& per) {
  std::size_t may = per.size();
  for (std::size_t i = 0; i < per.size(); ++i) {
    if (identifies_client(per[i].kind)) return i;
    if (may == per.size() && may_identify_client(per[i].kind)) may = i;
  }
  return may;
}

// Removes the bytes of one attribute from a key.
bool skip(const Dimension& dimension, std::string_view& rest) {
  if (dimension.kind == weir::AttributeKind::identity) {
    if (rest.empty()) return false;
    const auto kind = static_cast<weir::AttributeKind>(rest.front());
    rest.remove_prefix(1);
    if (is_named(kind) && !base::take_key_part(rest)) return false;
  }
  return base::take_key_part(rest).has_value();
}

// The number of prefix bits that the address in a key part has.
std::uint8_t bits_of(const base::KeyPart& part, const Dimension& dimension) {
  return part.bytes.size() == 4 ? dimension.v4_bits : dimension.v6_bits;
}

class Id {
 public:
  explicit Id(SubjectBuffer& buffer) : begin_(buffer.data()), at_(buffer.data()) {}
  void raw(std::string_view bytes) { at_ = std::copy(bytes.begin(), bytes.end(), at_); }
  void byte(std::uint8_t value) { *at_++ = static_cast<char>(value); }
  void part(std::string_view bytes) {
    if (bytes.size() > kPartBytesMax) return raw(KeyArena::part_of(bytes));
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
  return base::hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::string hash_part(std::string_view bytes) {
  const auto hash = base::sha256(bytes);
  return base::kHashedPart + std::string(hash.begin(), hash.end());
}

std::optional<std::string> from_hex(std::string_view text) {
  std::string out;
  if (text.size() != 64) return {};
  for (; !text.empty(); text.remove_prefix(2)) {
    const auto byte = base::hex_byte(text);
    if (!byte) return {};
    out += *byte;
  }
  return out;
}

// The inverse of escaped(). A backslash that begins no escape stands for itself.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = text.substr(i).starts_with("\\x") ? base::hex_byte(text.substr(i + 2)) : std::nullopt;
    out += byte.value_or(text[i]);
    if (byte) i += 3;
  }
  return out;
}

tl::unexpected<Error> wrong_subject(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid_argument, base::in_quotes(text) + " is not a subject: " + std::string(why));
}

Result<std::string> address_id(std::string_view text, std::string_view value) {
  const std::size_t slash = value.find('/');
  const auto address = base::parse_ip(value.substr(0, slash));
  if (!address) return wrong_subject(text, "write an address such as ip:192.0.2.1 or ip:2001:db8::/64");
  unsigned bits = address->is_v4() ? 32 : 64;
  const unsigned most = address->is_v4() ? 32 : 128;
  if (slash != value.npos) {
    const auto given = base::to_number<unsigned>(value.substr(slash + 1));
    if (!given || *given > most) return wrong_subject(text, "a prefix has 0 to " + std::to_string(most) + " bits");
    bits = *given;
  }
  const base::IpAddress network = base::truncated(*address, std::min(bits, 32U), bits);
  const auto* bytes = reinterpret_cast<const char*>(network.bytes.data());
  std::string id(1, static_cast<char>(weir::AttributeKind::ip));
  id += static_cast<char>(bits);
  return id + KeyArena::part_of(address->is_v4() ? std::string_view(bytes + 12, 4) : std::string_view(bytes, 16));
}

std::string network_text(std::uint8_t bits, std::string_view bytes) {
  base::IpAddress address{};
  if (bytes.size() == 4) address.bytes[10] = address.bytes[11] = 0xff;
  std::ranges::copy(bytes, address.bytes.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(bytes.size(), 16)));
  const bool is_plain = bytes.size() == 4 && bits == 32;
  return base::to_string(address) + (is_plain ? "" : '/' + std::to_string(bits));
}

}  // namespace

std::string_view subject_of(std::string_view body, const std::vector<Dimension>& per,
                            const std::vector<Dimension>& identity, SubjectBuffer& buffer) {
  const std::size_t subject = subject_index(per);
  if (subject == per.size() || !base::take_key_part(body)) return {};
  for (std::size_t i = 0; i < subject; ++i) {
    if (!skip(per[i], body)) return {};
  }
  Id id(buffer);
  const Dimension* found = &per[subject];
  if (found->kind == weir::AttributeKind::identity) {
    const std::string_view from = body;
    if (body.empty()) return {};
    const auto kind = static_cast<weir::AttributeKind>(body.front());
    body.remove_prefix(1);
    if (is_named(kind) && !base::take_key_part(body)) return {};
    id.raw(whole(from, body));
    if (kind == weir::AttributeKind::ip) {
      const auto same = std::ranges::find(identity, kind, &Dimension::kind);
      if (same != identity.end()) found = &*same;
    }
    const std::string_view value = body;
    const auto part = base::take_key_part(body);
    if (!part) return {};
    if (kind == weir::AttributeKind::ip) id.byte(bits_of(*part, *found));
    id.raw(whole(value, body));
    return id.end();
  }
  const std::string_view value = body;
  const auto part = base::take_key_part(body);
  if (!part) return {};
  id.byte(static_cast<std::uint8_t>(found->kind));
  if (found->kind == weir::AttributeKind::ip) id.byte(bits_of(*part, *found));
  if (is_named(found->kind)) id.part(found->name);
  id.raw(whole(value, body));
  return id.end();
}

std::string hashed_subject(std::string_view id) {
  if (id.empty()) return {};
  const auto kind = static_cast<weir::AttributeKind>(id.front());
  if (kind == weir::AttributeKind::api_key) return std::string(id);  // it is a hash already
  std::string_view rest = id.substr(1);
  if (kind == weir::AttributeKind::ip) {
    if (rest.empty() || static_cast<std::uint8_t>(rest.front()) == kHashedAddress) return std::string(id);
    return std::string(1, id.front()) + static_cast<char>(kHashedAddress) + hash_part(rest);
  }
  if (is_named(kind)) static_cast<void>(base::take_key_part(rest));
  const std::string before(whole(id, rest));
  const auto part = base::take_key_part(rest);
  return !part || part->is_hash ? std::string(id) : before + hash_part(part->bytes);
}

std::string subject_text(std::string_view id) {
  if (id.empty()) return "*";
  const auto kind = static_cast<weir::AttributeKind>(id.front());
  std::string out = std::string(to_string(kind)) + ':';
  id.remove_prefix(1);
  std::uint8_t bits = 0;
  if (kind == weir::AttributeKind::ip && !id.empty()) {
    bits = static_cast<std::uint8_t>(id.front());
    id.remove_prefix(1);
  }
  if (is_named(kind)) {
    const auto name = base::take_key_part(id);
    if (name) out += (name->is_hash ? std::string(kHash) + hex_of(name->bytes) : std::string(name->bytes)) + '=';
  }
  const auto value = base::take_key_part(id);
  if (!value) return out;
  if (value->is_hash || kind == weir::AttributeKind::api_key) return out.append(kHash) + hex_of(value->bytes);
  return out + (kind == weir::AttributeKind::ip ? network_text(bits, value->bytes) : escaped(value->bytes));
}

Result<std::string> parse_subject(std::string_view text) {
  if (text == "*") return std::string();
  const std::size_t colon = text.find(':');
  constexpr std::string_view kForms =
      "write it like user:42, tenant:acme, api_key:KEY, ip:192.0.2.1 or header:x-org=acme";
  if (colon == text.npos || colon + 1 == text.size()) return wrong_subject(text, kForms);
  std::string_view value = text.substr(colon + 1);
  weir::AttributeKind kind = weir::AttributeKind::user;
  while (to_string(kind) != text.substr(0, colon)) {
    if (kind == weir::AttributeKind::capture) return wrong_subject(text, kForms);
    kind = static_cast<weir::AttributeKind>(static_cast<std::uint8_t>(kind) + 1);
  }
  if ((!identifies_client(kind) && !may_identify_client(kind)) || kind == weir::AttributeKind::identity)
    return wrong_subject(text, kForms);
  std::string id(1, static_cast<char>(kind));
  if (is_named(kind)) {
    const std::size_t equals = value.find('=');
    if (equals == value.npos || equals == 0) return wrong_subject(text, "write it like header:x-org=acme");
    const std::string_view name = value.substr(0, equals);
    const auto name_hash = name.starts_with(kHash) ? from_hex(name.substr(kHash.size())) : std::nullopt;
    id += name_hash ? base::kHashedPart + *name_hash : KeyArena::part_of(name);
    value.remove_prefix(equals + 1);
  }
  const auto hash = value.starts_with(kHash) ? from_hex(value.substr(kHash.size())) : std::nullopt;
  if (hash) {  // no value that is stored unhashed is this long
    if (kind == weir::AttributeKind::api_key) return id + KeyArena::part_of(*hash);
    if (kind == weir::AttributeKind::ip) id += static_cast<char>(kHashedAddress);
    return id + base::kHashedPart + *hash;
  }
  if (kind == weir::AttributeKind::ip) return address_id(text, value);
  if (kind == weir::AttributeKind::api_key) {
    if (value.starts_with(kHash)) return wrong_subject(text, "a hash has 64 digits of 0-9 and a-f");
    const auto known_by = base::sha256(value);
    return id + KeyArena::part_of({reinterpret_cast<const char*>(known_by.data()), known_by.size()});
  }
  return id + KeyArena::part_of(unescaped(value));
}

}  // namespace weir::policy
