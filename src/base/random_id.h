// An unguessable id: 128 random bits as 32 lower-case hexadecimal digits.
//
// It must be unguessable because the id of a reservation or permit is enough to settle or release it. Any thread.
// Tested through limiter_test.cc and http_reserve_test.cc.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "base/text.h"

namespace weir::base {

inline std::string random_id() {
  std::random_device random;
  std::string id;
  for (int word = 0; word < 4; ++word) {
    std::uint32_t bits = random();
    for (int digit = 0; digit < 8; ++digit, bits >>= 4) id += kHexDigits[bits & 15];
  }
  return id;
}

}  // namespace weir::base
