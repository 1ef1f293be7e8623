// The most frequent keys in bounded memory: the Space-Saving sketch of Metwally, Agrawal and El Abbadi (2005).
//
// It counts N = kPlaces keys. When all places are taken, a new key replaces the key with the smallest count and
// inherits that count, which is also stored as its error. So a count is never too low and too high by at most its
// error, and any key with more than 1/N of the total is present. While places are free, counts are exact. It does not
// allocate. One thread. Tested by space_saving_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace weir::usage {

// The secret of keyed hashes, different in every process.
inline std::uint64_t random_secret() {
  std::random_device random;
  const std::uint64_t high = random();
  return high << 32 | random();
}

// The two halves of a product, combined: a step of a hash.
inline std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// mark_of()
//
// A keyed hash: without the secret, a client cannot make two keys collide.
inline std::uint64_t mark_of(std::string_view key, std::uint64_t secret) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t mark = folded(secret ^ 0xd6e8feb86659fd93, key.size() + kOdd);
  for (; !key.empty(); key.remove_prefix(std::min<std::size_t>(key.size(), 8))) {
    std::uint64_t word = 0;
    std::memcpy(&word, key.data(), std::min<std::size_t>(key.size(), 8));
    mark = folded(mark ^ word, secret | kOdd) + kOdd;
  }
  return folded(mark ^ secret, kOdd);
}

template <std::size_t kPlaces>
class SpaceSaving {
 public:
  static constexpr std::size_t kKeyBytesMax = 112;  // longer keys are cut to this; their marks differ

  struct Entry {
    std::uint64_t mark;
    std::uint32_t group;
    std::uint64_t count;  // never too low
    std::uint64_t error;  // and too high by this at most
    std::string_view key;
    bool is_cut;  // the key is longer than stored
  };

  // `mark` is the key's mark_of(). Equal keys of different groups are different entries.
  void add(std::uint32_t group, std::string_view key, std::uint64_t mark, std::uint64_t weight) {
    std::size_t i = find(group, key, mark);
    if (i == size_) {
      if (size_ < kPlaces) {
        ++size_;
        counts_[i] = errors_[i] = 0;
      } else {
        i = smallest();
        errors_[i] = counts_[i];
      }
      put(i, group, key, mark);
    }
    counts_[i] += weight;
  }

  void clear() {
    size_ = 0;
    floor_ = 0;
    at_ = 0;
  }

  std::size_t size() const { return size_; }
  Entry operator[](std::size_t i) const {
    const Kept& kept = kept_[i];
    return {marks_[i],
            kept.group,
            counts_[i],
            errors_[i],
            {kept.bytes.data(), std::min<std::size_t>(kept.size, kKeyBytesMax)},
            kept.size > kKeyBytesMax};
  }
  // The most that a key without an entry can have.
  std::uint64_t floor() const { return size_ < kPlaces ? 0 : *std::min_element(counts_.begin(), counts_.end()); }

 private:
  struct Kept {
    std::uint32_t group;
    std::uint32_t size;  // of the uncut key
    std::array<char, kKeyBytesMax> bytes;
  };

  std::size_t find(std::uint32_t group, std::string_view key, std::uint64_t mark) const {
    for (std::size_t i = 0; i < size_; ++i) {
      if (marks_[i] != mark) continue;
      const Kept& kept = kept_[i];
      const std::size_t bytes = std::min(key.size(), kKeyBytesMax);
      if (kept.group == group && kept.size == key.size() && std::memcmp(kept.bytes.data(), key.data(), bytes) == 0) {
        return i;
      }
    }
    return size_;
  }

  // Counts only grow, so an entry that still has the smallest count ever found is a smallest one.
  std::size_t smallest() {
    for (std::size_t steps = 0; steps < kPlaces; ++steps) {
      at_ = at_ + 1 < kPlaces ? at_ + 1 : 0;
      if (counts_[at_] == floor_) return at_;
    }
    const auto least = std::min_element(counts_.begin(), counts_.end());
    floor_ = *least;
    at_ = static_cast<std::size_t>(least - counts_.begin());
    return at_;
  }

  void put(std::size_t i, std::uint32_t group, std::string_view key, std::uint64_t mark) {
    marks_[i] = mark;
    kept_[i].group = group;
    kept_[i].size = static_cast<std::uint32_t>(key.size());
    std::memcpy(kept_[i].bytes.data(), key.data(), std::min(key.size(), kKeyBytesMax));
  }

  std::size_t size_ = 0;
  std::size_t at_ = 0;
  std::uint64_t floor_ = 0;
  std::array<std::uint64_t, kPlaces> marks_;
  std::array<std::uint64_t, kPlaces> counts_;
  std::array<std::uint64_t, kPlaces> errors_;
  std::array<Kept, kPlaces> kept_;
};

}  // namespace weir::usage
