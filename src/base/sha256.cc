// See sha256.h. Variable names follow the standard, section 6.2.
#include "base/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstring>

#include "base/text.h"

namespace weir::base {
namespace {

constexpr std::size_t kBlockBytes = 64;

using State = std::array<std::uint32_t, 8>;

// The first 32 fractional bits of the square roots of the first 8 primes, and of the cube roots of the first 64.
constexpr State kStart = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr std::array<std::uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t load(const char* bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return std::endian::native == std::endian::little ? __builtin_bswap32(word) : word;
}

using AddBlock = void(State& state, const char* block);

void add_block(State& state, const char* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = load(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kRounds[t] + w[t];
    const std::uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const State sums = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += sums[i];
}

#if defined(__x86_64__)

// The same with the processor's SHA instructions, which keep the state in two registers: a, b, e, f and c, d, g, h.
// Two instructions do four rounds. Three more compute the four words needed 16 rounds later.
[[gnu::target("sha,sse4.1")]] void add_block_fast(State& state, const char* block) {
  constexpr std::array<std::size_t, 8> kOrder = {5, 4, 1, 0, 7, 6, 3, 2};
  const auto load_four = [](const void* words) { return _mm_loadu_si128(static_cast<const __m128i*>(words)); };
  State sums;
  for (std::size_t i = 0; i < 8; ++i) sums[i] = state[kOrder[i]];
  __m128i abef = load_four(&sums[0]), cdgh = load_four(&sums[4]);
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i w[4];
  for (std::size_t i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load_four(block + 16 * i), big_endian);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) {
    __m128i &four = w[i % 4], &next = w[(i + 1) % 4], &third = w[(i + 2) % 4], &last = w[(i + 3) % 4];
    const __m128i keyed = _mm_add_epi32(four, load_four(&kRounds[4 * i]));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, keyed);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(keyed, 0x0e));
    four = _mm_add_epi32(_mm_sha256msg1_epu32(four, next), _mm_alignr_epi8(last, third, 4));
    four = _mm_sha256msg2_epu32(four, last);
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&sums[0]), abef);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&sums[4]), cdgh);
  for (std::size_t i = 0; i < 8; ++i) state[kOrder[i]] += sums[i];
}

AddBlock* fastest() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;  // clang's __builtin_cpu_supports() does not know "sha"
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & bit_SHA) != 0 ? add_block_fast : add_block;
}

#else

AddBlock* fastest() { return add_block; }

#endif

std::array<std::uint8_t, 32> hash(std::string_view bytes, AddBlock* add) {
  State state = kStart;
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= kBlockBytes; bytes.remove_prefix(kBlockBytes)) add(state, bytes.data());

  // The rest, a set bit, zeros, and the number of bits in the last eight bytes: one block or two.
  std::array<char, 2 * kBlockBytes> tail{};
  if (!bytes.empty()) std::memcpy(tail.data(), bytes.data(), bytes.size());
  tail[bytes.size()] = static_cast<char>(0x80);
  const std::size_t tail_bytes = bytes.size() + 9 <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  for (std::size_t i = 0; i < 8; ++i) tail[tail_bytes - 1 - i] = static_cast<char>(bits >> (8 * i));
  for (std::size_t at = 0; at < tail_bytes; at += kBlockBytes) add(state, tail.data() + at);

  std::array<std::uint8_t, 32> out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

}  // namespace

std::array<std::uint8_t, 32> sha256(std::string_view bytes) {
  static AddBlock* const add = fastest();  // only once: in a virtual machine CPUID takes microseconds
  return hash(bytes, add);
}

std::array<std::uint8_t, 32> sha256_portable(std::string_view bytes) { return hash(bytes, add_block); }

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string out;
  for (const std::uint8_t byte : bytes) append_hex(out, static_cast<char>(byte));
  return out;
}

}  // namespace weir::base
