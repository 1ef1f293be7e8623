// Assigns each thread one of a few copies of something, so that threads rarely contend.
//
// Threads are numbered in order of their first use: up to sixteen never share a copy. Any thread. Tested through
// tests/reload_test.cc and tests/rule_counts_test.cc.
#pragma once

#include <atomic>

namespace weir::base {

inline constexpr unsigned kStripes = 16;

inline unsigned stripe_of_this_thread() {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned own = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
  return own;
}

}  // namespace weir::base
