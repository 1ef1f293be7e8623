// See siphash_many.h. Eight keys go together; a shorter key's lane keeps its state until the longest one ends.

#include "base/siphash_many.h"

#include <algorithm>

namespace weir::base {
namespace {

#if defined(__x86_64__)

using Lanes = std::uint64_t __attribute__((vector_size(kSipLanes * 8)));

// Written out, because a loop over the lanes would go through memory.
template <class Make>
[[gnu::always_inline]] inline void fill(Lanes& lanes, Make make) {
  lanes = Lanes{make(0), make(1), make(2), make(3), make(4), make(5), make(6), make(7)};
}

[[gnu::target("avx512f")]] void hash_eight(SipKey key, const SipInput* inputs, Hash128* hashes) {
  const auto blocks_of = [inputs](std::size_t i) { return inputs[i].size / 8; };
  std::size_t shortest = blocks_of(0), longest = shortest;
  for (std::size_t i = 1; i < kSipLanes; ++i) {
    shortest = std::min(shortest, blocks_of(i));
    longest = std::max(longest, blocks_of(i));
  }
  Lanes tweaks{}, last{}, word{};
  fill(tweaks, [inputs](std::size_t i) { return inputs[i].tweak; });
  fill(last, [inputs](std::size_t i) { return last_block(inputs[i].bytes()); });
  SipState<Lanes, 1, 3> state(Lanes{} + key.k0, tweaks ^ key.k1);
  std::size_t block = 0;
  for (; block < shortest; ++block) {
    fill(word, [inputs, block](std::size_t i) { return load_eight(inputs[i].data + 8 * block); });
    state.block(word);
  }
  if (longest > shortest) [[unlikely]] {
    Lanes blocks{};
    fill(blocks, blocks_of);
    for (; block < longest; ++block) {
      fill(word, [&](std::size_t i) { return block < blocks_of(i) ? load_eight(inputs[i].data + 8 * block) : 0; });
      SipState<Lanes, 1, 3> next = state;
      next.block(word);
      state.take(reinterpret_cast<Lanes>(blocks > block), next);
    }
  }
  state.block(last);
  Lanes low{}, high{};
  state.finish(low, high);
  for (std::size_t i = 0; i < kSipLanes; ++i) hashes[i] = {low[i], high[i]};
}

#endif

}  // namespace

void siphash13_many(SipKey key, std::span<const SipInput> inputs, Hash128* hashes) {
#if defined(__x86_64__)
  const bool has_vectors = __builtin_cpu_supports("avx512f");  // reads a variable; a static of our own would lock
  for (; has_vectors && inputs.size() >= kSipLanes; inputs = inputs.subspan(kSipLanes), hashes += kSipLanes) {
    hash_eight(key, inputs.data(), hashes);
  }
#endif
  for (const SipInput& input : inputs) *hashes++ = siphash13({key.k0, key.k1 ^ input.tweak}, input.bytes());
}

}  // namespace weir::base
