// The family number of a rule's limit: the same in every process and for all versions of the limit. See weir::Charge.
//
// Pure; any thread. Tested by tests/eviction_test.cc.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::base {

// Never 0. `limit` distinguishes the limits of one rule.
inline std::uint64_t family_of(std::string_view rule, std::string_view limit) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::string_view bytes) {
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  };
  add(rule);
  add(std::string_view("\0", 1));
  add(limit);
  return hash | 1;
}

}  // namespace weir::base
