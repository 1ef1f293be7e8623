// Separate name spaces for keys: those of rules, those of Envoy's descriptors, and those that callers bring.
//
// The store knows a key by its bytes alone, so the first byte says whose it is. Rules and Envoy's descriptors always
// write theirs. A caller's key is stored as it was sent, unless it begins with one of these bytes: then kCallerKeys
// stands before it. So no bytes that a caller sends are the key of a rule, and two keys of callers never become one.
// The limiter does this for every call (limiter.cc), so that no listener can forget it. Pure; any thread. Tested by
// tests/key_space_test.cc and tests/server/key_spaces.sh.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/verdict.h"

namespace weir {

inline constexpr char kRuleKeys = '\x01';
inline constexpr char kEnvoyKeys = '\x02';
inline constexpr char kCallerKeys = '\x03';

constexpr bool begins_reserved(std::string_view key) {
  return !key.empty() && key.front() >= kRuleKeys && key.front() <= kCallerKeys;
}

// The name that a caller's key is stored under; a view of the key, in nearly all cases.
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

// Charges with the names that their keys are stored under; the same charges, in nearly all cases. Those cost a look at
// the first byte of each key.
class StoredCharges {
 public:
  explicit StoredCharges(std::span<const Charge> charges) : charges_(charges) {
    if (std::ranges::any_of(charges, is_longer)) [[unlikely]] {
      charges_ = copies_.emplace(charges).all;
    }
  }
  StoredCharges(const StoredCharges&) = delete;
  StoredCharges& operator=(const StoredCharges&) = delete;

  std::span<const Charge> all() const { return charges_; }

 private:
  static bool is_longer(const Charge& charge) {
    return charge.space == KeySpace::callers && begins_reserved(charge.key);
  }

  struct Copies {
    explicit Copies(std::span<const Charge> charges) : all(charges.begin(), charges.end()) {
      std::size_t bytes = 0;
      for (const Charge& charge : charges) bytes += is_longer(charge) ? charge.key.size() + 1 : 0;
      keys.reserve(bytes);  // views into it stay good
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

}  // namespace weir
