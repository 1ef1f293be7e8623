// See wait_queue.h. The queue's own thread does not allocate, because it could report a failure to no caller.

#include "limiter/wait_queue.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <new>
#include <system_error>

#include "algorithm/division.h"
#include "base/fiber.h"

namespace weir::limiter {
namespace {

constexpr std::int64_t kDue = INT64_MIN;  // a timer that has fired

// An error whose text may not fit into the remaining memory.
Result<Decision> refusal(ErrorCode code, const char* text) noexcept {
  try {
    return fail(code, text);
  } catch (const std::bad_alloc&) {
    return fail(code, "no memory");  // short enough to need none
  }
}

std::int64_t saturate(algorithm::Wide value) {
  return value > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(value);
}

// The shortest possible wait after the first waiter of a line has passed, if `cost` permits must pass after it. `first`
// is the cost of that first waiter. Exact for buckets, never too long for the others.
algorithm::Wide soonest_after(const Limit& limit, std::int64_t first, std::int64_t cost) {
  const algorithm::Wide whole = algorithm::Wide{first} + cost - 1;
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::leaky_meter:
    case Algorithm::leaky_bucket:
      return algorithm::Wide{cost} * limit.weight / limit.rate;
    case Algorithm::fixed_window:  // the first waits for the start of a window
    case Algorithm::sliding_log:
      return whole / limit.permits * limit.period_us;
    case Algorithm::sliding_window:  // the first may pass late in a window
      return std::max<algorithm::Wide>(whole / limit.permits - 1, 0) * limit.period_us;
    case Algorithm::concurrency:
      break;
  }
  return 0;
}

}  // namespace

struct WaitQueue::Try {
  enum class Outcome { answered, charged, must_wait };
  Outcome outcome = Outcome::must_wait;
  std::optional<Result<Decision>> answer{};  // unless must_wait
  std::int64_t timer_us = 0;                 // charged: when it passes; must_wait: when to look again
  std::int64_t turn_us = 0;                  // must_wait: when the permits can be available
  bool must_refund = false;                  // denied, but charged: to be refunded without the lock
};

WaitQueue::WaitQueue(std::size_t waiters_max, const Clock& clock, ChargeNow charge_now)
    : waiters_max_(std::min(waiters_max, kWaitersMax)),
      clock_(clock),
      charge_now_(std::move(charge_now)),
      process_(getpid()) {}

WaitId WaitQueue::wait(const Charge& charge, Micros deadline, WaitCallback callback) noexcept {
  std::optional<Result<Decision>> answer;
  WaitId id = 0;
  bool must_refund = false;
  try {
    if (is_forked()) {
      answer = refusal(ErrorCode::unavailable, "this limiter was opened before fork(): open it again to wait");
    } else {
      const auto before = peek_before(charge, clock_.now().count());
      const base::Fibers::Pinned pinned;
      const Turn turn(*this);
      id = ++last_id_;
      waiting_.store(waiters_.size() + 1);  // before the charge: a concurrent refund must see this waiter
      answer = join(id, charge, deadline.count(), before, callback, must_refund);
      waiting_.store(waiters_.size(), std::memory_order_relaxed);
    }
  } catch (const std::bad_alloc&) {
    answer = refusal(ErrorCode::exhausted, "out of memory");
  } catch (const std::system_error&) {
    answer = refusal(ErrorCode::unavailable, "cannot start the thread that serves waiting callers");
  }
  if (must_refund) refund(charge);
  if (!answer) return id;
  callback(*std::move(answer));
  return 0;
}

// A leaky bucket charges every caller that may wait, so this peeks first how long the wait would be. Returns nothing
// for the other algorithms.
std::optional<Result<Decision>> WaitQueue::peek_before(const Charge& charge, std::int64_t now) const {
  const bool queues = charge.limit->algorithm == Algorithm::leaky_bucket;
  if (!queues || charge.cost > charge.limit->capacity) return std::nullopt;
  return charge_now_({charge.key, charge.limit, 0}, now);
}

