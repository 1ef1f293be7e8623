// Timing side by side: all contestants take turns, round after round, and the median of each counts.
//
// A shared machine is slow in spells; turns make a spell hit all alike, so that ratios hold where times do not. For the
// same reason time is what the thread had of its core: what others use of it meanwhile is not counted. So a contestant
// must not sleep. Call from one thread; a contestant may use others.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace weir::bench {

double median(std::vector<double> values);

// Nanoseconds that the work keeps this thread running.
double time_ns(const std::function<void()>& work);

class Contestant {
 public:
  // A round gives its own figure, such as nanoseconds a check.
  Contestant(std::string name, std::function<double()> round) : name_(std::move(name)), round_(std::move(round)) {}
  // A round is `checks` checks, and the figure is nanoseconds for each.
  Contestant(std::string name, std::size_t checks, std::function<void()> round);

  const std::string& name() const { return name_; }
  void turn() { figures_.push_back(round_()); }
  double figure() const { return median(figures_); }
  void forget() { figures_.clear(); }

 private:
  std::string name_;
  std::function<double()> round_;
  std::vector<double> figures_;
};

// One round to warm up, which does not count, then `rounds` that do.
void alternate(std::span<Contestant* const> contestants, int rounds);

}  // namespace weir::bench
