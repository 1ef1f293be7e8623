// Measures contestants side by side: they take turns, round after round, and the median of each counts.
//
// A shared machine is slow at times. Taking turns makes a slow time hit all contestants, so that ratios are right even
// if times are not. For the same reason the measured time is the processor time of the thread: the time of other
// processes does not count. So a contestant must not sleep. Call it from one thread; a contestant may use others.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weir::bench {

double median(std::vector<double> values);

// Processor time of this thread for the work, in nanoseconds.
double time_ns(const std::function<void()>& work);

class Contestant {
 public:
  // A round returns its own figure, such as nanoseconds per check.
  Contestant(std::string name, std::function<double()> round) : name_(std::move(name)), round_(std::move(round)) {}
  // A round makes `checks` checks, and the figure is nanoseconds per check.
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

// The times of single checks, in nanoseconds.
class Times {
 public:
  void add(std::chrono::nanoseconds time) {
    all_.push_back(static_cast<std::uint32_t>(std::clamp<std::int64_t>(time.count(), 0, UINT32_MAX)));
  }
  std::size_t count() const { return all_.size(); }
  double quantile_ns(double part) {
    if (all_.empty()) return 0;
    const auto place = static_cast<std::size_t>(part * static_cast<double>(all_.size() - 1));
    std::ranges::nth_element(all_, all_.begin() + static_cast<std::ptrdiff_t>(place));
    return all_[place];
  }

 private:
  std::vector<std::uint32_t> all_;
};

// Lets contestants take turns: one round to warm up, which does not count, then `rounds` that do.
template <class Taker, class... Arguments>
void alternate(const std::vector<Taker*>& takers, int rounds, const Arguments&... arguments) {
  for (int round = -1; round < rounds; ++round) {
    for (Taker* const taker : takers) {
      taker->turn(arguments...);
      if (round < 0) taker->forget();
    }
  }
}

}  // namespace weir::bench
