// Separate name spaces for keys: those of rules, those of Envoy's descriptors, and those of callers.
//
// The store sees only the bytes of a key, so the first byte says which space it belongs to. Rules and Envoy's
// descriptors always write theirs. A caller's key is stored as sent, unless it begins with one of these bytes; then
// kCallerKeys is put in front. So no caller can send the key of a rule, and two different caller keys never become
// the same. The limiter does this in every call (limiter.cc), so no listener can forget it. Pure; any thread. Tested
// by tests/key_space_test.cc and tests/server/key_spaces.sh.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/verdict.h"

namespace weir::base {

inline constexpr char kRuleKeys = '\x01';
inline constexpr char kEnvoyKeys = '\x02';
inline constexpr char kCallerKeys = '\x03';

constexpr bool begins_reserved(std::string_view key) {
  return !key.empty() && key.front() >= kRuleKeys && key.front() <= kCallerKeys;
}

// The name that a caller's key is stored under. In nearly all cases it is a view of the key itself.
class StoredKey {
 public:
  explicit StoredKey(std::string_view key) : text_(key) {
    if (begins_reserved(key)) [[unlikely]] {
      text_ = longer_.assign(1, kCallerKeys).append(key);
    }
  }
  StoredKey(const StoredKey&) = delete;
  StoredKey& operator=(const StoredKey&) = delete;

  operator std::string_view() const { return text_; }  // NOLINT(google-explicit-constructor): it is one

 private:
  std::string longer_;
  std::string_view text_;
};

// Charges with the names that their keys are stored under. In nearly all cases these are the charges themselves, and
// finding that out costs one read of the first byte of each key.
class StoredCharges {
 public:
  explicit StoredCharges(std::span<const Charge> charges) : charges_(charges) {
    for (const Charge& charge : charges) {
      if (is_longer(charge)) [[unlikely]] {
        copy();
        return;
      }
    }
  }
  StoredCharges(const StoredCharges&) = delete;
  StoredCharges& operator=(const StoredCharges&) = delete;

  std::span<const Charge> all() const { return charges_; }

 private:
  static bool is_longer(const Charge& charge) {
    return charge.space == KeySpace::callers && begins_reserved(charge.key);
  }

  // Not inlined, so that the common case is.
  [[gnu::noinline]] void copy() { charges_ = copies_.emplace(charges_).all; }

  struct Copies {
    explicit Copies(std::span<const Charge> charges) : all(charges.begin(), charges.end()) {
      std::size_t bytes = 0;
      for (const Charge& charge : charges) bytes += is_longer(charge) ? charge.key.size() + 1 : 0;
      keys.reserve(bytes);  // keeps the views into it valid
      for (Charge& charge : all) {
        if (!is_longer(charge)) continue;
        const std::size_t at = keys.size();
        keys.append(1, kCallerKeys).append(charge.key);
        charge.key = std::string_view(keys).substr(at);
      }
    }
    std::string keys;
    std::vector<Charge> all;
  };

  std::span<const Charge> charges_;
  std::optional<Copies> copies_;
};

}  // namespace weir::base