// Returns nothing if the caller must wait; the waiter then owns the callback.
std::optional<Result<Decision>> WaitQueue::join(WaitId id, const Charge& charge, std::int64_t deadline_us,
                                                const std::optional<Result<Decision>>& before, WaitCallback& callback,
                                                bool& must_refund) {
  if (closed_) return refusal(ErrorCode::unavailable, "the limiter is closing and accepts no new waits");
  const std::int64_t now = clock_.now().count();
  deadline_us = std::max(deadline_us, now);  // permits available now go to a past deadline, too
  const auto line = lines_.find(LineName{charge.limit->algorithm, charge.key});
  const bool is_first = line == lines_.end() || charge.cost > charge.limit->capacity;  // or denied forever
  Try tried =
      is_first ? attempt(charge, deadline_us, now, before) : stand_behind(line->second, charge, deadline_us, now);
  must_refund = tried.must_refund;
  if (tried.outcome == Try::Outcome::answered) return std::move(tried.answer);
  try {
    if (waiters_.size() >= waiters_max_) {
      must_refund = tried.outcome == Try::Outcome::charged;
      return fail(ErrorCode::exhausted, "the maximum of " + std::to_string(waiters_max_) +
                                            " waiting callers is reached; raise waiters_max, or try again later");
    }
    add(id, charge, deadline_us, tried);
  } catch (...) {
    if (const auto place = waiters_.find(id); place != waiters_.end()) {
      Waiters dropped;
      finish(place, refusal(ErrorCode::exhausted, "out of memory"), dropped);
    }
    must_refund = tried.outcome == Try::Outcome::charged;
    throw;
  }
  waiters_.find(id)->second.callback = std::move(callback);
  sleeper_.wake();
  return std::nullopt;
}

// Tries to charge the first waiter of a line: one store call. `before` is the result of peek_before().
WaitQueue::Try WaitQueue::attempt(const Charge& charge, std::int64_t deadline_us, std::int64_t now,
                                  const std::optional<Result<Decision>>& before) {
  const Micros wait_max{std::max<std::int64_t>(deadline_us - now, 0)};
  const auto answered = [](Result<Decision> answer) {
    return Try{.outcome = Try::Outcome::answered, .answer = std::move(answer)};
  };
  const auto too_late = [&](Decision decision, Micros wait) {
    decision.allowed = false;
    decision.retry_after = wait;
    decision.delay = Micros{0};
    return answered(decision);
  };
  const bool queues = charge.limit->algorithm == Algorithm::leaky_bucket;
  if (before && *before && (*before)->delay > wait_max) return too_late(**before, (*before)->delay);
  Result<Decision> taken = charge_now_(charge, now);
  if (!taken) return answered(std::move(taken));
  if (taken->allowed) {
    const Micros delay = std::exchange(taken->delay, Micros{0});
    if (delay > wait_max) {  // another caller came in between
      Try late = too_late(*taken, delay);
      late.must_refund = true;
      return late;
    }
    if (delay == Micros{0}) return answered(std::move(taken));
    return {.outcome = Try::Outcome::charged, .answer = std::move(taken), .timer_us = now + delay.count()};
  }
  if (taken->retry_after == kNever) return answered(std::move(taken));
  const Micros wait = queues ? taken->reset_after : taken->retry_after;  // leaky bucket: all before it drain first
  if (wait > wait_max) return too_late(*taken, wait);
  const std::int64_t again = std::max<std::int64_t>(taken->retry_after.count(), 1);
  return {.timer_us = now + again, .turn_us = now + wait.count()};
}

// For a waiter that comes when others are waiting already.
WaitQueue::Try WaitQueue::stand_behind(const Line& line, const Charge& charge, std::int64_t deadline_us,
                                       std::int64_t now) {
  const std::int64_t first = waiters_.find(*line.ids.begin())->second.cost;
  const bool queues = charge.limit->algorithm == Algorithm::leaky_bucket;  // permits come when all before have drained
  const std::int64_t after_first = queues ? line.cost : line.cost - first + charge.cost;
  const std::int64_t turn_us =
      saturate(algorithm::Wide{line.first_turn} + soonest_after(*charge.limit, first, after_first));
  if (turn_us > deadline_us) return {.outcome = Try::Outcome::answered, .answer = denial(charge, turn_us, now)};
  return {.timer_us = deadline_us, .turn_us = turn_us};
}

