// The queue of calls that wait for permits: one line per key, served in order of arrival by one thread.
//
// Only the first waiter of a line tries to charge its key, at the time that its last denial named. Waiters behind it
// do not try before. Nothing is charged in advance, so a waiter that gives up leaves nothing behind. The exception is
// the leaky bucket, which is a line itself: there a waiter is charged at once and waits out its delay. If it is
// cancelled meanwhile, its permits are refunded. Callers that charge the key without waiting, in this or another
// process, may come in between; then the first waiter tries again later.
//
// The thread starts with the first call that has to wait. Keys are charged with the lock held, one call of the store
// at a time, and the longest-waiting thread gets the lock next. So a fiber that waits or cancels blocks its thread
// for as long as one store call takes. Callbacks run without a lock. Any thread may call any member. A child process
// after a fork lacks the thread: there, no call can wait, and the queue must not be destroyed. Tested by
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

#include "base/mutex.h"
#include "weir/limiter.h"

namespace weir::limiter {

inline constexpr std::size_t kWaitersMax = 1'000'000;

class WaitQueue {
 public:
  // Charges one key as the store does, and never throws.
  using ChargeNow = std::function<Result<Decision>(const Charge& charge, std::int64_t now)>;

  // The clock must outlive close().
  WaitQueue(std::size_t waiters_max, const Clock& clock, ChargeNow charge_now);
  ~WaitQueue() { close(); }
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;

  // wait()
  //
  // Runs the callback once: before it returns, and then returns 0, or later on this queue's thread.
  WaitId wait(const Charge& charge, Micros deadline, WaitCallback callback) noexcept;

  // cancel()
  //
  // True if this call was waiting. It is charged nothing, and cancel() has run its callback with an error.
  bool cancel(WaitId id) noexcept;

  // hurry()
  //
  // Call this when a key was refunded or reset. The first waiter of each of its lines tries again now.
  void hurry(std::string_view key) noexcept;

  // close()
  //
  // Ends the thread and runs every callback with an error. Later calls get that error, too.
  void close() noexcept;

  std::size_t size() const noexcept { return waiting_.load(std::memory_order_relaxed); }

  // Whether the caller is a callback on this queue's thread, which must not block.
  bool is_own_thread() const noexcept;

 private:
  struct Waiter {
    std::string key{};
    Limit limit{};
    std::int64_t cost = 0;
    std::int64_t deadline_us = 0;
    std::int64_t timer_us = 0;                 // when to look at it next
    bool is_charged = false;                   // leaky bucket: left the line, only waits out its delay
    bool must_refund = false;                  // its charge must be refunded before the callback runs
    std::optional<Result<Decision>> before{};  // result of peek_before(), kept between two looks
    std::optional<Result<Decision>> answer{};
    WaitCallback callback{};
  };
  using Waiters = std::map<WaitId, Waiter>;  // in order of arrival

  // A key has one line per algorithm, because it has one state per algorithm.
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
    std::int64_t cost = 0;        // the sum of all costs
    std::int64_t first_turn = 0;  // when the first can be admitted, in microseconds, if nothing else charges the key
  };
  using Lines = std::map<std::pair<Algorithm, std::string>, Line, LineLess>;

  bool is_forked() const;
  struct Try;  // the result of an attempt
  // A thread that waits for mutex_ gets it before threads that come later. Otherwise the queue's thread, which takes it
  // again and again, could overtake others.
  class SCOPED_CAPABILITY Turn {
   public:
    explicit Turn(const WaitQueue& queue) ACQUIRE(queue.mutex_) : lock_(queue.mutex_, std::defer_lock) {
      const base::MutexLock next(queue.next_);
      lock_.lock();
    }
    ~Turn() RELEASE() = default;

   private:
    std::unique_lock<std::mutex> lock_;
  };
  std::optional<Result<Decision>> peek_before(const Charge& charge, std::int64_t now) const;
  Try attempt(const Charge& charge, std::int64_t deadline_us, std::int64_t now,
              const std::optional<Result<Decision>>& before) REQUIRES(mutex_);
  Try stand_behind(const Line& line, const Charge& charge, std::int64_t deadline_us, std::int64_t now) REQUIRES(mutex_);
  std::optional<Result<Decision>> join(WaitId id, const Charge& charge, std::int64_t deadline_us,
                                       const std::optional<Result<Decision>>& before, WaitCallback& callback,
                                       bool& must_refund) REQUIRES(mutex_);
  void add(WaitId id, const Charge& charge, std::int64_t deadline_us, const Try& tried) REQUIRES(mutex_);
  void leave_line(WaitId id, const Waiter& waiter) REQUIRES(mutex_);
  void finish(Waiters::iterator place, Result<Decision> answer, Waiters& done) REQUIRES(mutex_);
  void set_timer(WaitId id, Waiter& waiter, std::int64_t timer_us) REQUIRES(mutex_);
  void refund(const Charge& charge) EXCLUDES(mutex_);
  void answer_all(Waiters& done) EXCLUDES(mutex_);
  void hurry_line(const LineName& name) REQUIRES(mutex_);
  Result<Decision> denial(const Charge& charge, std::int64_t turn_us, std::int64_t now) REQUIRES(mutex_);
  void look_at(WaitId id, std::int64_t now, Waiters& done) REQUIRES(mutex_);
  Micros serve_one(Waiters& done) REQUIRES(mutex_);
  void serve();

  const std::size_t waiters_max_;
  const Clock& clock_;
  const ChargeNow charge_now_;
  const int process_;  // a forked child has no thread, and perhaps a mutex that stays locked
  Sleeper sleeper_;
  std::atomic<std::size_t> waiting_{0};        // the size of waiters_
  std::atomic<std::thread::id> own_thread_{};  // thread_, while it serves

  mutable base::Mutex next_;  // held by the thread that waits for mutex_ next: see Turn
  mutable base::Mutex mutex_;
  bool closed_ GUARDED_BY(mutex_) = false;
  WaitId last_id_ GUARDED_BY(mutex_) = 0;
  Waiters waiters_ GUARDED_BY(mutex_);
  Lines lines_ GUARDED_BY(mutex_);
  std::set<std::pair<std::int64_t, WaitId>> timers_ GUARDED_BY(mutex_);
  std::thread thread_ GUARDED_BY(mutex_);
};

// wait_here()
//
// Blocks until the queue runs the callback. The queue may be closed meanwhile; the caller keeps nothing else of it.
Result<Decision> wait_here(std::shared_ptr<WaitQueue> queue, const Charge& charge, Micros deadline,
                           const std::stop_token& stop) noexcept;

}  // namespace weir::limiter
