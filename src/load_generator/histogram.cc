// Merges and evaluates histograms. See histogram.h.
#include "load_generator/histogram.h"

#include <algorithm>

namespace weir::load_generator {

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

void Histogram::clear() {
  std::ranges::fill(counts_, 0);
  count_ = max_ = 0;
}

// The first two powers of two have buckets of the same width, so bucket_of() scales only above them.
std::uint64_t Histogram::top_of(std::size_t bucket) {
  constexpr std::size_t kLinear = std::size_t{1} << (kBits + 1);
  if (bucket < kLinear) return bucket;
  const std::size_t shift = (bucket >> kBits) - 1;
  const std::uint64_t scaled = bucket - (shift << kBits);
  return ((scaled + 1) << shift) - 1;
}

std::uint64_t Histogram::percentile(std::uint32_t per_100k) const {
  if (count_ == 0) return 0;
  const std::uint64_t rank = std::max<std::uint64_t>((count_ * per_100k + 99'999) / 100'000, 1);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return i + 1 == counts_.size() ? max_ : std::min(top_of(i), max_);
  }
  return max_;
}

}  // namespace weir::load_generator
