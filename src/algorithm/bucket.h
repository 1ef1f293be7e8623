// The bucket kernel: one inequality for token bucket, leaky meter and leaky queue. Its twin in Lua is bucket.lua.
//
// The state is one word, at * rate + debt. The debt is what is used, in units that drain at `rate` per microsecond;
// times count from the epoch. 0 is a full bucket. The bounds in compile_limit() keep the word below 2^64 and every
// debt below 2^53. Pure; any thread. Tested by differential_test.cc and tests/scenarios/{token,leaky}_bucket.txt.
#pragma once

#include "algorithm/division.h"
#include "algorithm/step.h"

namespace weir::algorithm {

struct Bucket {
  std::uint64_t word = 0;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

inline Bucket bucket_of(std::int64_t rate, std::int64_t now, std::int64_t debt) {
  if (debt == 0) return {};
  return {static_cast<std::uint64_t>(now) * static_cast<std::uint64_t>(rate) + static_cast<std::uint64_t>(debt)};
}

// What is used and has not drained by now. If now is before the state was written, it is what will have to drain
// since now.
inline std::uint64_t bucket_debt(Bucket s, std::int64_t rate, std::int64_t now) {
  const std::uint64_t drained = static_cast<std::uint64_t>(now) * static_cast<std::uint64_t>(rate);
  return s.word > drained ? s.word - drained : 0;
}

inline Settled<Bucket> bucket_settle(Bucket s, const Limit& limit, std::int64_t now) {
  const std::int64_t full = limit.capacity * limit.weight;
  if (bucket_debt(s, limit.rate, now) <= static_cast<std::uint64_t>(full)) return {s, false};
  return {bucket_of(limit.rate, now, full), true};
}

// Converts a debt to units of another limit, rounding up. The result fits if the request is admitted.
inline std::int64_t bucket_convert(std::int64_t debt, const Limit& from, const Limit& to) {
  const std::int64_t whole = div_floor(debt, from.weight);
  return whole * to.weight + mul_div_ceil(to.weight, debt - whole * from.weight, from.weight);
}

// The state belongs to `from` and drains at its rate; the capacity is that of `limit`. Always inlined, so that a
// caller with the same limit twice compares nothing: this saves 10 ns per check.
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

// Refunds all but what may have drained since the charge, because other requests could use that capacity. Refunds
// nothing if the rate has changed, or if time ran backwards: then it is unknown how much drained.
inline Bucket bucket_refund(Bucket s, const Limit& limit, std::int64_t now, const Charged& charged, std::int64_t cost) {
  if (charged.rate != limit.rate || charged.weight != limit.weight || charged.at_us > now) return s;
  const auto drained = static_cast<std::uint64_t>(now - charged.at_us) * static_cast<std::uint64_t>(limit.rate);
  const auto units = static_cast<std::uint64_t>(std::min(cost, limit.capacity) * limit.weight);
  const std::uint64_t debt = bucket_debt(s, limit.rate, now);
  if (units <= drained || debt == 0) return s;
  return bucket_of(limit.rate, now, static_cast<std::int64_t>(debt - std::min(debt, units - drained)));
}

}  // namespace weir::algorithm
