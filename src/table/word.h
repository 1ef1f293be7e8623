// A word is 16 bytes that change as one. The tag says whose state it is, and the state says what was used.
//
// Everything that threads and processes share in a table is read and changed only through the functions below. So a
// test can make every access a point where another participant runs (WEIR_TABLE_HOOK). A reader gets both halves of
// one moment, and a writer never writes half a word. Tested by word_test.cc, and by all tests that run the table
// through chosen schedules.
#pragma once

#include <cstdint>

#ifndef WEIR_TABLE_HOOK  // called before every access to shared memory
#define WEIR_TABLE_HOOK() static_cast<void>(0)
#endif

namespace weir::table {

struct Word {
  std::uint64_t tag;
  std::uint64_t state;
  friend bool operator==(const Word&, const Word&) = default;
};

// A place for a word in shared memory.
struct alignas(16) Unit {
  std::uint64_t tag;
  std::uint64_t state;
};

// The two lowest bits of a tag. While a word is marked, its other tag bits stay, so that a key can be found at any
// time. Only the state becomes a reference. The actual state is in the operation that it refers to.
enum Mark : std::uint64_t {
  kPlain = 0,
  kHeld = 1,     // an operation holds the word
  kClaimed = 2,  // a helper is about to make the operation hold it
  kMarkBits = 3,
};

inline std::uint64_t mark_of(const Word& word) { return word.tag & kMarkBits; }

// All orders are sequentially consistent unless noted. Helping relies on {change a word; read a status} against
// {change the status; read the word}, which acquire and release do not order.
inline std::uint64_t load(const std::uint64_t& place) {
  WEIR_TABLE_HOOK();
  return __atomic_load_n(&place, __ATOMIC_SEQ_CST);
}

inline void store(std::uint64_t& place, std::uint64_t value) {
  WEIR_TABLE_HOOK();
  __atomic_store_n(&place, value, __ATOMIC_RELEASE);
}

inline bool exchange(std::uint64_t& place, std::uint64_t expected, std::uint64_t next) {
  WEIR_TABLE_HOOK();
  return __atomic_compare_exchange_n(&place, &expected, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// A record is written after its number was raised, and read before its number is checked again. ThreadSanitizer does
// not support fences, and needs none: it looks for accesses that are not atomic.
#if defined(__SANITIZE_THREAD__)
inline void fence_before_rewrite() {}
inline void fence_after_read() {}
#else
inline void fence_before_rewrite() { __atomic_thread_fence(__ATOMIC_RELEASE); }
inline void fence_after_read() { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
#endif

// load(), exchange()
//
// The same for a whole word. exchange() leaves what it found in `expected`, as one moment's reading.
Word load(const Unit& unit);
bool exchange(Unit& unit, Word& expected, const Word& next);

inline bool replace(Unit& unit, Word expected, const Word& next) { return exchange(unit, expected, next); }

// Whether this processor supports that.
bool has_wide_atomics();

#if defined(__SANITIZE_THREAD__)  // supports the builtins, cannot see into assembly

__extension__ using Both = unsigned __int128;

inline Word load(const Unit& unit) {
  WEIR_TABLE_HOOK();
  const Both both = __atomic_load_n(reinterpret_cast<const Both*>(&unit), __ATOMIC_SEQ_CST);
  return {static_cast<std::uint64_t>(both), static_cast<std::uint64_t>(both >> 64)};
}

inline bool exchange(Unit& unit, Word& expected, const Word& next) {
  WEIR_TABLE_HOOK();
  Both before = Both{expected.state} << 64 | expected.tag;
  const Both after = Both{next.state} << 64 | next.tag;
  const bool done = __atomic_compare_exchange_n(reinterpret_cast<Both*>(&unit), &before, after, false, __ATOMIC_SEQ_CST,
                                                __ATOMIC_SEQ_CST);
  expected = {static_cast<std::uint64_t>(before), static_cast<std::uint64_t>(before >> 64)};
  return done;
}

inline bool has_wide_atomics() { return true; }

#elif defined(__x86_64__)

// An aligned 16-byte vector load is atomic on every processor with AVX, as both vendors guarantee.
inline Word load(const Unit& unit) {
  WEIR_TABLE_HOOK();
  typedef long long Pair __attribute__((vector_size(16)));
  Pair both;
  asm volatile("movdqa %1, %0" : "=x"(both) : "m"(unit) : "memory");
  return {static_cast<std::uint64_t>(both[0]), static_cast<std::uint64_t>(both[1])};
}

inline bool exchange(Unit& unit, Word& expected, const Word& next) {
  WEIR_TABLE_HOOK();
  bool done;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(done), "+m"(unit), "+a"(expected.tag), "+d"(expected.state)
               : "b"(next.tag), "c"(next.state)
               : "memory");
  return done;
}

inline bool has_wide_atomics() { return __builtin_cpu_supports("avx") != 0; }

#elif defined(__aarch64__)

// Before ARMv8.4, reading a pair atomically requires writing back what was read. STLXP and the loads above (LDAR)
// keep their order, which is what helping needs. The barrier also orders them against plain loads.
inline bool exchange(Unit& unit, Word& expected, const Word& next) {
  WEIR_TABLE_HOOK();
  std::uint64_t tag, state, tag_after, state_after;
  std::uint32_t failed, same;
  // One asm block: an access to memory between the two could keep the store from ever succeeding.
  asm volatile(
      "1: ldaxp %[tag], %[state], %[unit]\n"
      "   cmp %[tag], %[tag_before]\n"
      "   ccmp %[state], %[state_before], #0, eq\n"
      "   csel %[tag_after], %[tag_next], %[tag], eq\n"
      "   csel %[state_after], %[state_next], %[state], eq\n"
      "   stlxp %w[failed], %[tag_after], %[state_after], %[unit]\n"
      "   cbnz %w[failed], 1b\n"
      "   cset %w[same], eq\n"
      : [tag] "=&r"(tag), [state] "=&r"(state), [tag_after] "=&r"(tag_after), [state_after] "=&r"(state_after),
        [failed] "=&r"(failed), [same] "=&r"(same), [unit] "+Q"(unit)
      : [tag_before] "r"(expected.tag), [state_before] "r"(expected.state), [tag_next] "r"(next.tag),
        [state_next] "r"(next.state)
      : "cc", "memory");
  asm volatile("dmb ish" ::: "memory");
  expected = {tag, state};
  return same != 0;
}

inline Word load(const Unit& unit) {
  Word seen{};
  exchange(const_cast<Unit&>(unit), seen, seen);
  return seen;
}

inline bool has_wide_atomics() { return true; }

#else
#error "the table needs 16-byte atomic operations: x86-64 or aarch64"
#endif

}  // namespace weir::table
