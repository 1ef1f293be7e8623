// The circuit breaker of one Redis server. A few failures in a row open it, and answered probes close it again.
//
// While it is open, only occasional probes are sent. The wait between two probes is random, so that a fleet does not
// come back in step. Two answers in a row close it. If it opens again soon after a close, it requires eight times as
// many answers each time. So a bad network link does not make it flap. The next probe follows an answer immediately,
// so a good link supplies the answers within some milliseconds. Time is an argument, of the monotonic clock. One
// thread. Tested by breaker_test.cc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "redis/backoff.h"
#include "weir/clock.h"

namespace weir::fleet {

struct BreakerOptions {
  std::uint32_t failures_max = 3;  // failures in a row that open it
  std::uint32_t answers_min = 2;   // answers in a row that close it
  std::uint32_t answers_most = 128;
  Micros proven{20'000'000};  // a close that lasted this long was justified
  Micros probe_min{50'000};   // between two probes
  Micros probe_max{150'000};
};

class Breaker {
 public:
  // A seed of 0 means: seed from the system.
  explicit Breaker(const BreakerOptions& options = {}, std::uint64_t seed = 0)
      : options_(options), dice_(seed), answers_wanted_(options.answers_min) {}

  bool is_open() const { return is_open_; }
  // When the current state began; how often it has opened.
  Micros since() const { return since_; }
  std::uint64_t openings() const { return openings_; }

  // Whether a request may be sent now. If it is open: whether this request is the probe.
  bool lets_through(Micros now) {
    if (!is_open_) return true;
    if (is_probing_ || now < probe_at_) return false;
    is_probing_ = true;
    return true;
  }
  // When the next probe is due, even without traffic.
  Micros probe_at() const { return is_probing_ ? Micros::max() : probe_at_; }

  // Makes the next probe due now, for example after a new connection.
  void hurry(Micros now) { probe_at_ = now; }

  void succeed(Micros now) {
    failures_ = 0;
    if (!is_open_) return;
    is_probing_ = false;
    probe_at_ = now;  // the next probe may follow immediately
    if (++answers_ < answers_wanted_) return;
    is_open_ = false;
    since_ = now;
  }

  void fail(Micros now) {
    answers_ = 0;
    ++failures_;
    if (is_open_) return rest(now);
    if (failures_ >= options_.failures_max) open(now);
  }

  // Nothing can be sent at all, for example without a connection.
  void open(Micros now) {
    answers_ = 0;
    if (!is_open_) {
      const bool is_flapping = openings_ > 0 && now - since_ < options_.proven;
      answers_wanted_ = is_flapping ? std::min(answers_wanted_ * 8, options_.answers_most) : options_.answers_min;
      is_open_ = true;
      since_ = now;
      ++openings_;
    }
    rest(now);
  }

 private:
  void rest(Micros now) {
    is_probing_ = false;
    probe_at_ = now + dice_.between(options_.probe_min, options_.probe_max);
  }

  const BreakerOptions options_;
  redis::Dice dice_;
  bool is_open_ = false;
  bool is_probing_ = false;
  std::uint32_t failures_ = 0;
  std::uint32_t answers_ = 0;
  std::uint32_t answers_wanted_;
  std::uint64_t openings_ = 0;
  Micros since_{0};
  Micros probe_at_{0};
};

}  // namespace weir::fleet
