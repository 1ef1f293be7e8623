// How a key's state is stored: in the 8 bytes of its slot if they suffice for every state of its limit, else in a
// block.
//
// A bucket is one word. A fixed window is the number of its window and a count; a calendar's is its end in seconds. A
// sliding window has two counts. Fields have as many bits as the limit needs, so most limits in practice fit. A log
// and permits in flight never do. A log without a block is kept as two counts (algorithm/compact_log.h), under its
// own number. All zero is a key never seen. Pure; any thread. Tested by pack_test.cc.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <variant>

#include "algorithm/bucket.h"
#include "algorithm/compact_log.h"
#include "algorithm/fixed_window.h"
#include "algorithm/limit.h"
#include "algorithm/sliding_window.h"
#include "table/word.h"

namespace weir::table {

enum class Kind : std::uint8_t { bucket, fixed, sliding, log, holds, compact };

inline Kind kind_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::fixed_window:
      return Kind::fixed;
    case Algorithm::sliding_window:
      return Kind::sliding;
    case Algorithm::sliding_log:
      return Kind::log;
    case Algorithm::concurrency:
      return Kind::holds;
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
    case Algorithm::leaky_meter:
      break;
  }
  return Kind::bucket;
}

// 126 bits: the capacity of a word beside its mark.
__extension__ using Bits = unsigned __int128;
inline constexpr unsigned kBitsInWord = 126;

inline Word word_of(Bits bits) {
  return {static_cast<std::uint64_t>(bits) << 2, static_cast<std::uint64_t>(bits >> 62)};
}
inline Bits bits_of(const Word& word) { return Bits{word.state} << 62 | word.tag >> 2; }
inline std::uint64_t field(Bits bits, unsigned from, unsigned width) {
  return static_cast<std::uint64_t>(bits >> from) & (~std::uint64_t{0} >> (64 - width));
}

// How the states of a number are stored: in the algorithm's own form, or logs as two counts.
enum class Form : std::uint8_t { usual, compact };

// The positions of the fields of a limit's states.
struct Packing {
  Kind kind = Kind::bucket;
  std::uint8_t count_bits = 0;    // of each count
  std::uint8_t window_bits = 64;  // of the window's number, or of a bucket
  bool fits_slot = true;
  bool fits_block = true;
  std::int64_t window_us = 1;  // the unit in which windows are numbered
  std::int64_t phase_us = 0;   // a fixed window ends this long after a multiple of the unit
};

inline std::int64_t window_us_of(const Limit& limit) {
  return limit.period_us == 0 ? 1'000'000 : limit.period_us;  // calendars change at whole seconds
}

// A compact form that does not fit a slot is not used.
inline Packing packing_of(const Limit& limit, Form form = Form::usual) {
  Packing packing{.kind = form == Form::compact ? Kind::compact : kind_of(limit.algorithm)};
  if (packing.kind == Kind::bucket) return packing;
  packing.window_us = window_us_of(limit);
  packing.phase_us = limit.phase_us;
  packing.count_bits = static_cast<std::uint8_t>(std::bit_width(static_cast<std::uint64_t>(limit.permits)));
  // A window may end a little after the end of time.
  packing.window_bits =
      static_cast<std::uint8_t>(std::bit_width(static_cast<std::uint64_t>(2 * kTimeEnd / packing.window_us + 2)));
  const unsigned counts = packing.kind == Kind::sliding || packing.kind == Kind::compact ? 2 : 1;
  const unsigned bits = packing.window_bits + counts * packing.count_bits;
  packing.fits_slot = packing.kind != Kind::log && packing.kind != Kind::holds && bits <= 64;
  packing.fits_block = packing.kind == Kind::log || packing.kind == Kind::holds || bits <= kBitsInWord;
  return packing;
}

inline Bits pack(const algorithm::Bucket& s, const Packing&) { return s.word; }
inline Bits pack(const algorithm::FixedWindow& s, const Packing& packing) {
  if (s.count == 0) return 0;
  // The phase is less than a unit: the division drops it.
  return Bits{static_cast<std::uint64_t>(s.end_us / packing.window_us)} << packing.count_bits |
         static_cast<std::uint64_t>(s.count);
}
// The two counts of a sliding window, or of a log.
template <class Counts>
Bits pack_counts(const Counts& s, const Packing& packing) {
  if (s.previous == 0 && s.current == 0) return 0;
  return (Bits{static_cast<std::uint64_t>(s.window)} << packing.count_bits | static_cast<std::uint64_t>(s.previous))
             << packing.count_bits |
         static_cast<std::uint64_t>(s.current);
}
inline Bits pack(const algorithm::SlidingWindow& s, const Packing& packing) { return pack_counts(s, packing); }
inline Bits pack(const algorithm::CompactLog& s, const Packing& packing) { return pack_counts(s, packing); }
// Any state that takes one word. A log and permits in flight take more.
template <class... States>
Bits pack(const std::variant<States...>& state, const Packing& packing) {
  return std::visit(
      [&](const auto& one) -> Bits {
        if constexpr (requires { pack(one, packing); }) return pack(one, packing);
        WEIR_ASSERT(!"the state takes one word");
        return 0;
      },
      state);
}
// Clamps the counts to their bits, because a damaged log may contain anything.
inline std::uint64_t pack_compact(const algorithm::CompactLog& s, const Limit& limit) {
  const auto at_most = [&](std::int64_t count) { return std::clamp<std::int64_t>(count, 0, limit.permits); };
  return static_cast<std::uint64_t>(
      pack(algorithm::CompactLog{s.window, at_most(s.previous), at_most(s.current)}, packing_of(limit, Form::compact)));
}

inline algorithm::Bucket unpack_bucket(Bits bits) { return {static_cast<std::uint64_t>(bits)}; }
inline algorithm::FixedWindow unpack_fixed(Bits bits, const Packing& packing) {
  const unsigned count_bits = packing.count_bits;
  if (bits == 0 || count_bits == 0) return {};
  return {
      static_cast<std::int64_t>(field(bits, count_bits, packing.window_bits)) * packing.window_us + packing.phase_us,
      static_cast<std::int64_t>(field(bits, 0, count_bits))};
}
template <class Counts>
Counts unpack_counts(Bits bits, const Packing& packing) {
  const unsigned count_bits = packing.count_bits;
  if (bits == 0 || count_bits == 0) return {};
  return {static_cast<std::int64_t>(field(bits, 2 * count_bits, packing.window_bits)),
          static_cast<std::int64_t>(field(bits, count_bits, count_bits)),
          static_cast<std::int64_t>(field(bits, 0, count_bits))};
}
inline algorithm::SlidingWindow unpack_sliding(Bits bits, const Packing& packing) {
  return unpack_counts<algorithm::SlidingWindow>(bits, packing);
}
inline algorithm::CompactLog unpack_compact(Bits bits, const Packing& packing) {
  return unpack_counts<algorithm::CompactLog>(bits, packing);
}

// What a sliding window has used now. A window that is ahead of `now` counts in full.
inline std::int64_t used_of(algorithm::SlidingWindow s, std::int64_t period, std::int64_t now) {
  s = algorithm::sliding_window_roll(s, period, now);
  const std::int64_t elapsed = std::max<std::int64_t>(0, now - s.window * period);
  return (s.previous == 0 ? 0 : algorithm::mul_div_floor(s.previous, period - elapsed, period)) + s.current;
}

}  // namespace weir::table
