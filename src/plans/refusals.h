// Refused rows: reports each one once, with a bounded number of reports, and keeps the last ones for inspection.
//
// If all rows of a table are invalid, a few are reported and the rest as a number. A subject whose row becomes valid
// is removed, and reported again if the row becomes invalid again. Any thread may call it. Tested by
// refusals_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "plans/plan_directory.h"
#include "weir/clock.h"

namespace weir::plans {

class Refusals {
 public:
  using Report = std::function<void(const PlanEvent&)>;
  explicit Refusals(Report report) : report_(std::move(report)) {}

  void refuse(std::string_view subject, std::string_view message, Micros now);
  void accept(std::string_view subject);
  void report_rest(Micros now);  // reports the number of unreported refusals when it is due

  std::vector<PlanEvent> last() const;
  std::uint64_t total() const;

 private:
  const Report report_;
  mutable base::Mutex mutex_;
  std::deque<PlanEvent> last_ GUARDED_BY(mutex_);
  std::uint64_t total_ GUARDED_BY(mutex_) = 0, untold_ GUARDED_BY(mutex_) = 0;
  std::size_t told_ GUARDED_BY(mutex_) = 0;  // since since_
  Micros since_ GUARDED_BY(mutex_){0};
};

}  // namespace weir::plans
