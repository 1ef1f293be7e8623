// SHA-256 as FIPS 180-4 defines it. It names a secret without revealing it.
//
// An API key is long and random, so its plain hash is safe to keep and to print; a password would need more than this.
// The caller passes the whole text at once. Pure; any thread. Tested by sha256_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::base {

std::array<std::uint8_t, 32> sha256(std::string_view bytes);

// The same without the processor's SHA instructions. sha256() uses it where the processor has none.
std::array<std::uint8_t, 32> sha256_portable(std::string_view bytes);

// Each byte as two lower-case hexadecimal digits.
std::string hex(std::span<const std::uint8_t> bytes);

}  // namespace weir::base
