// A limit is a quota compiled to integers. compile() checks every bound once, so later code need not.
//
// Plain values; compile() may be called from any thread. Tested by limit_test.cc and compile_test.cc.
#pragma once

#include <cstdint>
#include <memory>

#include "weir/quota.h"

namespace weir::algorithm {
class Calendar;
}  // namespace weir::algorithm

namespace weir {

struct Limit {
  Algorithm algorithm = Algorithm::sliding_window;
  std::int64_t permits = 0;    // of one period
  std::int64_t period_us = 0;  // 0: the windows are those of the calendar
  std::int64_t phase_us = 0;   // fixed_window with a period: its windows begin this long after multiples of it; else 0
  std::int64_t capacity = 0;   // `limit` in a decision: the burst of a bucket, else the permits
  // Buckets drain `rate` units per microsecond and one permit weighs `weight` units, so 3/s is rate 3, weight
  // 1,000,000, without rounding. Other algorithms: 1 and 1.
  std::int64_t rate = 1;
  std::int64_t weight = 1;
  // sliding_log: the most events it stores. A further event waits until the oldest leaves the log.
  std::int64_t events_max = 65'536;
  std::shared_ptr<const algorithm::Calendar> calendar{};  // null unless the quota names a calendar unit

  friend bool operator==(const Limit& a, const Limit& b);
};

// compile()
//
// Refuses what the arithmetic cannot represent, and says why. A bucket rate that does not fit becomes the closest
// lower rate that does: at most 0.025 % slower, never faster. Reads the zone file of a calendar quota.
Result<Limit> compile(const Quota& quota);

// Parses and compiles in one step.
Result<Limit> compile(std::string_view quota, std::optional<Algorithm> algorithm = {});

// phased()
//
// For a fixed window with a period: returns the same limit with windows that begin `phase_us` after multiples of the
// period since the epoch. So each key can have its own boundaries. The phase must be at least 0 and less than the
// period.
Result<Limit> phased(Limit limit, std::int64_t phase_us);

}  // namespace weir
