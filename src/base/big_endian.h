// Reads big-endian numbers (highest byte first), as in network protocols and time zone files.
//
// Pure; any thread. Tested through its readers, proxy_header_test.cc and tzif_test.cc among them.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::base {

// `bytes` has at most eight bytes.
constexpr std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

}  // namespace weir::base
