// Those who wait for a permit: one line a key, served in order of arrival by one thread that sleeps in between.
//
// Only the first of a line tries to charge its key, at the time that its last denial named; who stands behind it is
// not asked before. Nothing is charged ahead, so who gives up leaves nothing behind; but for the leaky bucket, which
// is itself the line: there a waiter is charged at once, waits out its delay, and gives its permits back if it is
// cancelled meanwhile. Others who charge the key without waiting, here or in another process, may come in between:
// then the first tries again later.
//
// The thread starts with the first who has to wait. Keys are charged with the lock held, one call of the store at a
// time, and the lock goes to whoever waited longest: so a fiber that waits or cancels makes its thread wait for the
// store as long as one call takes. Callbacks are made without a lock. All members may be called from any thread. In a
// child after a fork, where the thread is missing, nobody can wait, and the queue must not be destroyed. Tested by
// wait_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "weir/limiter.h"

namespace weir {

inline constexpr std::size_t kWaitersMax = 1'000'000;

class WaitQueue {
 public:
  // Charges one key as the store does, and never throws.
  using ChargeNow = std::function<Result<Decision>(const Charge& charge, std::int64_t now)>;

  // The clock outlives close().
  WaitQueue(std::size_t waiters_max, const Clock& clock, ChargeNow charge_now);
  ~WaitQueue() { close(); }
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;

  // wait()
  //
  // Calls back once: before it returns, and then answers 0, or later on the thread of this queue.
  WaitId wait(const Charge& charge, Micros deadline, WaitCallback callback) noexcept;

  // cancel()
  //
  // True if this one was waiting: it is charged nothing and was called back with an error, by this call.
  bool cancel(WaitId id) noexcept;

  // hurry()
  //
  // The key was given permits: whoever is first in its lines tries again now.
  void hurry(std::string_view key) noexcept;

  // close()
  //
  // Ends the thread and calls everybody back with an error; who comes later gets it, too.
  void close() noexcept;

  std::size_t size() const noexcept { return waiting_.load(std::memory_order_relaxed); }

  // Whether the caller is in a callback made by this queue's thread, which must not be made to wait.
  bool is_own_thread() const noexcept;

 private:
  struct Waiter {
    std::string key{};
    Limit limit{};
    std::int64_t cost = 0;
    std::int64_t deadline_us = 0;
    std::int64_t timer_us = 0;                 // when it is looked at next
    bool is_charged = false;                   // leaky bucket: in no line any more, only waits out its delay
    bool owes = false;                         // what it was charged is to be given back before it is answered
    std::optional<Result<Decision>> before{};  // what peek_before() said, between two looks at it
    std::optional<Result<Decision>> answer{};
    WaitCallback callback{};
  };
  using Waiters = std::map<WaitId, Waiter>;  // in order of arrival

  // A key has one line for each algorithm, as it has one state.
  using LineName = std::pair<Algorithm, std::string_view>;
  struct LineLess {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return a.first != b.first ? a.first < b.first : std::string_view(a.second) < std::string_view(b.second);
    }
  };
  struct Line {
    std::set<WaitId> ids{};       // the first of them tries
    std::int64_t cost = 0;        // of all of them
    std::int64_t first_turn = 0;  // when the first can get its permits, in microseconds, if nobody comes in between
  };
  using Lines = std::map<std::pair<Algorithm, std::string>, Line, LineLess>;

  bool is_forked() const;
  struct Try;  // what an attempt came to
  std::unique_lock<std::mutex> enter() const;
  std::optional<Result<Decision>> peek_before(const Charge& charge, std::int64_t now) const;
  Try attempt(const Charge& charge, std::int64_t deadline_us, std::int64_t now,
              const std::optional<Result<Decision>>& before);
  Try stand_behind(const Line& line, const Charge& charge, std::int64_t deadline_us, std::int64_t now);
  std::optional<Result<Decision>> join(WaitId id, const Charge& charge, std::int64_t deadline_us,
                                       const std::optional<Result<Decision>>& before, WaitCallback& callback,
                                       bool& owes);
  void add(WaitId id, const Charge& charge, std::int64_t deadline_us, const Try& tried);
  void leave_line(WaitId id, const Waiter& waiter);
  void finish(Waiters::iterator place, Result<Decision> answer, Waiters& done);
  void set_timer(WaitId id, Waiter& waiter, std::int64_t timer_us);
  void give_back(const Charge& charge);
  void answer_all(Waiters& done);
  void hurry_line(const LineName& name);
  Result<Decision> denial(const Charge& charge, std::int64_t turn_us, std::int64_t now);
  void look_at(WaitId id, std::int64_t now, Waiters& done);
  Micros serve_one(Waiters& done);
  void serve();

  const std::size_t waiters_max_;
  const Clock& clock_;
  const ChargeNow charge_now_;
  const int process_;  // a child after a fork has no thread, and perhaps a mutex that nobody unlocks
  Sleeper sleeper_;
  std::atomic<std::size_t> waiting_{0};  // the size of waiters_

  mutable std::mutex turn_;   // of whoever waits for the next: see enter()
  mutable std::mutex mutex_;  // guards all below
  bool closed_ = false;
  WaitId last_id_ = 0;
  Waiters waiters_;
  Lines lines_;
  std::set<std::pair<std::int64_t, WaitId>> timers_;
  std::thread thread_;
};

// wait_here()
//
// Blocks until the queue calls back. The queue may be closed meanwhile; the caller keeps nothing else of it.
Result<Decision> wait_here(std::shared_ptr<WaitQueue> queue, const Charge& charge, Micros deadline,
                           const std::stop_token& stop) noexcept;

}  // namespace weir
