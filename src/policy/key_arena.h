// Memory for the keys of one request: an inline buffer, and heap memory only if a request needs more.
//
// A key is always written at the end, and stays at its address while the arena lives. One thread may use it. Tested
// through rulebook_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/key_part.h"
#include "base/sha256.h"
#include "weir/result.h"

namespace weir::policy {

inline constexpr std::size_t kPartBytesMax = 64;  // longer key parts are replaced by their hash
inline constexpr std::size_t kRuleKeyBytesMax = 2'048;

class KeyArena {
 public:
  // Begins a new key with `prefix`.
  void begin(std::string_view prefix) {
    if (end_ - at_ < static_cast<std::ptrdiff_t>(kRuleKeyBytesMax)) grow();
    begin_ = at_;
    raw(prefix);
  }
  std::string_view end() { return {begin_, static_cast<std::size_t>(at_ - begin_)}; }
  void drop() { at_ = begin_; }
  void take_back(std::size_t bytes) { at_ -= bytes; }

  // Returns the encoding of one part.
  static std::string part_of(std::string_view bytes) {
    KeyArena arena;
    arena.begin({});
    arena.part(bytes);
    return std::string(arena.end());
  }

  // Appends the bytes unchanged.
  void raw(std::string_view bytes) {
    WEIR_ASSERT(static_cast<std::size_t>(end_ - at_) >= bytes.size());
    at_ = std::copy(bytes.begin(), bytes.end(), at_);
  }
  // Appends a part, preceded by its length, so that two different lists of parts never give the same key.
  void part(std::string_view bytes) {
    if (bytes.size() > kPartBytesMax) return long_part(bytes);
    *at_++ = static_cast<char>(bytes.size());
    raw(bytes);
  }

 private:
  static constexpr std::size_t kMoreBytes = 4 * kRuleKeyBytesMax;

  void long_part(std::string_view bytes) {
    const auto hash = base::sha256(bytes);
    *at_++ = base::kHashedPart;
    raw({reinterpret_cast<const char*>(hash.data()), hash.size()});
  }

  void grow() {
    more_.push_back(std::make_unique<char[]>(kMoreBytes));
    at_ = more_.back().get();
    end_ = at_ + kMoreBytes;
  }

  std::array<char, 3 * kRuleKeyBytesMax> place_;
  char* at_ = place_.data();
  char* end_ = place_.data() + place_.size();
  char* begin_ = place_.data();
  std::vector<std::unique_ptr<char[]>> more_;
};

}  // namespace weir::policy
