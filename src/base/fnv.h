// FNV-1a: a short hash against accidents, not against attackers.
//
// State files, and the names of keys in Redis, contain these values: they must never change. Pure; any thread. Tested
// by the static_asserts below.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::base {

// With `hash`, continues the hash of the bytes before these.
constexpr std::uint64_t fnv1a_64(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

constexpr std::uint32_t fnv1a_32(std::string_view bytes) {
  std::uint32_t hash = 0x811c9dc5;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x01000193;
  return hash;
}

// The test vectors of the hash's authors.
static_assert(fnv1a_64("") == 0xcbf29ce484222325 && fnv1a_64("foobar") == 0x85944171f73967e8);
static_assert(fnv1a_64("bar", fnv1a_64("foo")) == fnv1a_64("foobar"));
static_assert(fnv1a_32("") == 0x811c9dc5 && fnv1a_32("foobar") == 0xbf9cf968);
static_assert(fnv1a_64("\xff") == (0xcbf29ce484222325 ^ 0xff) * 0x100000001b3);  // whether or not char has a sign

}  // namespace weir::base
