// Charges that Redis made for requests that this node denied, until they are undone.
//
//   undos.add({.key = key, .limit = limit, .cost = 3, .charged_us = when});
//   for (Undo& undo : undos.take(now, can_be_sent)) ... ask Redis ...
//   undos.finish(std::move(undo), state, is_in_doubt, now);
//
// An undo waits only for its own server, not for other servers of a cluster or for write-backs. An undo that was not
// executed is sent again a moment later. An undo that may have been executed is not sent again: executing it twice
// would free used permits. If a late reply says that Redis refused it, the store adds it again (doubt.h). A
// reservation is settled only once, so its undo can always be sent again. Bounded: beyond the bound, charges stay.
// Any thread. Tested by tests/fleet_seam_step_test.cc and tests/fleet_faults_failover_test.cc.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "fleet/script_call.h"
#include "weir/verdict.h"

namespace weir::fleet {

struct Undo {
  What what = What::charge;  // the call that charged it
  std::string key{};
  Limit limit{};
  std::int64_t cost = 0;
  std::string id{};
  std::int64_t charged_us = 0;
  Micros at{0};  // monotonic: not sent earlier

  bool is_reserved() const { return what == What::reserve; }
  // The call that undoes it.
  What asks() const { return is_reserved() ? What::commit : What::undo; }
  Charge charge() const { return {.key = key, .limit = &limit, .cost = is_reserved() ? 0 : cost}; }
};

class Undos {
 public:
  void add(Undo undo) {
    const base::MutexLock lock(mutex_);
    if (waiting_.size() >= kMost) return;
    waiting_.push_back(std::move(undo));
    has_some_.store(true);
  }

  // The undos that are due and can be sent now.
  template <class CanBeSent>
  std::vector<Undo> take(Micros now, CanBeSent can_be_sent) {
    std::vector<Undo> out;
    if (!has_some_.load()) return out;
    const base::MutexLock lock(mutex_);
    std::erase_if(waiting_, [&](Undo& one) {
      if (one.at > now || !can_be_sent(one)) return false;
      out.push_back(std::move(one));
      return true;
    });
    has_some_.store(!waiting_.empty());
    return out;
  }

  // Returns whether it is undone.
  bool finish(Undo undo, State state, bool is_in_doubt, Micros now) {
    if (state == State::failed && (!is_in_doubt || undo.is_reserved())) {
      undo.at = now + kAgain;
      add(std::move(undo));
    }
    if (state == State::answered) done_.fetch_add(1, std::memory_order_relaxed);
    return state == State::answered;
  }

  // When the next undo after `now` is due. An undo that is already due and cannot be sent waits for its server to
  // come back.
  Micros due(Micros now) const {
    Micros first = Micros::max();
    if (!has_some_.load()) return first;
    const base::MutexLock lock(mutex_);
    for (const Undo& one : waiting_) {
      if (one.at > now) first = std::min(first, one.at);
    }
    return first;
  }
  std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kMost = 10'000;
  static constexpr Micros kAgain{20'000};

  std::atomic<bool> has_some_{false};
  std::atomic<std::uint64_t> done_{0};
  mutable base::Mutex mutex_;
  std::vector<Undo> waiting_ GUARDED_BY(mutex_);
};

}  // namespace weir::fleet
