// The seed of a random test: WEIR_SEED from the environment, or a new one. It is printed whenever it is asked for, so
// that a failure can be run again.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace weir::test {

inline std::uint64_t base_seed() {
  const char* given = std::getenv("WEIR_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "WEIR_SEED=" << seed << "\n";
  return seed;
}

inline std::mt19937_64 seeded() { return std::mt19937_64(base_seed()); }

inline std::int64_t pick(std::mt19937_64& random, std::int64_t min, std::int64_t max) {
  return std::uniform_int_distribution<std::int64_t>(min, max)(random);
}

}  // namespace weir::test
