// Compiles a quota to integers, and checks every bound that the arithmetic relies on, so later code need not.
//
// Pure: compile.cc has already read the zone file of a calendar quota. Any thread. Tested by limit_test.cc.
#pragma once

#include <cstdint>
#include <memory>

#include "algorithm/calendar.h"
#include "weir/limit.h"

namespace weir::algorithm {

// The bounds of a bucket's word: see "The rate of a bucket" in docs/algorithms.md.
inline constexpr std::int64_t kRateMax = 4094;
inline constexpr std::int64_t kUnitsMax = (std::int64_t{1} << 53) - 4096;  // of (capacity + 1) * weight
inline constexpr std::int64_t kPermitsPerMicroMax = 64;
inline constexpr std::int64_t kFillMax_us = std::int64_t{1} << 52;

struct Fraction {
  std::int64_t rate = 1;
  std::int64_t weight = 1;
  friend bool operator==(const Fraction&, const Fraction&) = default;
};

// largest_fraction()
//
// Returns the largest rate/weight at or below permits/period_us with rate <= max.rate and weight <= max.weight; rate
// 0 if there is none above zero. If permits/period_us itself fits, the result equals it, in lowest terms.
Fraction largest_fraction(std::int64_t permits, std::int64_t period_us, Fraction max);

// make_bucket(), make_window()
//
// Makes the limit of a bucket, or of a window, log or concurrency. For tests, periods may be as short as 1 µs.
Result<Limit> make_bucket(Algorithm algorithm, std::int64_t permits, std::int64_t period_us, std::int64_t capacity);
Result<Limit> make_window(Algorithm algorithm, std::int64_t permits, std::int64_t period_us);

// is_sound()
//
// Whether the limit is safe for the arithmetic. Every limit made by these functions is. A limit built by hand or read
// from a damaged file may divide by zero or overflow.
bool is_sound(const Limit& limit);

// compile_limit()
//
// `calendar` is the one that the quota names, or null if it names none.
Result<Limit> compile_limit(const Quota& quota, std::shared_ptr<const Calendar> calendar);

constexpr bool is_bucket(Algorithm algorithm) {
  return algorithm == Algorithm::token_bucket || algorithm == Algorithm::leaky_bucket ||
         algorithm == Algorithm::leaky_meter;
}

// Whether a state belongs to a period: true for windows and logs.
constexpr bool is_by_period(Algorithm algorithm) {
  return !is_bucket(algorithm) && algorithm != Algorithm::concurrency;
}

// Whether both limits count by the same calendar, or both by none.
inline bool has_calendar_of(const Limit& a, const Limit& b) {
  return a.calendar == b.calendar || (a.calendar && b.calendar && *a.calendar == *b.calendar);
}

// shares_state()
//
// Whether two limits are versions of one limit, so that they count a key in one state. Windows and logs with another
// period, phase or calendar use another state, as do other algorithms.
inline bool shares_state(const Limit& a, const Limit& b) {
  if (a.algorithm != b.algorithm) return false;
  if (!is_by_period(a.algorithm)) return true;
  return a.period_us == b.period_us && a.phase_us == b.phase_us && has_calendar_of(a, b);
}

// period_print()
//
// A hash of the period, phase and calendar of windows and logs, with well mixed upper bits. 0 for all others. The
// same in every build and on every machine, because it becomes part of the names in a state file.
inline std::uint64_t period_print(const Limit& limit) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15, kOther = 0xc2b2ae3d27d4eb4f;
  if (!is_by_period(limit.algorithm)) return 0;
  const auto period = static_cast<std::uint64_t>(limit.period_us), phase = static_cast<std::uint64_t>(limit.phase_us);
  if (limit.calendar) return (~static_cast<std::uint64_t>(limit.calendar->tag())) * kOdd;
  return period * kOdd ^ phase * kOther;
}

}  // namespace weir::algorithm
