// The names of keys inside Redis: a prefix, the format version, the algorithm, a hash tag, and the key.
//
//   weir:2t{3f2a}user:42        a token bucket
//   weir:2s{3f2a}…              a ticket: the id of an allowed request, or one key's part of a reservation
//
// The text in braces decides the slot in a Redis Cluster. It is made from the subject, so all charges to one subject
// can be one event. The subject is found in the key itself, so the key alone decides where it lies. The name contains
// the whole key after the brace. Pure; any thread. Tested by redis_key_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fnv.h"
#include "base/key_part.h"
#include "base/key_space.h"
#include "base/text.h"
#include "weir/verdict.h"

namespace weir::fleet {

// The version of the names and of the stored values; script.lua has the same. Servers with different versions do not
// see each other's keys, so they cannot share a limit.
inline constexpr char kRedisVersion = '2';

inline constexpr char kTicketMark = 's';
inline constexpr char kForgetMark = 'z';  // in no key name: marks a key that the script must delete

// One letter per algorithm; script.lua uses the same letters for states.
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

// The first value of a rule's key, which is the client it counts. For a rule with one count for all requests, the
// name of the rule. Nothing for any other key.
inline std::optional<std::string_view> subject_of_rule_key(std::string_view key) {
  if (key.empty() || key.front() != base::kRuleKeys) return {};
  std::string_view rest = key.substr(1);
  const auto name = base::take_key_part(rest);
  const auto per = name ? base::take_key_part(rest) : std::nullopt;
  if (!per) return {};
  if (per->bytes == "global") return name->bytes;
  if (per->bytes.starts_with("identity") && !rest.empty()) {
    const auto kind = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    if (kind >= base::kFirstNamedKind && !base::take_key_part(rest)) return {};
  }
  const auto value = base::take_key_part(rest);
  return value ? std::optional(value->bytes) : std::nullopt;
}

// subject_of()
//
// The part of a key that decides its slot. For a rule's key, the client. For others, the text in braces, as in Redis
// itself (`{user:42}/second`, `{user:42}/hour`); without braces, the whole key.
inline std::string_view subject_of(std::string_view key) {
  if (const auto who = subject_of_rule_key(key)) return *who;
  const std::size_t begin = key.find('{');
  if (begin == std::string_view::npos) return key;
  const std::size_t end = key.find('}', begin + 1);
  return end == std::string_view::npos || end == begin + 1 ? key : key.substr(begin + 1, end - begin - 1);
}

// The 14-bit number in the hash tag: FNV-1a, folded.
constexpr std::uint32_t redis_tag(std::string_view subject) {
  const std::uint32_t hash = base::fnv1a_32(subject);
  return (hash ^ hash >> 14 ^ hash >> 28) & 0x3fff;
}

// Appends `2t{3f2a}`, the part between the prefix and the key.
inline void append_redis_head(std::string& out, char mark, std::uint32_t tag) {
  out.append({kRedisVersion, mark, '{'});
  for (int shift = 12; shift >= 0; shift -= 4) out.push_back(base::kHexDigits[tag >> shift & 15]);
  out.push_back('}');
}

inline void append_redis_key(std::string& out, std::string_view prefix, char mark, std::string_view subject,
                             std::string_view key) {
  out.append(prefix);
  append_redis_head(out, mark, redis_tag(subject));
  out.append(key);
}

// Returns an error if keys cannot begin with this prefix; nothing if they can.
inline std::optional<Error> refuse_prefix(std::string_view prefix) {
  constexpr std::size_t kPrefixMax = 64;
  if (!prefix.empty() && prefix.size() <= kPrefixMax && prefix.find_first_of("{}") == prefix.npos) return {};
  return Error{ErrorCode::invalid_argument,
               "the key prefix in Redis must have 1 to " + std::to_string(kPrefixMax) + " bytes and no braces"};
}

constexpr std::optional<Algorithm> algorithm_of(char mark) {
  for (const Algorithm algorithm : kAlgorithms) {
    if (redis_mark(algorithm) == mark) return algorithm;
  }
  return std::nullopt;
}

// The name of the state that this charge's limit uses.
inline std::string redis_name(std::string_view prefix, const Charge& charge) {
  std::string name;
  append_redis_key(name, prefix, redis_mark(charge.limit->algorithm), subject_of(charge.key), charge.key);
  return name;
}

// A key that the fleet uses for its own data, beside the keys of limits: weir:2!{0000}nodes
inline std::string own_key(std::string_view prefix, std::string_view name, char version = kRedisVersion) {
  constexpr char kOwnMark = '!';
  std::string key(prefix);
  append_redis_head(key, kOwnMark, 0);
  key[prefix.size()] = version;
  return key.append(name);
}

}  // namespace weir::fleet
