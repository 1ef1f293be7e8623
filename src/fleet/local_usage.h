// How much of a key is used on this node's share, and in which order charges and refunds have changed it.
//
// Threads report what is used after their change, and the reports arrive in another order than the changes were made.
// Charges only need the latest report of about the same time: the largest one. But a refund lowers what is used, so the
// order matters. RefundOrder counts the refunds of a key around each change. That orders every change exactly, unless
// it overlaps with a refund. Any thread. Tested by unsynced_charges_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "fleet/key_name.h"
#include "weir/clock.h"

namespace weir::fleet {

// The number of refunds that precede a change, itself included: at least `least`, at most `most`. The numbers wrap
// around.
struct RefundCount {
  std::uint32_t least = 0, most = 0;

  bool is_before(const RefundCount& other) const { return is_less(most, other.least); }
  bool is_exact() const { return least == most; }
  static bool is_less(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }
};

// Counts refunds by key, with few counters: keys that share one look as if they overlapped.
class RefundOrder {
  struct Counter {
    std::atomic<std::uint32_t> begun{0}, ended{0};
  };

 public:
  // A change of what is used. Make this before the change, and call end() after it.
  class Change {
   public:
    Change(RefundOrder& order, KeyMark mark, bool is_refund)
        : counter_(&order.counters_[static_cast<std::uint64_t>(mark) % kCounters]),
          ended_(counter_->ended.load()),
          is_refund_(is_refund) {
      if (is_refund_) counter_->begun.fetch_add(1);
    }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    ~Change() {
      if (is_refund_) counter_->ended.fetch_add(1);
    }
    RefundCount end() {
      const std::uint32_t begun = counter_->begun.load();
      if (!std::exchange(is_refund_, false)) return {ended_, begun};
      counter_->ended.fetch_add(1);
      return {ended_ + 1, begun};
    }

   private:
    Counter* counter_;
    std::uint32_t ended_;
    bool is_refund_;
  };

 private:
  static constexpr std::size_t kCounters = 256;
  std::array<Counter, kCounters> counters_{};
};

// How much of a key was still used on this node, after a change.
struct LocalUsage {
  std::int64_t most = INT64_MAX;  // negative: at least ~most
  Micros at{0};                   // of the monotonic clock, shortly before the change
  RefundCount refunds{};

  // At least this much is used. More may be, if a higher version of the limit admitted it.
  static LocalUsage at_least(std::int64_t used, RefundCount refunds) { return {~used, Micros{0}, refunds}; }

  bool is_known() const { return most != INT64_MAX; }
  bool is_least() const { return most < 0; }
  std::int64_t least() const { return is_least() ? ~most : most; }
  bool is_before(const LocalUsage& other) const { return refunds.is_before(other.refunds); }

  // take()
  //
  // Becomes the later of both. If their order is unknown, the larger one: of two charges at nearly the same time, and
  // of changes that overlap with a refund. One that is only known to be at least some amount lowers nothing.
  void take(const LocalUsage& other) {
    constexpr Micros kNearly{100'000};
    if (other.is_least()) {
      if (is_known()) most = std::max(most, other.least());
      return;
    }
    if (!is_known() || is_before(other)) {
      *this = other;
    } else if (other.is_before(*this)) {
      return;
    } else if (!refunds.is_exact() || !other.refunds.is_exact()) {
      const auto later = [](std::uint32_t a, std::uint32_t b) { return RefundCount::is_less(a, b) ? b : a; };
      *this = {std::max(most, other.most),
               std::max(at, other.at),
               {later(refunds.least, other.refunds.least), later(refunds.most, other.refunds.most)}};
    } else if (other.at - at >= kNearly) {
      *this = other;
    } else if (at - other.at < kNearly) {
      *this = {std::max(most, other.most), std::max(at, other.at), refunds};
    }
  }
};

}  // namespace weir::fleet