// The denial for a waiter that can be admitted at `turn_us` at the earliest.
Result<Decision> WaitQueue::denial(const Charge& charge, std::int64_t turn_us, std::int64_t now) {
  Result<Decision> decision = charge_now_({charge.key, charge.limit, 0}, now);
  if (!decision) return decision;
  decision->allowed = false;
  decision->delay = Micros{0};
  decision->retry_after = Micros{std::max<std::int64_t>(turn_us - now, 1)};
  return decision;
}

void WaitQueue::add(WaitId id, const Charge& charge, std::int64_t deadline_us, const Try& tried) {
  Waiter& waiter = waiters_.try_emplace(id).first->second;
  waiter.is_charged = true;  // until it joins a line
  waiter.key = std::string(charge.key);
  waiter.limit = *charge.limit;
  waiter.cost = charge.cost;
  waiter.deadline_us = deadline_us;
  waiter.answer = tried.answer;
  waiter.timer_us = tried.timer_us;
  timers_.emplace(tried.timer_us, id);
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  if (tried.outcome == Try::Outcome::charged) return;
  const auto line = lines_.try_emplace({waiter.limit.algorithm, waiter.key}).first;
  try {
    line->second.ids.insert(id);
  } catch (...) {
    if (line->second.ids.empty()) lines_.erase(line);
    throw;
  }
  waiter.is_charged = false;
  line->second.cost += waiter.cost;
  if (line->second.ids.size() == 1) line->second.first_turn = tried.turn_us;
}

// The next first waiter of the line tries at once.
void WaitQueue::leave_line(WaitId id, const Waiter& waiter) {
  const auto place = lines_.find(LineName{waiter.limit.algorithm, waiter.key});
  Line& line = place->second;
  const bool was_first = *line.ids.begin() == id;
  line.ids.erase(id);
  line.cost -= waiter.cost;
  if (line.ids.empty()) {
    lines_.erase(place);
  } else if (was_first) {
    hurry_line(place->first);
  }
}

void WaitQueue::finish(Waiters::iterator place, Result<Decision> answer, Waiters& done) {
  auto& [id, waiter] = *place;
  if (!waiter.is_charged) leave_line(id, waiter);
  timers_.erase({waiter.timer_us, id});
  waiter.answer = std::move(answer);
  done.insert(waiters_.extract(place));
  waiting_.store(waiters_.size(), std::memory_order_relaxed);
}

void WaitQueue::set_timer(WaitId id, Waiter& waiter, std::int64_t timer_us) {
  auto node = timers_.extract({waiter.timer_us, id});
  waiter.timer_us = timer_us;
  node.value() = {timer_us, id};
  timers_.insert(std::move(node));
}

void WaitQueue::refund(const Charge& charge) {
  static_cast<void>(charge_now_({charge.key, charge.limit, -charge.cost}, clock_.now().count()));
  const Turn turn(*this);
  hurry_line({charge.limit->algorithm, charge.key});
}

void WaitQueue::answer_all(Waiters& done) {
  for (auto& [id, waiter] : done) {
    if (waiter.must_refund) refund({waiter.key, &waiter.limit, waiter.cost});
    waiter.callback(*std::move(waiter.answer));
  }
}

void WaitQueue::hurry_line(const LineName& name) {
  const auto line = lines_.find(name);
  if (line == lines_.end()) return;
  line->second.first_turn = 0;  // earlier estimates no longer justify a denial
  const auto first = waiters_.find(*line->second.ids.begin());
  set_timer(first->first, first->second, kDue);
  sleeper_.wake();
}

void WaitQueue::hurry(std::string_view key) noexcept {
  if (waiting_.load() == 0 || is_forked()) return;
  const Turn turn(*this);
  for (const Algorithm algorithm : kAlgorithms) hurry_line({algorithm, key});
}

bool WaitQueue::cancel(WaitId id) noexcept {
  if (is_forked()) return false;
  Waiters done;
  {
    const base::Fibers::Pinned pinned;
    const Turn turn(*this);
    const auto place = waiters_.find(id);
    if (place == waiters_.end()) return false;
    place->second.must_refund = place->second.is_charged;
    finish(place, refusal(ErrorCode::unavailable, "the wait was cancelled"), done);
  }
  answer_all(done);
  return true;
}

