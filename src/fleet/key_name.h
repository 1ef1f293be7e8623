// The name under which a node stores what it knows of a key: the letter of the algorithm, then the key.
//
//   memory.denial(KeyName(charge), ...);            // a view into it, which needs no memory unless the key is long
//
// Nodes use these names in messages to each other. The key in Redis has a longer prefix (redis_key.h). Pure; any
// thread. Tested through fallback_store_test.cc and tests/fleet_nodes_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "fleet/redis_key.h"
#include "weir/verdict.h"

namespace weir::fleet {

// A hash that replaces a key's name (key_memory.h). Never 0.
enum class KeyMark : std::uint64_t {};

struct KnownKey {
  std::string_view name;
  KeyMark mark;
};

class KeyName {
 public:
  KeyName(Algorithm algorithm, std::string_view key) {
    const char mark = redis_mark(algorithm);
    if (key.size() >= room_.size()) {
      text_ = long_.assign(1, mark).append(key);
      return;
    }
    room_[0] = mark;
    std::memcpy(room_.data() + 1, key.data(), key.size());
    text_ = {room_.data(), 1 + key.size()};
  }
  explicit KeyName(const Charge& charge) : KeyName(charge.limit->algorithm, charge.key) {}
  KeyName(const KeyName&) = delete;
  KeyName& operator=(const KeyName&) = delete;

  operator std::string_view() const { return text_; }  // NOLINT(google-explicit-constructor): it is one

 private:
  std::array<char, 120> room_;
  std::string long_;
  std::string_view text_;
};

}  // namespace weir::fleet
