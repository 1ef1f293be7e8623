// Reads the clock of the thread twice per round. See rounds.h.
#include "kit/rounds.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace weir::bench {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

namespace {

double thread_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace

double time_ns(const std::function<void()>& work) {
  const double begin = thread_ns();
  work();
  return thread_ns() - begin;
}

Contestant::Contestant(std::string name, std::size_t checks, std::function<void()> round)
    : Contestant(std::move(name),
                 [checks, work = std::move(round)] { return time_ns(work) / static_cast<double>(checks); }) {}

}  // namespace weir::bench
