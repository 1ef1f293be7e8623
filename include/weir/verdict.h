// What is asked of a limit (Charge) and what it answers (Decision); what all limits of a request
// answer together (Verdict). Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/limit.h"
#include "weir/result.h"

namespace weir {

// The wait of a request that can never pass: it costs more than the limit's capacity.
inline constexpr Micros kNever = Micros::max();

// How a decision was made.
enum class MadeBy : std::uint8_t {
  here,        // by the limiter's own state, which is all there is
  strict,      // by Redis, for the whole fleet
  cached,      // a denial by what Redis said before, which cannot have changed since
  local,       // Redis could not be asked: by this node's share of the limit
  open,        // the same, by the whole limit
  closed,      // the same: denied
  overloaded,  // denied: Redis has more to do than it can, and nothing is known of the key
  no_room,     // denied: the table has no room for what the request would have to leave there
};

// The word that answers say it by.
constexpr std::string_view to_string(MadeBy made) {
  switch (made) {
    case MadeBy::here:
      return "here";
    case MadeBy::strict:
      return "strict";
    case MadeBy::cached:
      return "cached";
    case MadeBy::local:
      return "local";
    case MadeBy::open:
      return "open";
    case MadeBy::closed:
      return "closed";
    case MadeBy::overloaded:
      return "overloaded";
    case MadeBy::no_room:
      break;
  }
  return "no_room";
}

// Whether it was made without Redis, which could not be asked.
constexpr bool is_fallback(MadeBy made) {
  return made == MadeBy::local || made == MadeBy::open || made == MadeBy::closed || made == MadeBy::overloaded;
}

// What holds while Redis cannot be asked: this node's share of the limit, the whole limit on every node, or nothing.
enum class Fallback : std::uint8_t { local, open, closed };

struct Decision {
  bool allowed = false;
  std::int64_t limit = 0;      // a bucket's capacity, else the permits of a period
  std::int64_t remaining = 0;  // the largest cost that would pass now
  Micros retry_after{0};       // the shortest wait after which the same request would pass; 0 iff allowed
  Micros reset_after{0};       // the shortest wait after which, without traffic, remaining == limit
  Micros delay{0};             // leaky_bucket: the time until this request's turn
  MadeBy made = MadeBy::here;

  friend bool operator==(const Decision&, const Decision&) = default;
};

inline constexpr std::size_t kKeyBytesMax = 4096;

// refuse_key()
//
// Why nothing can be counted under this key: it is empty, or too long. Nothing if it will do.
std::optional<Error> refuse_key(std::string_view key, std::size_t bytes_max = kKeyBytesMax);

// Whose key it is. Keys of different spaces never meet, whatever their bytes are.
enum class KeySpace : std::uint8_t {
  callers,  // any text that the caller of the limiter chooses
  rules,    // made by the rules of a Gate
  envoy,    // made of Envoy's descriptors
};

inline constexpr std::size_t kChargesMax = 32;   // of a request
inline constexpr std::size_t kReservedMax = 16;  // of a reservation

// One limit to be debited. A key has one state for each algorithm; two quotas of the same algorithm
// on the same subject need two keys ("user:42/second", "user:42/hour").
struct Charge {
  std::string_view key;
  const Limit* limit = nullptr;  // never null when it is used; outlives the call
  std::int64_t cost = 1;         // 0 peeks, negative gives back
  Fallback fallback = Fallback::local;
  KeySpace space = KeySpace::callers;  // only who makes keys as src/key_space.h says names another one
  // Of a rule's limit, the same for all its versions: what a full table evicts of one of them counts for the others. 0:
  // the request brought the limit along; it has no other versions then. A table keeps half of its 4,092 numbers of
  // limits for those of rules.
  std::uint64_t family = 0;
};

struct Verdict {
  bool allowed = false;
  std::size_t binding = 0;               // the denial with the longest wait, else the tightest limit
  std::vector<Decision> decisions{};     // one for each charge, in order
  bool repeated = false;                 // of check_once(): a request of this id passed before, and nothing was charged
  std::vector<std::int64_t> reserved{};  // of commit() and cancel(): what each charge had reserved

  const Decision& binding_decision() const { return decisions[binding]; }
};

}  // namespace weir
