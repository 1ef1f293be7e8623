// One part of a rule's key, taken off its front again: bytes behind their length, or the hash of bytes that were too
// many.
//
// KeyArena writes them. Pure; any thread. Tested through key_name_test.cc and subject_test.cc.
#pragma once

#include <optional>
#include <string_view>

#include "policy/key_arena.h"

namespace weir {

struct KeyPart {
  std::string_view bytes;
  bool is_hash = false;
};

// Nothing if the key ends before the part does.
inline std::optional<KeyPart> take_key_part(std::string_view& rest) {
  if (rest.empty()) return {};
  const bool is_hash = rest.front() == KeyArena::kHashed;
  const std::size_t size = is_hash ? 32 : static_cast<unsigned char>(rest.front());
  if (rest.size() < size + 1) return {};
  const KeyPart part{rest.substr(1, size), is_hash};
  rest.remove_prefix(size + 1);
  return part;
}

}  // namespace weir
