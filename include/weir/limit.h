// A limit is a quota compiled to integers: every bound is checked here, once, and none later.
//
// Plain values; compile() may be called from any thread. Tested by limit_test.cc and compile_test.cc.
#pragma once

#include <cstdint>
#include <memory>

#include "weir/quota.h"

namespace weir {

class Calendar;  // windows of a time zone; src/algorithm/calendar.h

struct Limit {
  Algorithm algorithm = Algorithm::sliding_window;
  std::int64_t permits = 0;    // of one period
  std::int64_t period_us = 0;  // 0: the windows are the calendar's
  std::int64_t phase_us = 0;   // fixed_window of a period: its windows begin so long after multiples of it; 0 elsewhere
  std::int64_t capacity = 0;   // what a decision calls `limit`: the burst of a bucket, else the permits
  // Buckets: `rate` units drain each microsecond and one permit weighs `weight` units, so that 3/s is
  // rate 3, weight 1,000,000 and nothing is rounded. 1 and 1 elsewhere.
  std::int64_t rate = 1;
  std::int64_t weight = 1;
  // The log: at most so many events are remembered; a further one waits for the oldest to leave.
  std::int64_t events_max = 65'536;
  std::shared_ptr<const Calendar> calendar{};  // null unless the quota names one

  friend bool operator==(const Limit& a, const Limit& b);
};

// compile()
//
// Refuses what the arithmetic cannot hold, and says why. A bucket rate that does not fit is replaced by
// the best one below it, at most 0.025 % slower, never faster. Reads the zone file of a calendar quota.
Result<Limit> compile(const Quota& quota);

// The two steps in one, for callers that have text.
Result<Limit> compile(std::string_view quota, std::optional<Algorithm> algorithm = {});

// phased()
//
// The same fixed window of a period, but its windows begin `phase_us` after multiples of the period since the epoch:
// so each key can have boundaries of its own. The phase is at least 0 and less than the period.
Result<Limit> phased(Limit limit, std::int64_t phase_us);

}  // namespace weir
