// A value that one thread replaces while many read it, without waiting on either side (RCU).
//
// A reader increments one of a few counters, copies the pointer and decrements the counter. The thread selects the
// counter, so readers rarely share one. The writer keeps a replaced value until it has seen every counter at zero:
// from then on no reader can still be about to copy it. The writer frees it at a later change, once its last user is
// gone, because freeing ten thousand rules is too much work for a request. (std::atomic<std::shared_ptr> spins in g++
// 12, and its load is a data race.) load() from any thread, store() from one at a time. Tested by
// tests/reload_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/stripe.h"

namespace weir::base {

template <class T>
class Snapshot {
 public:
  std::shared_ptr<const T> load() const {
    std::atomic<std::uint32_t>& readers = counters_[stripe_of_this_thread()].readers;
    readers.fetch_add(1);  // before reading the pointer; sequentially consistent
    std::shared_ptr<const T> value = current_.load()->value;
    readers.fetch_sub(1, std::memory_order_release);
    return value;
  }

  void store(std::shared_ptr<const T> value) {
    auto next = std::make_unique<Held>(Held{std::move(value), kAll});
    retired_.reserve(retired_.size() + 1);
    retired_.push_back(std::move(held_));
    held_ = std::move(next);
    current_.store(held_.get());
    collect();
  }

 private:
  static constexpr std::uint32_t kAll = (1U << kStripes) - 1;
  struct alignas(64) Counter {
    std::atomic<std::uint32_t> readers{0};
  };
  struct Held {
    std::shared_ptr<const T> value;
    std::uint32_t unseen = kAll;  // counters not yet seen at zero since the replacement
  };

  void collect() {
    std::uint32_t at_zero = 0;
    for (unsigned i = 0; i < kStripes; ++i) {
      if (counters_[i].readers.load() == 0) at_zero |= 1U << i;
    }
    std::erase_if(retired_, [at_zero](const std::unique_ptr<Held>& old) {
      old->unseen &= ~at_zero;
      return old->unseen == 0 && old->value.use_count() <= 1;
    });
  }

  std::unique_ptr<Held> held_ = std::make_unique<Held>();
  std::atomic<const Held*> current_{held_.get()};
  mutable std::array<Counter, kStripes> counters_;
  std::vector<std::unique_ptr<Held>> retired_;
};

}  // namespace weir::base
