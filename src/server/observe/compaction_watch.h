// Logs when a full log arena forces sliding_log keys into compact form, and when that ends.
//
// It logs one line at the beginning and one at the end, however many keys are affected. The state has ended when no
// key was converted for a minute. One thread. Tested by compaction_watch_test.cc and tests/server/full_arena.sh.
#pragma once

#include <cstdint>
#include <string>

#include "log/log.h"
#include "weir/limiter.h"

namespace weir::server::observe {

// Decides what to log. Pure.
class CompactionWatch {
 public:
  static constexpr Micros kQuiet{60'000'000};
  enum class Event : std::uint8_t { none, begins, ends };

  // Keys converted before this process started are not reported.
  explicit CompactionWatch(std::uint64_t count) : count_(count) {}

  Event look(std::uint64_t count, Micros now) {
    const bool is_more = count != count_;
    if (is_more && !is_on_) since_ = count_;
    count_ = count;
    if (is_more) last_ = now;
    if (is_more == is_on_ || (is_on_ && now - last_ < kQuiet)) return Event::none;
    is_on_ = is_more;
    return is_on_ ? Event::begins : Event::ends;
  }
  // Keys converted since the last Event::begins.
  std::uint64_t keys() const { return count_ - since_; }

 private:
  std::uint64_t count_, since_ = 0;
  Micros last_{0};
  bool is_on_ = false;
};

// Call it every second.
inline void log_compaction(CompactionWatch& news, const Limiter& limiter) {
  const CompactionWatch::Event now = news.look(limiter.stats().compacted, limiter.now());
  if (now == CompactionWatch::Event::begins) {
    log::log(log::LogLevel::warn, "log arena full, counting sliding_log clients in compact form",
             {{"fix", "raise --keys or --memory, or use sliding_window"}});
  } else if (now == CompactionWatch::Event::ends) {
    log::log(log::LogLevel::info, "no sliding_log client was compacted for 1 min",
             {{"compacted_keys", std::to_string(news.keys())}});
  }
}

}  // namespace weir::server::observe
