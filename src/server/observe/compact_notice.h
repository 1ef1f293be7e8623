// Logs when a full log arena forces sliding_log keys into compact form, and when that ends.
//
// It logs one line at the beginning and one at the end, however many keys are affected. The state has ended when no
// key was converted for a minute. A thread of its own checks the limiter's counter every second, from construction to
// destruction. Tested by compact_notice_test.cc and tests/server/full_arena.sh.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "log/log.h"
#include "weir/limiter.h"

namespace weir {

// Decides what to log. Pure.
class CompactNews {
 public:
  static constexpr Micros kQuiet{60'000'000};
  enum class News : std::uint8_t { none, begins, ends };

  // Keys converted before this process started are not reported.
  explicit CompactNews(std::uint64_t count) : count_(count) {}

  News look(std::uint64_t count, Micros now) {
    const bool is_more = count != count_;
    if (is_more && !is_on_) since_ = count_;
    count_ = count;
    if (is_more) last_ = now;
    if (is_more == is_on_ || (is_on_ && now - last_ < kQuiet)) return News::none;
    is_on_ = is_more;
    return is_on_ ? News::begins : News::ends;
  }
  // Keys converted since the current or last beginning.
  std::uint64_t keys() const { return count_ - since_; }

 private:
  std::uint64_t count_, since_ = 0;
  Micros last_{0};
  bool is_on_ = false;
};

class CompactNotice {
 public:
  // The limiter must outlive it.
  explicit CompactNotice(const Limiter& limiter)
      : thread_([&limiter](const std::stop_token& stop) { watch(limiter, stop); }) {}

 private:
  static void watch(const Limiter& limiter, const std::stop_token& stop) {
    CompactNews news(limiter.stats().compacted);
    std::mutex mutex;
    std::condition_variable_any nothing;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      nothing.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
      const CompactNews::News now = news.look(limiter.stats().compacted, limiter.now());
      if (now == CompactNews::News::begins) {
        log(LogLevel::warn, "log arena full, counting sliding_log clients in compact form",
            {{"fix", "raise --keys or --memory, or use sliding_window"}});
      } else if (now == CompactNews::News::ends) {
        log(LogLevel::info, "log arena has free blocks again", {{"compacted_keys", std::to_string(news.keys())}});
      }
    }
  }

  std::jthread thread_;
};

}  // namespace weir
