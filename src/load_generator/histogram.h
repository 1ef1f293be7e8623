// A histogram of response times: percentiles of any number of values in a few kilobytes.
//
// Log-linear: each power of two is split into 128 equal buckets. So a percentile is at most 1/128, less than 1 %,
// above the true value, from nanoseconds to minutes. Values below 256 are exact. One thread; merge() adds up those of
// several threads. Tested by histogram_test.cc.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::load_generator {

class Histogram {
 public:
  // Larger values count in the last bucket; max() still returns the true maximum. About 18 minutes.
  static constexpr std::uint64_t kValueMax = (std::uint64_t{1} << 40) - 1;

  Histogram() : counts_(bucket_of(kValueMax) + 1) {}

  void record(std::uint64_t value) {
    ++counts_[bucket_of(value > kValueMax ? kValueMax : value)];
    ++count_;
    if (value > max_) max_ = value;
  }
  void merge(const Histogram& other);
  void clear();

  std::uint64_t count() const { return count_; }
  std::uint64_t max() const { return max_; }

  // percentile()
  //
  // A value that at least `per_100k` of 100,000 values do not exceed: 50,000 is the median, 99,900 is p99.9. It is
  // the upper end of a bucket: too high by at most the bucket's width, and never too low. 0 if nothing was recorded.
  std::uint64_t percentile(std::uint32_t per_100k) const;

 private:
  static constexpr unsigned kBits = 7;  // 128 buckets for each power of two

  static constexpr std::size_t bucket_of(std::uint64_t value) {
    const unsigned shift = value < (1U << (kBits + 1)) ? 0 : static_cast<unsigned>(std::bit_width(value)) - kBits - 1;
    return (std::size_t{shift} << kBits) + (value >> shift);
  }
  static std::uint64_t top_of(std::size_t bucket);

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace weir::load_generator
