// The counts of all pipelines of a store, added up, and whether any circuit breaker is open now.
//
// Each pipeline adds its counts once per loop iteration, and reports when one of its breakers opens or closes. OnChange
// is called for the first that opens and the last that closes. Any thread. Tested by pipeline_totals_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fleet_counts.h"
#include "base/mutex.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::fleet {

class PipelineTotals {
 public:
  // Called when Redis becomes unavailable, with the last reason, and when it is back. Runs on a pipeline's thread; must
  // not block.
  using OnChange = std::function<void(bool is_down, std::string_view why)>;
  explicit PipelineTotals(OnChange on_change = {}) : on_change_(std::move(on_change)) {}

  // Adds what a pipeline counted since its last call.
  void add(const base::PipelineCounts& now, base::PipelineCounts& reported) {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const auto member = base::PipelineCounts::kMembers[i];
      if (now.*member == reported.*member) continue;
      sums_[i].fetch_add(now.*member - reported.*member, std::memory_order_relaxed);
      reported.*member = now.*member;
    }
  }

  // `more` more breakers are open; negative: fewer.
  void open(int more, std::string_view why, Micros now) {
    const base::MutexLock lock(mutex_);
    const bool was_down = open_ > 0;
    open_ += more;
    WEIR_ASSERT(open_ >= 0);
    is_down_.store(open_ > 0, std::memory_order_relaxed);
    if (!why.empty()) note(why, now);
    if (was_down == (open_ > 0)) return;
    since_ = now;
    if (on_change_) on_change_(open_ > 0, why_);
  }
  // A pipeline with `fewer` open breakers has ended. Does not call OnChange, because Redis is not back.
  void leave(int fewer) {
    const base::MutexLock lock(mutex_);
    open_ -= fewer;
    WEIR_ASSERT(open_ >= 0);
    is_down_.store(open_ > 0, std::memory_order_relaxed);
  }
  // Records the reason of a failure.
  void record_fault(std::string_view why, Micros now) {
    const base::MutexLock lock(mutex_);
    note(why, now);
  }

  base::PipelineCounts counts() const {
    base::PipelineCounts out;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      out.*base::PipelineCounts::kMembers[i] = sums_[i].load(std::memory_order_relaxed);
    }
    return out;
  }

  // Whether any breaker is open.
  bool is_down() const { return is_down_.load(std::memory_order_relaxed); }

  struct State {
    bool is_down = false;
    Micros since{0};    // monotonic; 0: since the start
    std::string why{};  // the last fault, however old
    Micros why_at{0};
  };
  State state() const {
    const base::MutexLock lock(mutex_);
    return {open_ > 0, since_, why_, why_at_};
  }

 private:
  void note(std::string_view why, Micros now) REQUIRES(mutex_) {
    why_ = why;
    why_at_ = now;
  }

  std::array<std::atomic<std::uint64_t>, base::PipelineCounts::kMembers.size()> sums_{};
  const OnChange on_change_;
  std::atomic<bool> is_down_{false};
  mutable base::Mutex mutex_;
  int open_ GUARDED_BY(mutex_) = 0;
  Micros since_ GUARDED_BY(mutex_){0};
  std::string why_ GUARDED_BY(mutex_);
  Micros why_at_ GUARDED_BY(mutex_){0};
};

}  // namespace weir::fleet
