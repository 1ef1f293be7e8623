// Parses one part off the front of a rule's key: a length byte and the bytes, or the hash of bytes that were too
// many.
//
// KeyArena writes these parts. A rule's key is a byte that marks it (key_space.h), the parts of its name and its
// `per`, then the values. A value for `identity` has a byte in front that says which kind it was. Pure; any thread.
// Tested through key_name_test.cc, subject_test.cc and redis_key_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace weir::base {

inline constexpr char kHashedPart = '\x7f';  // in place of the length byte: a hash follows
// From this kind of `identity` on, the part of a name precedes the value.
inline constexpr unsigned char kFirstNamedKind = 9;

struct KeyPart {
  std::string_view bytes;
  bool is_hash = false;
};

// Returns nothing if the key ends before the part does.
inline std::optional<KeyPart> take_key_part(std::string_view& rest) {
  if (rest.empty()) return {};
  const bool is_hash = rest.front() == kHashedPart;
  const std::size_t size = is_hash ? 32 : static_cast<unsigned char>(rest.front());
  if (rest.size() < size + 1) return {};
  const KeyPart part{rest.substr(1, size), is_hash};
  rest.remove_prefix(size + 1);
  return part;
}

}  // namespace weir::base
