// SipHash: a hash under a secret key, so that nobody outside can choose keys that collide.
//
// The rounds are a parameter: 1-3 is what the store uses, 2-4 is the form that was published with test vectors. Pure;
// any thread. Tested by siphash_test.cc.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir {

struct SipKey {
  std::uint64_t k0 = 0, k1 = 0;
};

template <int kBlockRounds, int kFinalRounds>
class SipHash {
 public:
  explicit SipHash(SipKey key)
      : v0_(key.k0 ^ 0x736f6d6570736575),
        v1_(key.k1 ^ 0x646f72616e646f6d),
        v2_(key.k0 ^ 0x6c7967656e657261),
        v3_(key.k1 ^ 0x7465646279746573) {}

  std::uint64_t operator()(std::string_view bytes) {
    const std::size_t tail = bytes.size() % 8;
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) block(load(bytes.substr(at, 8)));
    block(load(bytes.substr(bytes.size() - tail)) | static_cast<std::uint64_t>(bytes.size()) << 56);
    v2_ ^= 0xff;
    for (int i = 0; i < kFinalRounds; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  static std::uint64_t load(std::string_view bytes) {  // little endian, as all machines that we know
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    return word;
  }

  void block(std::uint64_t word) {
    v3_ ^= word;
    for (int i = 0; i < kBlockRounds; ++i) round();
    v0_ ^= word;
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

inline std::uint64_t siphash13(SipKey key, std::string_view bytes) { return SipHash<1, 3>(key)(bytes); }

}  // namespace weir
