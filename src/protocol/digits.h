// Whole numbers as decimal digits, appended without a text in between.
//
// Pure; any thread. Tested by headers_test.cc.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>

namespace weir {

inline void append_digits(std::string& out, std::int64_t value) {
  std::array<char, 20> digits;
  const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

}  // namespace weir
