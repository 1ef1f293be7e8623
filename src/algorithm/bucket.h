// The bucket kernel: token bucket, leaky meter and leaky queue are one inequality. Its twin is bucket.lua.
//
// A bucket is one word, at * rate + debt: what is spent, in units that drain at `rate` a microsecond, seen from
// the epoch. 0 is a full bucket. The bounds that compile_limit() holds keep the word below 2^64 and every debt
// below 2^53. Tested by differential_test.cc and tests/scenarios/{token,leaky}_bucket.txt.
#pragma once

#include "algorithm/division.h"
#include "algorithm/step.h"

namespace weir {

struct Bucket {
  std::uint64_t word = 0;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

inline Bucket bucket_of(std::int64_t rate, std::int64_t now, std::int64_t debt) {
  if (debt == 0) return {};
  return {static_cast<std::uint64_t>(now) * static_cast<std::uint64_t>(rate) + static_cast<std::uint64_t>(debt)};
}

// What is spent and has not drained by now; before the state was written, what will have to drain since now.
inline std::uint64_t bucket_debt(Bucket s, std::int64_t rate, std::int64_t now) {
  const std::uint64_t drained = static_cast<std::uint64_t>(now) * static_cast<std::uint64_t>(rate);
  return s.word > drained ? s.word - drained : 0;
}

inline Settled<Bucket> bucket_settle(Bucket s, const Limit& limit, std::int64_t now) {
  const std::int64_t full = limit.capacity * limit.weight;
  if (bucket_debt(s, limit.rate, now) <= static_cast<std::uint64_t>(full)) return {s, false};
  return {bucket_of(limit.rate, now, full), true};
}

// What is spent, in units of another limit, rounded up. It fits where it is admitted.
inline std::int64_t bucket_convert(std::int64_t debt, const Limit& from, const Limit& to) {
  const std::int64_t whole = div_floor(debt, from.weight);
  return whole * to.weight + mul_div_ceil(to.weight, debt - whole * from.weight, from.weight);
}

// The state is one of `from` and drains at its rate; the room is that of `limit`. Inlined, so that where both are one
// limit nothing is compared: 10 ns of a check.
[[gnu::always_inline]] inline Stepped<Bucket> bucket_step(Bucket s, const Limit& limit, std::int64_t now,
                                                          std::int64_t cost, const Limit& from) {
  const bool is_other = from.rate != limit.rate || from.weight != limit.weight;
  const std::int64_t capacity = limit.capacity;
  std::int64_t rate = from.rate, weight = from.weight;
  auto debt = static_cast<std::int64_t>(bucket_debt(s, rate, now));
  Decision d = granted(capacity);
  if (cost < 0) {
    debt = cost < -div_floor(debt, weight) ? 0 : debt + cost * weight;
  } else if (cost > capacity) {
    refuse(d, kNever);
  } else if (const std::int64_t over = debt - std::min(capacity - cost, from.capacity) * weight; over > 0) {
    refuse(d, Micros{div_ceil(over, rate)});
  } else {
    if (is_other && cost > 0) {
      debt = bucket_convert(debt, from, limit);
      rate = limit.rate, weight = limit.weight;
    }
    if (limit.algorithm == Algorithm::leaky_bucket) d.delay = Micros{div_ceil(debt, rate)};
    debt += cost * weight;
  }
  d.remaining = std::max<std::int64_t>(0, capacity - div_ceil(debt, weight));
  d.reset_after = Micros{div_ceil(debt, rate)};
  return {bucket_of(rate, now, debt), d, d.allowed && cost > 0};
}

// All but what may have drained since: others have had the use of that. Nothing if another rate rules by now, or if
// time ran backwards: then nobody knows how much drained.
inline Bucket bucket_refund(Bucket s, const Limit& limit, std::int64_t now, const Charged& charged, std::int64_t cost) {
  if (charged.rate != limit.rate || charged.weight != limit.weight || charged.at_us > now) return s;
  const auto drained = static_cast<std::uint64_t>(now - charged.at_us) * static_cast<std::uint64_t>(limit.rate);
  const auto units = static_cast<std::uint64_t>(std::min(cost, limit.capacity) * limit.weight);
  const std::uint64_t debt = bucket_debt(s, limit.rate, now);
  if (units <= drained || debt == 0) return s;
  return bucket_of(limit.rate, now, static_cast<std::int64_t>(debt - std::min(debt, units - drained)));
}

}  // namespace weir
