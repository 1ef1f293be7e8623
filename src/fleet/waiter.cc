// Submits requests to pipelines, and waits for the results. See waiter.h.
#include "fleet/waiter.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "fleet/background_work.h"

namespace weir::fleet {
namespace {

constexpr Micros kTurnMax{100'000};

}  // namespace

// The requests that one fiber waits for.
class FiberWaiter::Waiting final : public Requester {
 public:
  explicit Waiting(FiberWaiter& waiter) : waiter_(waiter) {}

  void run(std::span<ScriptRequest> requests) {
    const Micros now = redis::steady_now();
    for (ScriptRequest& request : requests) {
      if (waiter_.pipeline_.submit(request, *this, now)) ++left_;
    }
    if (left_ == 0) return;
    fiber_ = waiter_.fibers_.current();
    waiter_.fibers_.suspend();
  }

  void on_done(ScriptRequest&) override {
    WEIR_ASSERT(left_ > 0 && fiber_ != nullptr);
    if (--left_ == 0) waiter_.ready_.push_back(fiber_);
  }

 private:
  FiberWaiter& waiter_;
  std::size_t left_ = 0;
  base::Fiber* fiber_ = nullptr;
};

FiberWaiter::FiberWaiter(const base::redis::Target& target, PipelineOptions options, base::Fibers& fibers)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      pipeline_(target, std::move(options)),
      fibers_(fibers) {
  for (const int watched : {timer_.get(), pipeline_.descriptor()}) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, watched, &event);
  }
  fibers_.set_companion(this);
  set_timer();
}

FiberWaiter::~FiberWaiter() { fibers_.set_companion(nullptr); }

FiberWaiter* FiberWaiter::here() {
  base::Fibers* const fibers = base::Fibers::here();
  return fibers == nullptr ? nullptr : static_cast<FiberWaiter*>(fibers->companion());
}

// An early timer does no harm. So it is set again only for an earlier time, or after it has expired.
void FiberWaiter::set_timer() {
  const Micros due = pipeline_.due();
  if (due >= set_for_) return;
  set_for_ = due;
  const std::int64_t at = std::max<std::int64_t>(1, due.count());
  itimerspec once{};
  once.it_value.tv_sec = at / 1'000'000;
  once.it_value.tv_nsec = at % 1'000'000 * 1'000;
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &once, nullptr);
}

void FiberWaiter::run(std::span<ScriptRequest> requests) {
  if (!is_down()) Waiting(*this).run(requests);
}

// A fiber that gets its answer mostly checks again. If Redis is idle, we resume half of the fibers and flush their
// requests before the rest. Otherwise Redis and this loop would idle in turns from then on.
void FiberWaiter::resume_ready() {
  while (!ready_.empty()) {
    const std::vector<base::Fiber*> ready = std::exchange(ready_, {});
    const std::size_t half = ready.size() >= kHalvedMin && pipeline_.is_idle() ? ready.size() / 2 : 0;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      fibers_.resume(ready[i]);
      if (i + 1 == half) pipeline_.flush(redis::steady_now(), true);
    }
  }
}

void FiberWaiter::turn() {
  const Micros now = redis::steady_now();
  if (now >= set_for_) {
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &times, sizeof times);
    set_for_ = Micros::max();
  }
  pipeline_.turn(now);
  resume_ready();
}

void FiberWaiter::flush() {
  pipeline_.flush(redis::steady_now());
  resume_ready();  // fibers whose requests could not be sent
  set_timer();
}

void FiberWaiter::close() {
  pipeline_.close();
  resume_ready();
}

// Requests that one caller waits for together.
struct ThreadWaiter::Group final : public Requester {
  explicit Group(std::span<ScriptRequest> asked) : requests(asked) {}

  void on_done(ScriptRequest&) override {
    WEIR_ASSERT(left > 0);
    --left;
  }

  const std::span<ScriptRequest> requests;
  std::size_t left = 0;  // in flight
  base::Mutex mutex;
  std::condition_variable changed;
  bool is_done GUARDED_BY(mutex) = false;
};

ThreadWaiter::ThreadWaiter(const base::redis::Target& target, PipelineOptions options, BackgroundWork& background)
    : background_(background), pipeline_(target, std::move(options)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  background_.begin(pipeline_);
  thread_ = std::thread([this] { work(); });
}

ThreadWaiter::~ThreadWaiter() {
  {
    const base::MutexLock lock(mutex_);
    is_ending_ = true;
  }
  wake();
  thread_.join();
}

void ThreadWaiter::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void ThreadWaiter::run(std::span<ScriptRequest> requests) {
  WEIR_ASSERT(std::this_thread::get_id() != thread_.get_id());
  if (is_down()) return;
  Group group(requests);
  bool is_first = false;
  {
    const base::MutexLock lock(mutex_);
    is_first = posted_.empty();
    posted_.push_back(&group);
  }
  if (is_first) wake();
  base::MutexLock lock(group.mutex);
  while (!group.is_done) group.changed.wait(lock);
}

void ThreadWaiter::take_posted(Micros now) {
  std::vector<Group*> posted;
  {
    const base::MutexLock lock(mutex_);
    posted.swap(posted_);
  }
  for (Group* const group : posted) {
    for (ScriptRequest& request : group->requests) {
      if (pipeline_.submit(request, *group, now)) ++group->left;
    }
    in_flight_.push_back(group);
  }
}

void ThreadWaiter::work() {
  Micros due{0};
  for (bool is_ending = false; !is_ending;) {
    Micros now = redis::steady_now();
    const Micros until = std::min(pipeline_.due(), due);
    const std::int64_t wait_us = std::clamp<std::int64_t>(until.count() - now.count(), 0, kTurnMax.count());
    const timespec wait{.tv_sec = 0, .tv_nsec = wait_us * 1'000};
    pollfd watched[] = {{wake_.get(), POLLIN, 0}, {pipeline_.descriptor(), POLLIN, 0}};
    ppoll(watched, 2, &wait, nullptr);
    std::uint64_t times = 0;
    if (watched[0].revents != 0) [[maybe_unused]]
      const ssize_t got = ::read(wake_.get(), &times, sizeof times);
    now = redis::steady_now();
    pipeline_.turn(now);
    take_posted(now);
    due = background_.turn(pipeline_, now);
    {
      const base::MutexLock lock(mutex_);
      is_ending = is_ending_;
    }
    if (is_ending) {
      background_.end(now);
      pipeline_.close();
    }
    pipeline_.flush(now);
    std::erase_if(in_flight_, [](Group* group) {
      if (group->left > 0) return false;
      const base::MutexLock lock(group->mutex);
      group->is_done = true;
      group->changed.notify_one();  // under the lock: the caller that wakes up destroys the group
      return true;
    });
  }
}

}  // namespace weir::fleet
