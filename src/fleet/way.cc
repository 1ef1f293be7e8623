// Submits questions to lanes, and copies the answers back. See way.h.
#include "fleet/way.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace weir {
namespace {

constexpr Micros kTurnMax{100'000};

void put(const Question& question, Ask& ask) {
  ask.fill(question.what, question.charges, question.id, question.lasts, question.charged_us);
  ask.is_tied = question.is_tied;
}

void take(const Ask& ask, Question& question) {
  question.state = ask.state;
  question.ruling = ask.request.ruling;
  question.decided_us = ask.decided_us;
  question.error = ask.error;
  question.is_in_doubt = ask.is_in_doubt;
  question.doubt = ask.doubt;
  if (ask.shared.id) question.shared = ask.shared;
  std::ranges::copy(ask.decisions, question.decisions.begin());
  std::ranges::copy(ask.reserved, question.reserved.begin());
}

}  // namespace

// The questions that one fiber waits for.
class LoopWay::Waiting final : public Asker {
 public:
  explicit Waiting(LoopWay& way) : way_(way) {}

  void run(std::span<Question> questions) {
    const Micros now = redis::steady_now();
    for (Question& question : questions) {
      Ask& ask = way_.lane_.make();
      put(question, ask);
      ask.mark = &question;
      ++left_;
      if (!way_.lane_.submit(ask, *this, now)) on_done(ask);
    }
    if (left_ == 0) return;
    fiber_ = way_.fibers_.current();
    way_.fibers_.suspend();
  }

  void on_done(Ask& ask) override {
    take(ask, *static_cast<Question*>(ask.mark));
    way_.lane_.give(ask);
    if (--left_ == 0 && fiber_ != nullptr) way_.ready_.push_back(fiber_);
  }

 private:
  LoopWay& way_;
  std::size_t left_ = 0;
  Fiber* fiber_ = nullptr;
};

LoopWay::LoopWay(const redis::Target& target, LaneOptions options, Fibers& fibers)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      lane_(target, std::move(options)),
      fibers_(fibers) {
  for (const int watched : {timer_.get(), lane_.descriptor()}) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, watched, &event);
  }
  fibers_.set_companion(this);
  set_timer();
}

LoopWay::~LoopWay() { fibers_.set_companion(nullptr); }

LoopWay* LoopWay::here() {
  Fibers* const fibers = Fibers::here();
  return fibers == nullptr ? nullptr : static_cast<LoopWay*>(fibers->companion());
}

// An early timer does no harm. So it is set again only for an earlier time, or after it has expired.
void LoopWay::set_timer() {
  const Micros due = lane_.due();
  if (due >= set_for_) return;
  set_for_ = due;
  const std::int64_t at = std::max<std::int64_t>(1, due.count());
  itimerspec once{};
  once.it_value.tv_sec = at / 1'000'000;
  once.it_value.tv_nsec = at % 1'000'000 * 1'000;
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &once, nullptr);
}

void LoopWay::run(std::span<Question> questions) {
  if (!is_away()) Waiting(*this).run(questions);
}

// A fiber that gets its answer mostly asks again. If Redis is idle, we resume half of the fibers and flush their
// questions before the rest. Otherwise Redis and this loop would idle in turns from then on.
void LoopWay::resume_ready() {
  while (!ready_.empty()) {
    const std::vector<Fiber*> ready = std::exchange(ready_, {});
    const std::size_t half = ready.size() >= kHalvedMin && lane_.is_idle() ? ready.size() / 2 : 0;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      fibers_.resume(ready[i]);
      if (i + 1 == half) lane_.flush(redis::steady_now(), true);
    }
  }
}

void LoopWay::turn() {
  const Micros now = redis::steady_now();
  if (now >= set_for_) {
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &times, sizeof times);
    set_for_ = Micros::max();
  }
  lane_.turn(now);
  resume_ready();
}

void LoopWay::flush() {
  lane_.flush(redis::steady_now());
  resume_ready();  // fibers whose questions could not be sent
  set_timer();
}

void LoopWay::close() {
  lane_.close();
  resume_ready();
}

// Questions that one caller waits for together.
struct ThreadWay::Group final : public Asker {
  std::span<Question> questions;
  Done done;
  std::size_t left = 0;
  Lane* lane = nullptr;
  bool is_done = false;

  void on_done(Ask& ask) override {
    take(ask, *static_cast<Question*>(ask.mark));
    lane->give(ask);
    if (--left == 0) is_done = true;
  }
};

ThreadWay::ThreadWay(const redis::Target& target, LaneOptions options, Housekeeping& keeping)
    : keeping_(keeping), lane_(target, std::move(options)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  keeping_.begin(lane_);
  thread_ = std::thread([this] { work(); });
}

ThreadWay::~ThreadWay() { end(); }

void ThreadWay::end() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void ThreadWay::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t told = ::write(wake_.get(), &one, sizeof one);
}

void ThreadWay::start(std::span<Question> questions, Done done) {
  auto group = std::make_unique<Group>();
  group->questions = questions;
  group->done = std::move(done);
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = posted_.empty();
    posted_.push_back(std::move(group));
  }
  if (is_first) wake();
}

void ThreadWay::run(std::span<Question> questions) {
  if (is_away()) return;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  start(questions, [&] {
    const std::lock_guard lock(mutex);
    is_done = true;
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return is_done; });
}

void ThreadWay::take_posted(Micros now) {
  std::vector<std::unique_ptr<Group>> posted;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
  for (std::unique_ptr<Group>& group : posted) {
    group->lane = &lane_;
    group->left = group->questions.size();
    for (Question& question : group->questions) {
      Ask& ask = lane_.make();
      put(question, ask);
      ask.mark = &question;
      if (!lane_.submit(ask, *group, now)) group->on_done(ask);
    }
    if (group->questions.empty()) group->is_done = true;
    under_way_.push_back(std::move(group));
  }
}

void ThreadWay::work() {
  Micros due{0};
  for (bool is_ending = false; !is_ending;) {
    Micros now = redis::steady_now();
    const Micros until = std::min(lane_.due(), due);
    const std::int64_t wait_us = std::clamp<std::int64_t>(until.count() - now.count(), 0, kTurnMax.count());
    const timespec wait{.tv_sec = 0, .tv_nsec = wait_us * 1'000};
    pollfd watched[] = {{wake_.get(), POLLIN, 0}, {lane_.descriptor(), POLLIN, 0}};
    ppoll(watched, 2, &wait, nullptr);
    std::uint64_t times = 0;
    if (watched[0].revents != 0) [[maybe_unused]]
      const ssize_t got = ::read(wake_.get(), &times, sizeof times);
    now = redis::steady_now();
    lane_.turn(now);
    take_posted(now);
    due = keeping_.turn(lane_, now);
    {
      const std::lock_guard lock(mutex_);
      is_ending = is_ending_;
    }
    if (is_ending) {
      keeping_.end(lane_, now);
      lane_.close();
    }
    lane_.flush(now);
    for (std::size_t i = 0; i < under_way_.size();) {
      if (!under_way_[i]->is_done) {
        ++i;
        continue;
      }
      const std::unique_ptr<Group> group = std::move(under_way_[i]);
      under_way_[i] = std::move(under_way_.back());
      under_way_.pop_back();
      group->done();
    }
  }
}

}  // namespace weir
