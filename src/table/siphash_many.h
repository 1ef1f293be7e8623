// The hashes of several keys at once, in the lanes of AVX-512 where the processor has it.
//
// The same values as siphash13() gives; elsewhere, and for less than eight keys, one after the other. (Four lanes of
// AVX2, which cannot rotate, were no faster than that.) Pure; any thread. Tested by siphash_test.cc.
#pragma once

#include <cstdint>
#include <span>

#include "table/siphash.h"

namespace weir::table {

inline constexpr std::size_t kSipLanes = 8;  // so many go together; fewer go one by one

struct SipInput {
  const char* data;
  std::size_t size;
  std::uint64_t tweak;  // goes into the key's second half
  std::string_view bytes() const { return {data, size}; }
};

// siphash13_many()
//
// As many hashes as inputs, of any lengths.
void siphash13_many(SipKey key, std::span<const SipInput> inputs, Hash128* hashes);

}  // namespace weir::table
