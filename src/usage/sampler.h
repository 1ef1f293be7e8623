// Chooses which of many events to look at: all while there are few, then a sample with weights.
//
// In each second, the first 10,000 events count for themselves. After that one in 16 counts for 16, and beyond
// 100,000 one in 64 for 64. The gaps are random around that, so that periodic traffic does not bias the sample. Time
// is an argument. One thread. Tested by tests/rule_counts_test.cc.
#pragma once

#include <cstdint>

#include "weir/clock.h"

namespace weir {

struct Sampler {
  static constexpr std::uint32_t kAll = 10'000;
  static constexpr std::uint32_t kMany = 100'000;

  std::int64_t second = 0;
  std::uint32_t seen = 0;  // in this second
  std::uint32_t skip = 0;  // how many more to skip
  std::uint64_t noise = 0x9e3779b97f4a7c15;

  void begin(Micros now) {
    const std::int64_t is = now.count() / 1'000'000;
    if (is == second) return;
    second = is;
    seen = skip = 0;
  }

  // The weight of the next event; 0: skip it.
  std::uint32_t weigh() {
    if (seen < UINT32_MAX) ++seen;
    if (seen <= kAll) return 1;
    if (skip > 0) {
      --skip;
      return 0;
    }
    const std::uint32_t weight = seen <= kMany ? 16 : 64;
    noise ^= noise << 13;
    noise ^= noise >> 7;
    noise ^= noise << 17;
    skip = static_cast<std::uint32_t>(noise >> 33) % (2 * weight - 1);
    return weight;
  }
};

}  // namespace weir
