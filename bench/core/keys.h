// The keys of all contestants: 40 bytes each, in batches of sixteen.
//
// Hot keys are in memory before a round. A cold key is written just before its use, since ten million keys in memory
// would count as memory of the store. The time for this is a row of its own. Each source belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace weir::bench {

inline constexpr std::size_t kBatch = 16;
inline constexpr std::size_t kKeyBytes = 40;

struct KeyBatch {
  std::array<std::string_view, kBatch> keys;
  std::array<std::uint64_t, kBatch> numbers;  // of the keys
};

// A fast random generator, with the same numbers on every machine (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t end) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    __extension__ using Wide128 = unsigned __int128;
    return static_cast<std::uint64_t>(Wide128{z ^ z >> 31} * end >> 64);
  }

 private:
  std::uint64_t state_;
};

// Writes the key of a number: a typical prefix, then sixteen hexadecimal digits.
inline void write_key(std::uint64_t number, char* out) {
  static constexpr char kPrefix[] = "tenant:0042/api/v1/user:";
  static_assert(sizeof kPrefix - 1 + 16 == kKeyBytes);
  std::memcpy(out, kPrefix, sizeof kPrefix - 1);
  // Turns the eight digits of a half into eight characters at once.
  const auto spread = [](std::uint64_t x) {
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    return (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
  };
  const auto digits = [](std::uint64_t x) {
    const std::uint64_t letters = (x + 0x0606060606060606) >> 4 & 0x0101010101010101;
    return __builtin_bswap64(x + 0x3030303030303030 + letters * ('a' - '0' - 10));
  };
  const std::uint64_t high = digits(spread(number >> 32)), low = digits(spread(number & 0xffffffff));
  std::memcpy(out + kKeyBytes - 16, &high, 8);
  std::memcpy(out + kKeyBytes - 8, &low, 8);
}

// A few keys, again and again, in random order, so that the processor cannot prefetch them.
class HotKeys {
 public:
  HotKeys(std::uint64_t first, std::size_t count, std::uint64_t seed) : text_(count * kKeyBytes) {
    for (std::size_t i = 0; i < count; ++i) write_key(first + i, &text_[i * kKeyBytes]);
    Random random(seed);
    for (std::size_t i = 0; i < kOrder; ++i) order_.push_back(static_cast<std::uint32_t>(random.below(count)));
  }

  const KeyBatch& next() {
    for (std::size_t i = 0; i < kBatch; ++i) {
      const std::uint32_t number = order_[at_++ % kOrder];
      batch_.numbers[i] = number;
      batch_.keys[i] = {&text_[number * kKeyBytes], kKeyBytes};
    }
    return batch_;
  }

 private:
  static constexpr std::size_t kOrder = 1 << 14;
  std::vector<char> text_;
  std::vector<std::uint32_t> order_;
  std::size_t at_ = 0;
  KeyBatch batch_{};
};

// Random keys out of many.
class ColdKeys {
 public:
  ColdKeys(std::size_t count, std::uint64_t seed) : count_(count), random_(seed) {}

  const KeyBatch& next() {
    for (std::size_t i = 0; i < kBatch; ++i) put(i, random_.below(count_));
    return batch_;
  }

  // The keys from `number` on, to visit each key once.
  const KeyBatch& from(std::uint64_t number) {
    for (std::size_t i = 0; i < kBatch; ++i) put(i, number + i);
    return batch_;
  }

 private:
  void put(std::size_t place, std::uint64_t number) {
    write_key(number, text_[place].data());
    batch_.numbers[place] = number;
    batch_.keys[place] = {text_[place].data(), kKeyBytes};
  }

  std::size_t count_;
  Random random_;
  std::array<std::array<char, kKeyBytes>, kBatch> text_{};
  KeyBatch batch_{};
};

}  // namespace weir::bench
