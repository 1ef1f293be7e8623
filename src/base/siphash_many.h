// Hashes several keys at once, in the lanes of AVX-512 if the processor has it.
//
// The values are those of siphash13(). On other processors, and for fewer than eight keys, it hashes one after the
// other. (Four lanes of AVX2, which cannot rotate, were no faster than that.) Pure; any thread. Tested by
// siphash_test.cc.
#pragma once

#include <cstdint>
#include <span>

#include "base/siphash.h"

namespace weir::base {

inline constexpr std::size_t kSipLanes = 8;  // keys hashed together; fewer are hashed one by one

struct SipInput {
  const char* data;
  std::size_t size;
  std::uint64_t tweak;  // XORed into the key's second half
  std::string_view bytes() const { return {data, size}; }
};

// siphash13_many()
//
// One hash per input; inputs may have any lengths.
void siphash13_many(SipKey key, std::span<const SipInput> inputs, Hash128* hashes);

}  // namespace weir::base
