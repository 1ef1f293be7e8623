// The names that keys have inside Redis: a prefix, the version of the format, the algorithm, a hash tag, the key.
//
//   weir:1t{3f2a}user:42        a token bucket
//   weir:1s{3f2a}…              a ticket: the id of a request that was let in, or a part of a reservation
//
// What stands in braces decides the slot of a Redis Cluster: it is made of the subject, so that all that one subject is
// charged to can be one event. Who reads a key finds the whole of it behind the brace. Pure; any thread. Tested by
// redis_key_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/verdict.h"

namespace weir {

inline constexpr char kTicketMark = 's';
inline constexpr char kForgetMark = 'z';  // of no key: how the script is told to forget one

// One letter for each algorithm; script.lua knows states by the same.
constexpr char redis_mark(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::fixed_window:
      return 'f';
    case Algorithm::sliding_window:
      return 'w';
    case Algorithm::sliding_log:
      return 'l';
    case Algorithm::token_bucket:
      return 't';
    case Algorithm::leaky_meter:
      return 'm';
    case Algorithm::leaky_bucket:
      return 'q';
    case Algorithm::concurrency:
      break;
  }
  return 'c';
}

// What lies together: the subject of a charge, or its key if it names none.
inline std::string_view subject_of(const Charge& charge) {
  return charge.subject.empty() ? charge.key : charge.subject;
}

// The number in the hash tag, of 14 bits: FNV-1a, folded.
constexpr std::uint32_t redis_tag(std::string_view subject) {
  std::uint32_t hash = 2'166'136'261u;
  for (const char c : subject) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619u;
  return (hash ^ hash >> 14 ^ hash >> 28) & 0x3fff;
}

// `1t{3f2a}`, what stands between the prefix and the key.
inline void append_redis_head(std::string& out, char mark, std::uint32_t tag) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out.append({'1', mark, '{'});
  for (int shift = 12; shift >= 0; shift -= 4) out.push_back(kDigits[tag >> shift & 15]);
  out.push_back('}');
}

inline void append_redis_key(std::string& out, std::string_view prefix, char mark, std::string_view subject,
                             std::string_view key) {
  out.append(prefix);
  append_redis_head(out, mark, redis_tag(subject));
  out.append(key);
}

// Of the state that a charge with a limit is counted in.
inline std::string redis_name(std::string_view prefix, const Charge& charge) {
  std::string name;
  append_redis_key(name, prefix, redis_mark(charge.limit->algorithm), subject_of(charge), charge.key);
  return name;
}

}  // namespace weir
