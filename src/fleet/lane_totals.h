// What all lanes of a store have counted together, and whether Redis is asked now.
//
// Lanes add to it what they counted, a turn at a time, and say when a breaker of theirs opens or shuts; the first that
// opens and the last that shuts are told on. Any thread. Tested by lane_totals_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "weir/clock.h"

namespace weir {

struct LaneCounts {
  std::uint64_t asks = 0;      // submitted
  std::uint64_t calls = 0;     // sent
  std::uint64_t answered = 0;  // asks
  std::uint64_t failed = 0;    // asks
  std::uint64_t refused = 0;   // asks: the server said no to the question itself
  std::uint64_t timeouts = 0;  // asks
  std::uint64_t late = 0;      // calls that the script refused
  std::uint64_t crowded = 0;   // asks that found no room, or too many before them
  std::uint64_t openings = 0;  // of the breaker
  std::uint64_t connects = 0;  // to a server of Redis

  static constexpr std::array kMembers = {
      &LaneCounts::asks,     &LaneCounts::calls, &LaneCounts::answered, &LaneCounts::failed,   &LaneCounts::refused,
      &LaneCounts::timeouts, &LaneCounts::late,  &LaneCounts::crowded,  &LaneCounts::openings, &LaneCounts::connects};
};
static_assert(sizeof(LaneCounts) == sizeof(std::uint64_t) * 10, "kMembers has them all");

class LaneTotals {
 public:
  // Told when Redis is away, with the last reason, and when it is back. On the thread of a lane; it must not wait.
  using OnChange = std::function<void(bool is_away, std::string_view why)>;
  explicit LaneTotals(OnChange on_change = {}) : on_change_(std::move(on_change)) {}
  LaneTotals(const LaneTotals&) = delete;
  LaneTotals& operator=(const LaneTotals&) = delete;

  // What was counted since a lane told the last time.
  void add(const LaneCounts& now, LaneCounts& told) {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const auto member = LaneCounts::kMembers[i];
      if (now.*member == told.*member) continue;
      sums_[i].fetch_add(now.*member - told.*member, std::memory_order_relaxed);
      told.*member = now.*member;
    }
  }

  // By so many breakers more, or fewer, are open.
  void open(int more, std::string_view why, Micros now) {
    const std::lock_guard lock(mutex_);
    const bool was_away = open_ > 0;
    open_ += more;
    is_away_.store(open_ > 0, std::memory_order_relaxed);
    if (!why.empty()) note(why, now);
    if (was_away == (open_ > 0)) return;
    since_ = now;
    if (on_change_) on_change_(open_ > 0, why_);
  }
  // The lane of so many open breakers has ended. Nobody is told: Redis is not back.
  void leave(int fewer) {
    const std::lock_guard lock(mutex_);
    open_ -= fewer;
    is_away_.store(open_ > 0, std::memory_order_relaxed);
  }
  // Why something has failed just now.
  void blame(std::string_view why, Micros now) {
    const std::lock_guard lock(mutex_);
    note(why, now);
  }

  LaneCounts counts() const {
    LaneCounts out;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      out.*LaneCounts::kMembers[i] = sums_[i].load(std::memory_order_relaxed);
    }
    return out;
  }

  // Whether any breaker is open.
  bool is_away() const { return is_away_.load(std::memory_order_relaxed); }

  struct State {
    bool is_away = false;
    Micros since{0};    // monotonic; 0: from the beginning
    std::string why{};  // the last fault, however long ago
    Micros why_at{0};
  };
  State state() const {
    const std::lock_guard lock(mutex_);
    return {open_ > 0, since_, why_, why_at_};
  }

 private:
  void note(std::string_view why, Micros now) {
    why_ = why;
    why_at_ = now;
  }

  std::array<std::atomic<std::uint64_t>, LaneCounts::kMembers.size()> sums_{};
  const OnChange on_change_;
  std::atomic<bool> is_away_{false};
  mutable std::mutex mutex_;  // guards what follows
  int open_ = 0;
  Micros since_{0};
  std::string why_;
  Micros why_at_{0};
};

}  // namespace weir
