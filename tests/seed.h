// The seed of a random test: WEIR_SEED from the environment, or a new one. base_seed() prints it, so a failure can be
// repeated. Also functions with which tests draw numbers.
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

// The seeds of a test that plays a history for each: from the first on, or WEIR_SEED alone.
struct Seeds {
  std::uint64_t first = 0, count = 0;
};
inline Seeds seeds_or_given(std::uint64_t first, std::uint64_t count) {
  const char* given = std::getenv("WEIR_SEED");
  return given == nullptr ? Seeds{first, count} : Seeds{std::strtoull(given, nullptr, 10), 1};
}

inline std::mt19937_64 seeded() { return std::mt19937_64(base_seed()); }

inline std::int64_t pick(std::mt19937_64& random, std::int64_t min, std::int64_t max) {
  return std::uniform_int_distribution<std::int64_t>(min, max)(random);
}

// From 0 to n - 1; true once in n times.
inline std::size_t below(std::mt19937_64& random, std::size_t n) {
  return static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(n) - 1));
}
inline bool one_in(std::mt19937_64& random, std::size_t n) { return below(random, n) == 0; }

}  // namespace weir::test
