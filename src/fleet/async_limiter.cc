// Fibers that call a limiter, and the thread or loop that drives them. See weir/fleet.h.
//
// A caller only posts a job and wakes the driver. Waiting for Redis within a job suspends its fiber. So the blocking
// calls of Limiter and Gate are the whole interface, and behave here as they do elsewhere.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "fleet/fleet_store.h"
#include "fleet/kept_request.h"
#include "weir/fleet.h"

namespace weir {
namespace {

constexpr int kTurnMs = 100;  // the longest sleep; a wake-up ends it

// One check, from the call to the callback.
struct Checked {
  explicit Checked(std::span<const Charge> asked) : charges(asked) {}
  fleet::KeptCharges charges;
  AsyncLimiter::Callback callback{};
  Result<Verdict> verdict{Verdict{}};

  // A single charge may have a cached denial; several charges are one event.
  void ask(Limiter& limiter) {
    if (charges.all().size() != 1) {
      verdict = limiter.check_all(charges.all());
      return;
    }
    std::vector<Result<Decision>> answers;
    limiter.check_many(charges.all(), answers);
    if (answers[0]) {
      verdict = Verdict{.allowed = answers[0]->allowed, .decisions = {*answers[0]}};
    } else {
      verdict = fail(std::move(answers[0].error()));
    }
  }
};

Error too_many(std::size_t most) {
  return {ErrorCode::exhausted,
          std::to_string(most) + " checks are in flight, the maximum of this limiter; try again later"};
}

}  // namespace

struct AsyncLimiter::Impl {
  struct Job {
    Function work, done;
  };

  Impl(Limiter& asked, const Fleet& fleet, const AsyncOptions& chosen)
      : limiter(asked),
        store(fleet.store_),
        options(chosen),
        waiter(store->make_waiter(fibers)),
        wakes(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        epoll(epoll_create1(EPOLL_CLOEXEC)) {
    for (const int watched : {wakes.get(), waiter->descriptor()}) {
      epoll_event event{.events = EPOLLIN, .data = {}};
      epoll_ctl(epoll.get(), EPOLL_CTL_ADD, watched, &event);
    }
    waiter->flush();  // sets its timer
    if (options.driving == Driving::by_thread) thread.emplace([this] { drive(); });
  }

  // Returns nothing, or why the job is not accepted.
  std::optional<Error> post(Job job) {
    bool is_first = false;
    {
      const base::MutexLock lock(mutex);
      if (is_ending) return Error{ErrorCode::unavailable, "this limiter is being destroyed"};
      if (in_flight >= options.in_flight_max) return too_many(options.in_flight_max);
      is_first = posted.empty();
      posted.push_back(std::move(job));
      ++in_flight;
    }
    if (is_first) wake();
    return {};
  }

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wakes.get(), &one, sizeof one);
  }

  void turn() {
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t got = ::read(wakes.get(), &times, sizeof times);
    {
      const base::MutexLock lock(mutex);
      while (!posted.empty()) {
        waiting.push_back(std::move(posted.front()));
        posted.pop_front();
      }
    }
    waiter->turn();
    std::size_t before = 0;
    do {
      start_waiting();
      before = ended.size();
      waiter->flush();
    } while (!waiting.empty() && ended.size() > before);  // jobs that failed at once made capacity for others
    tell();
  }

  void start_waiting() {
    while (!waiting.empty()) {
      Job* const job = new Job(std::move(waiting.front()));
      waiting.pop_front();
      const auto work = [this, job] {
        job->work();
        ended.emplace_back(job);
      };
      if (fibers.start(work)) continue;
      if (fibers.in_flight() == 0) {  // no memory for a stack: run it here and block
        work();
        continue;
      }
      waiting.push_front(std::move(*job));
      delete job;
      return;
    }
  }

  void tell() noexcept {
    for (const std::unique_ptr<Job>& job : std::exchange(ended, {})) {
      job->done();
      job->done = nullptr;  // destroys what it captured before the job counts as ended
      const base::MutexLock lock(mutex);
      --in_flight;
    }
  }

  bool has_ended() {
    const base::MutexLock lock(mutex);
    return is_ending && in_flight == 0;
  }

  // Runs until end() was called and every accepted job has ended.
  void drive() {
    while (!has_ended()) {
      pollfd watched{epoll.get(), POLLIN, 0};
      poll(&watched, 1, kTurnMs);
      turn();
    }
  }

  void end() {
    {
      const base::MutexLock lock(mutex);
      is_ending = true;
    }
    wake();
    if (thread) {
      thread->join();
    } else {
      drive();
    }
  }

  Limiter& limiter;
  const std::shared_ptr<fleet::FleetStore> store;
  const AsyncOptions options;
  const pid_t process = getpid();
  base::Fibers fibers;
  std::unique_ptr<fleet::FiberWaiter> waiter;
  base::Descriptor wakes;
  base::Descriptor epoll;
  std::deque<Job> waiting;  // jobs that wait for a fiber; only the driver uses it and the members below
  std::vector<std::unique_ptr<Job>> ended;

  base::Mutex mutex;
  std::deque<Job> posted GUARDED_BY(mutex);
  std::size_t in_flight GUARDED_BY(mutex) = 0;
  bool is_ending GUARDED_BY(mutex) = false;

  std::optional<std::thread> thread;  // the last: it uses all of the above
};

AsyncLimiter::AsyncLimiter(Limiter& limiter, const Fleet& fleet, const AsyncOptions& options) noexcept
    : impl_(std::make_unique<Impl>(limiter, fleet, options)) {}

AsyncLimiter::~AsyncLimiter() {
  if (getpid() == impl_->process) {
    impl_->end();
  } else {  // after a fork: neither its thread nor its callers exist here
    static_cast<void>(impl_.release());
  }
}

void AsyncLimiter::check(std::span<const Charge> charges, Callback callback) noexcept {
  std::shared_ptr<Checked> checked;
  std::optional<Error> refused;
  try {
    checked = std::make_shared<Checked>(charges);
    checked->callback = std::move(callback);
    Limiter& limiter = impl_->limiter;
    refused = impl_->post({[checked, &limiter] { checked->ask(limiter); },
                           [checked] { checked->callback(std::move(checked->verdict)); }});
  } catch (const std::exception&) {
    refused = Error{ErrorCode::exhausted, "out of memory"};
  }
  if (refused) (checked && checked->callback ? checked->callback : callback)(fail(*std::move(refused)));
}

bool AsyncLimiter::run(Function work, Function done) noexcept {
  try {
    return !impl_->post({std::move(work), std::move(done)});
  } catch (const std::exception&) {
    return false;
  }
}

std::size_t AsyncLimiter::in_flight() const noexcept {
  const base::MutexLock lock(impl_->mutex);
  return impl_->in_flight;
}

int AsyncLimiter::descriptor() const noexcept { return impl_->epoll.get(); }
void AsyncLimiter::turn() noexcept { impl_->turn(); }

}  // namespace weir
