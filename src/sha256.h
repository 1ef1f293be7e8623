// SHA-256 as FIPS 180-4 defines it: a name for a secret, from which the secret cannot be found.
//
// An API key is long and random, so its plain hash is safe to keep and to print; a password would need more than this.
// The whole text is given at once. Pure; any thread. Tested by sha256_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir {

std::array<std::uint8_t, 32> sha256(std::string_view bytes);

// The same without the instructions that some processors have for it; where they have none, it is what runs anyhow.
std::array<std::uint8_t, 32> sha256_portable(std::string_view bytes);

// The bytes in two small digits each.
std::string hex(std::span<const std::uint8_t> bytes);

}  // namespace weir
