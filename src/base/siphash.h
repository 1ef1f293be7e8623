// SipHash with 128 bits of output: a hash under a secret key, so that no client can choose keys that collide.
//
// The rounds are a parameter. The table uses 1-3; 2-4 is the form that was published with test vectors.
// siphash_many.h hashes several keys at once, with the same rounds. Pure; any thread. Tested by siphash_test.cc.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir::base {

struct SipKey {
  std::uint64_t k0 = 0, k1 = 0;
};

struct Hash128 {
  std::uint64_t low, high;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

// The state. A Word is 64 bits, or a vector of such words, each of another key. Inlined by force, because the code
// for vectors may be compiled for a different processor than the rest.
template <class Word, int kBlockRounds, int kFinalRounds>
class SipState {
 public:
  [[gnu::always_inline]] SipState(const Word& k0, const Word& k1)
      : v0_(k0 ^ 0x736f6d6570736575),
        v1_(k1 ^ 0x646f72616e646f6d ^ 0xee),
        v2_(k0 ^ 0x6c7967656e657261),
        v3_(k1 ^ 0x7465646279746573) {}

  [[gnu::always_inline]] void block(const Word& word) {
    v3_ ^= word;
    for (int i = 0; i < kBlockRounds; ++i) round();
    v0_ ^= word;
  }

  // Where a bit of the mask is set, takes that bit from the other state.
  [[gnu::always_inline]] void take(const Word& mask, const SipState& other) {
    v0_ ^= (v0_ ^ other.v0_) & mask;
    v1_ ^= (v1_ ^ other.v1_) & mask;
    v2_ ^= (v2_ ^ other.v2_) & mask;
    v3_ ^= (v3_ ^ other.v3_) & mask;
  }

  [[gnu::always_inline]] void finish(Word& low, Word& high) {
    v2_ ^= 0xee;
    for (int i = 0; i < kFinalRounds; ++i) round();
    low = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    for (int i = 0; i < kFinalRounds; ++i) round();
    high = v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  template <int kBits>
  [[gnu::always_inline]] static void rotate(Word& word) {
    word = (word << kBits) | (word >> (64 - kBits));
  }

  [[gnu::always_inline]] void round() {
    v0_ += v1_;
    rotate<13>(v1_);
    v1_ ^= v0_;
    rotate<32>(v0_);
    v2_ += v3_;
    rotate<16>(v3_);
    v3_ ^= v2_;
    v0_ += v3_;
    rotate<21>(v3_);
    v3_ ^= v0_;
    v2_ += v1_;
    rotate<17>(v1_);
    v1_ ^= v2_;
    rotate<32>(v2_);
  }

  Word v0_, v1_, v2_, v3_;
};

inline std::uint64_t load_eight(const char* at) {  // little endian, like all machines that we support
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// The last block: the remaining bytes, and the length. If there are at least eight bytes, it is read as the end of
// the last eight, which is faster than copying a few.
inline std::uint64_t last_block(std::string_view bytes) {
  const std::size_t tail = bytes.size() % 8;
  std::uint64_t word = 0;
  if (tail != 0 && bytes.size() >= 8) {
    word = load_eight(bytes.data() + bytes.size() - 8) >> (64 - 8 * tail);
  } else if (tail != 0) {
    std::memcpy(&word, bytes.data(), tail);
  }
  return word | static_cast<std::uint64_t>(bytes.size()) << 56;
}

template <int kBlockRounds, int kFinalRounds>
Hash128 siphash(SipKey key, std::string_view bytes) {
  SipState<std::uint64_t, kBlockRounds, kFinalRounds> state(key.k0, key.k1);
  const char* at = bytes.data();
  for (const char* end = at + bytes.size() / 8 * 8; at != end; at += 8) state.block(load_eight(at));
  state.block(last_block(bytes));
  Hash128 hash{};
  state.finish(hash.low, hash.high);
  return hash;
}

inline Hash128 siphash13(SipKey key, std::string_view bytes) { return siphash<1, 3>(key, bytes); }

}  // namespace weir::base
