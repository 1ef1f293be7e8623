// Chooses the key of each request: at random with equal probability, or each key once.
//
// A key is a number of eleven digits, inside a name of about forty bytes like real ones. Drawing and writing a key
// takes a few nanoseconds: a generator that is slower than the server would measure itself. One thread for each.
// Tested by template_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::load_generator {

__extension__ using Wide = unsigned __int128;

inline constexpr std::size_t kKeyDigits = 11;
inline constexpr std::uint64_t kKeysMax = 99'999'999'999;
inline constexpr std::string_view kKeyName = "tenant:0042:route:v1:user:{n}";

class Keys {
 public:
  enum class Order : std::uint8_t { random, in_turn };

  // The keys of one thread. In order, it starts at `first` and takes every `step`th key.
  struct Terms {
    std::uint64_t count = 1;
    Order order = Order::random;
    std::uint64_t first = 0;
    std::uint64_t step = 1;
  };

  explicit Keys(const Terms& terms) : terms_(terms), next_(terms.first), state_(terms.first * kGolden + kGolden) {}

  std::uint64_t next() {
    if (terms_.order == Order::random) return draw();
    const std::uint64_t key = next_ % terms_.count;
    next_ += terms_.step;
    return key;
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

  // Adds an odd constant, then mixes: each state occurs once in 2^64 draws.
  std::uint64_t draw() {
    std::uint64_t mixed = state_ += kGolden;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93;
    mixed ^= mixed >> 32;
    return static_cast<std::uint64_t>((static_cast<Wide>(mixed) * terms_.count) >> 64);
  }

  Terms terms_;
  std::uint64_t next_;
  std::uint64_t state_;
};

// Writes eleven decimal digits to `to`.
inline void write_key(char* to, std::uint64_t key) {
  static constexpr auto kPairs = [] {
    std::array<char, 200> pairs{};
    for (std::size_t i = 0; i < 100; ++i) {
      pairs[2 * i] = static_cast<char>('0' + i / 10);
      pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
    return pairs;
  }();
  auto low = static_cast<std::uint32_t>(key % 100'000'000);
  auto high = static_cast<std::uint32_t>(key / 100'000'000);
  for (std::size_t at = kKeyDigits - 2; at > 2; at -= 2) {
    to[at] = kPairs[low % 100 * 2];
    to[at + 1] = kPairs[low % 100 * 2 + 1];
    low /= 100;
  }
  to[2] = static_cast<char>('0' + high % 10);
  to[1] = static_cast<char>('0' + high / 10 % 10);
  to[0] = static_cast<char>('0' + high / 100 % 10);
}

}  // namespace weir::load_generator
