// The rows that were refused: told once each, but never so many at once that nothing else can be read; and the last
// of them to be looked at.
//
// A table in which all rows are wrong is told as a few of them and a number. A subject whose row is right again is
// forgotten, and told again when it goes wrong again. Any thread. Tested by refusals_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "plans/plan_directory.h"
#include "weir/clock.h"

namespace weir {

class Refusals {
 public:
  using Tell = std::function<void(const PlanEvent&)>;
  explicit Refusals(Tell tell) : tell_(std::move(tell)) {}

  void refuse(std::string_view subject, std::string_view message, Micros now);
  void accept(std::string_view subject);
  void tell_the_rest(Micros now);  // how many were refused and not told, when it is time to

  std::vector<PlanEvent> last() const;
  std::uint64_t total() const;

 private:
  const Tell tell_;
  mutable std::mutex mutex_;  // guards all below
  std::deque<PlanEvent> last_;
  std::uint64_t total_ = 0, untold_ = 0;
  std::size_t told_ = 0;  // since then
  Micros since_{0};
};

}  // namespace weir
