// The types of a decision: a Charge against one limit, the Decision of that limit, and the Verdict of all limits of a
// request.
//
// Plain values; any thread.
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
enum class DecidedBy : std::uint8_t {
  here,        // by the limiter's own state; there is no Redis
  strict,      // by Redis, for the whole fleet
  cached,      // a denial known from an earlier reply of Redis, which cannot have changed since
  local,       // Redis unavailable: by this node's share of the limit
  open,        // Redis unavailable: by the whole limit
  closed,      // Redis unavailable: denied
  overloaded,  // denied: Redis is overloaded, and nothing is known of the key
  no_room,     // denied: the table has no capacity for what the request must store
};

// The value of `decided_by` in responses.
constexpr std::string_view to_string(DecidedBy decided_by) {
  switch (decided_by) {
    case DecidedBy::here:
      return "here";
    case DecidedBy::strict:
      return "strict";
    case DecidedBy::cached:
      return "cached";
    case DecidedBy::local:
      return "local";
    case DecidedBy::open:
      return "open";
    case DecidedBy::closed:
      return "closed";
    case DecidedBy::overloaded:
      return "overloaded";
    case DecidedBy::no_room:
      break;
  }
  return "no_room";
}

// Whether the decision was made without Redis because Redis was unavailable or overloaded.
constexpr bool is_fallback(DecidedBy decided_by) {
  return decided_by == DecidedBy::local || decided_by == DecidedBy::open || decided_by == DecidedBy::closed ||
         decided_by == DecidedBy::overloaded;
}

// The limit in effect while Redis is unavailable: this node's share, the whole limit on every node, or no requests at
// all.
enum class Fallback : std::uint8_t { local, open, closed };

struct Decision {
  bool allowed = false;
  std::int64_t limit = 0;      // a bucket's capacity, else the permits of a period
  std::int64_t remaining = 0;  // the largest cost that would pass now
  Micros retry_after{0};       // the shortest wait after which the same request would pass; 0 iff allowed
  Micros reset_after{0};       // the shortest wait after which, without traffic, remaining == limit
  Micros delay{0};             // leaky_bucket: how long this request must be delayed
  DecidedBy decided_by = DecidedBy::here;

  friend bool operator==(const Decision&, const Decision&) = default;
};

inline constexpr std::size_t kKeyBytesMax = 4096;

// refuse_key()
//
// Returns an error if the key is empty or too long; nothing if it is valid.
std::optional<Error> refuse_key(std::string_view key, std::size_t bytes_max = kKeyBytesMax);

// The name space of a key. Keys of different spaces never collide, whatever their bytes are.
enum class KeySpace : std::uint8_t {
  callers,  // any text that the caller of the limiter chooses
  rules,    // made by the rules of a Gate
  envoy,    // made from Envoy's descriptors
};

inline constexpr std::size_t kChargesMax = 32;   // per request
inline constexpr std::size_t kReservedMax = 16;  // per reservation

// One limit to charge. A key has one state per algorithm; two quotas of the same algorithm on the same subject need
// two keys ("user:42/second", "user:42/hour").
struct Charge {
  std::string_view key;
  const Limit* limit = nullptr;  // not null when used; must outlive the call
  std::int64_t cost = 1;         // 0 peeks, a negative cost refunds
  Fallback fallback = Fallback::local;
  KeySpace space = KeySpace::callers;  // other spaces are only for code that makes keys as src/base/key_space.h says
  // Identifies a rule's limit across its versions: if a full table evicts a key of one version, what it had
  // used also counts under the others. 0: the request brought the limit, which then has no other versions. A table
  // numbers at most 4,092 limits at a time, and keeps half of these numbers for limits of rules.
  std::uint64_t family = 0;
};

struct Verdict {
  bool allowed = false;
  std::size_t binding = 0;               // the denial with the longest wait, else the tightest limit
  std::vector<Decision> decisions{};     // one per charge, in order
  bool repeated = false;                 // check_once(): this id passed before, and nothing was charged
  std::vector<std::int64_t> reserved{};  // commit(), cancel(): the reserved cost of each charge

  const Decision& binding_decision() const { return decisions[binding]; }
};

}  // namespace weir