// Handles one waiter whose timer has fired: at most one store call. If it needs another, it is due again at once.
void WaitQueue::look_at(WaitId id, std::int64_t now, Waiters& done) {
  const auto place = waiters_.find(id);
  Waiter& waiter = place->second;
  if (waiter.is_charged) return finish(place, *std::move(waiter.answer), done);  // its delay is over
  const Charge charge{waiter.key, &waiter.limit, waiter.cost};
  Line& line = lines_.find(LineName{waiter.limit.algorithm, waiter.key})->second;
  if (*line.ids.begin() != id) return finish(place, denial(charge, line.first_turn, now), done);  // too late
  if (!waiter.before) {
    waiter.before = peek_before(charge, now);
    if (waiter.before) return;
  }
  Try tried = attempt(charge, waiter.deadline_us, now, std::exchange(waiter.before, std::nullopt));
  waiter.must_refund = tried.must_refund;
  switch (tried.outcome) {
    case Try::Outcome::answered:
      return finish(place, *std::move(tried.answer), done);
    case Try::Outcome::charged:
      leave_line(id, waiter);
      waiter.is_charged = true;
      waiter.answer = std::move(tried.answer);
      break;
    case Try::Outcome::must_wait:
      line.first_turn = tried.turn_us;
      break;
  }
  set_timer(id, waiter, tried.timer_us);
}

// Handles one due waiter, if any. Returns the time of the next timer. Other threads get the lock in between.
Micros WaitQueue::serve_one(Waiters& done) {
  const std::int64_t now = clock_.now().count();
  if (!timers_.empty() && timers_.begin()->first <= now) look_at(timers_.begin()->second, now, done);
  return Micros{timers_.empty() ? INT64_MAX : timers_.begin()->first};
}

void WaitQueue::serve() {
  own_thread_.store(std::this_thread::get_id());
  for (;;) {
    Waiters done;
    Micros next{0};
    {
      const Turn turn(*this);
      if (closed_) break;
      next = serve_one(done);
    }
    answer_all(done);
    if (done.empty() && next > clock_.now()) clock_.sleep(sleeper_, next);
  }
  own_thread_.store({});
}

bool WaitQueue::is_forked() const { return getpid() != process_; }

bool WaitQueue::is_own_thread() const noexcept {
  return !is_forked() && own_thread_.load() == std::this_thread::get_id();
}

void WaitQueue::close() noexcept {
  Waiters left;
  std::thread thread;
  {
    const Turn turn(*this);
    closed_ = true;
    thread.swap(thread_);
    left.swap(waiters_);
    waiting_.store(0, std::memory_order_relaxed);
    lines_.clear();
    timers_.clear();
  }
  sleeper_.wake();
  if (thread.joinable()) thread.join();
  for (auto& [id, waiter] : left) {
    if (waiter.is_charged) refund({waiter.key, &waiter.limit, waiter.cost});
    waiter.callback(refusal(ErrorCode::unavailable, "the limiter was closed before a permit was available"));
  }
}

Result<Decision> wait_here(std::shared_ptr<WaitQueue> queue, const Charge& charge, Micros deadline,
                           const std::stop_token& stop) noexcept {
  if (queue->is_own_thread()) {
    return refusal(ErrorCode::invalid_argument, "a callback must not block the callbacks after it: use wait_async()");
  }
  if (base::Fibers::here() != nullptr) {
    return refusal(ErrorCode::invalid_argument,
                   "this thread serves other fibers, so do not block it: use wait_async()");
  }
  struct {
    base::Mutex mutex;
    std::condition_variable changed;
    std::optional<Result<Decision>> answer GUARDED_BY(mutex);
  } here;
  const WaitId id = queue->wait(charge, deadline, [here = &here](Result<Decision> given) {
    const base::MutexLock lock(here->mutex);
    here->answer = std::move(given);
    here->changed.notify_one();
  });
  const std::stop_callback give_up(stop, [&] { queue->cancel(id); });
  base::MutexLock lock(here.mutex);
  while (!here.answer) here.changed.wait(lock);
  return *std::move(here.answer);
}

}  // namespace weir::limiter
