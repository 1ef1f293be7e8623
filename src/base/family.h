// The family number of a rule's limit: the same in every process and for all versions of the limit. See weir::Charge.
//
// Pure; any thread. Tested by tests/eviction_test.cc.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/fnv.h"

namespace weir::base {

// Never 0. `limit` distinguishes the limits of one rule.
inline std::uint64_t family_of(std::string_view rule, std::string_view limit) {
  return fnv1a_64(limit, fnv1a_64({"\0", 1}, fnv1a_64(rule))) | 1;
}

}  // namespace weir::base
