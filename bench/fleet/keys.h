// The order of the keys in a run. It is made before, so that no contestant spends time on random numbers.
//
// The contestants take turns at one order. It is long enough for each of them to use equally many different keys. One
// thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/keys.h"

namespace weir::bench {

class KeyOrder {
 public:
  static KeyOrder uniform(std::size_t keys, std::size_t length) {
    KeyOrder order(length);
    Random random(1);
    for (std::uint32_t& number : order.numbers_) number = static_cast<std::uint32_t>(random.below(keys));
    return order;
  }
  // Each key once.
  static KeyOrder each(std::size_t keys) {
    KeyOrder order(keys);
    for (std::size_t i = 0; i < keys; ++i) order.numbers_[i] = static_cast<std::uint32_t>(i);
    return order;
  }
  // The frequency of the key of rank k is proportional to 1/k.
  static KeyOrder zipf(std::size_t keys, std::size_t length) {
    std::vector<double> sums(keys);
    double sum = 0;
    for (std::size_t i = 0; i < keys; ++i) sums[i] = sum += 1 / static_cast<double>(i + 1);
    KeyOrder order(length);
    Random random(2);
    constexpr std::uint64_t kSteps = std::uint64_t{1} << 53;
    for (std::uint32_t& number : order.numbers_) {
      const double at = sum * static_cast<double>(random.below(kSteps)) / static_cast<double>(kSteps);
      number = static_cast<std::uint32_t>(std::ranges::lower_bound(sums, at) - sums.begin());
    }
    return order;
  }

  // Returns the text of the next key, written into the caller's buffer.
  using Buffer = std::array<char, kKeyBytes>;
  std::string_view next(Buffer& buffer) {
    write_key(numbers_[at_], buffer.data());
    at_ = at_ + 1 == numbers_.size() ? 0 : at_ + 1;
    return {buffer.data(), buffer.size()};
  }

 private:
  explicit KeyOrder(std::size_t length) : numbers_(length) {}
  std::vector<std::uint32_t> numbers_;
  std::size_t at_ = 0;
};

}  // namespace weir::bench
