// SipHash with 128 bits of output: a hash under a secret key, so that nobody outside can choose keys that collide.
//
// The rounds are a parameter: 1-3 is what the table uses, 2-4 is the form that was published with test vectors. Pure;
// any thread. Tested by siphash_test.cc.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir::table {

struct SipKey {
  std::uint64_t k0 = 0, k1 = 0;
};

struct Hash128 {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

template <int kBlockRounds, int kFinalRounds>
class SipHash128 {
 public:
  explicit SipHash128(SipKey key)
      : v0_(key.k0 ^ 0x736f6d6570736575),
        v1_(key.k1 ^ 0x646f72616e646f6d ^ 0xee),
        v2_(key.k0 ^ 0x6c7967656e657261),
        v3_(key.k1 ^ 0x7465646279746573) {}

  Hash128 operator()(std::string_view bytes) {
    const std::size_t tail = bytes.size() % 8;
    const char* at = bytes.data();
    for (const char* end = at + (bytes.size() - tail); at != end; at += 8) block(load_eight(at));
    block(load_tail(bytes, tail) | static_cast<std::uint64_t>(bytes.size()) << 56);
    v2_ ^= 0xee;
    const std::uint64_t low = finish();
    v1_ ^= 0xdd;
    return {low, finish()};
  }

 private:
  static std::uint64_t load_eight(const char* at) {  // little endian, as all machines that we know
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
  }

  // The last bytes: the end of the last eight where there are eight, which is faster than copying some.
  static std::uint64_t load_tail(std::string_view bytes, std::size_t tail) {
    if (tail == 0) return 0;
    if (bytes.size() >= 8) return load_eight(bytes.data() + bytes.size() - 8) >> (64 - 8 * tail);
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), tail);
    return word;
  }

  void block(std::uint64_t word) {
    v3_ ^= word;
    for (int i = 0; i < kBlockRounds; ++i) round();
    v0_ ^= word;
  }

  std::uint64_t finish() {
    for (int i = 0; i < kFinalRounds; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

  void round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
};

inline Hash128 siphash13(SipKey key, std::string_view bytes) { return SipHash128<1, 3>(key)(bytes); }

}  // namespace weir::table
