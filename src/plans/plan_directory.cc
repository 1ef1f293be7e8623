// The directory's thread: connects, waits for changes, and serves requests. See plan_directory.h. plan_reader.h
// decides what to read when; plan_cache.h stores it.
//
// After an error everything is reopened after a random pause, which grows to half a second. So the plans are up to
// date soon after the database returns, however long it was unavailable.
#include "plans/plan_directory.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <new>
#include <random>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/nearest.h"
#include "plans/plan_cache.h"
#include "plans/plan_memory.h"
#include "plans/plan_reader.h"
#include "plans/refusals.h"

namespace weir::plans {
namespace {

constexpr std::size_t kWantedMax = 16'384;  // subjects waiting for a lookup
constexpr Micros kIdleMax{1'000'000};
constexpr Micros kPauseFirst{50'000}, kPauseMax{500'000};
constexpr Micros kTick{100'000};
constexpr Micros kRememberEvery{10'000'000};
constexpr std::int64_t kWaitShare = 10;  // all waits together take at most a tenth of the time
constexpr Micros kWaitAhead{500'000};

}  // namespace

struct PlanDirectory::Impl {
  Impl(std::unique_ptr<PlanSource> from, PlanDirectoryOptions given)
      : source(std::move(from)),
        options(std::move(given)),
        own_clock(options.clock == nullptr ? make_system_clock() : nullptr),
        clock(options.clock == nullptr ? *own_clock : *options.clock),
        cache(options.subjects_max),
        refusals(options.report),
        reader(*source, cache, refusals, {options.subjects_max, options.refresh}),
        check(options.check),
        contact_at(clock.now()),
        random(std::random_device{}()) {}

  enum class Moment { now_and_then, end };

  void run() {
    go_on([this] { recall(); });
    while (!is_stopping()) {
      go_on([this] {
        if (!step()) pause();
      });
    }
    go_on([this] { run_jobs(); });
    go_on([this] { remember(Moment::end); });
  }

  // If memory runs out, the thread continues; a little later there may be some.
  template <class What>
  void go_on(What what) {
    try {
      what();
    } catch (const std::exception&) {
      if (!is_stopping()) clock.sleep(nap, clock.now() + kPauseMax);
    }
  }

  void recall() {
    if (options.memory.empty()) return;
    check_if_new();
    const auto rows = read_plan_memory(options.memory, options.memory_of);
    if (rows) {
      reader.recall(*rows, clock.now());
      remembered_edits = cache.edits();
    } else if (rows.error().code != ErrorCode::not_found && options.report) {
      options.report({PlanEvent::Kind::not_remembered, "", rows.error().message});
    }
  }

  // Not during a full read, and not before the first one is complete: a partial state must not replace a complete one.
  void remember(Moment moment) {
    const base::MutexLock lock(memory_mutex);
    if (is_retired) return;
    if (options.memory.empty() || !reader.was_read() || cache.edits() == remembered_edits) return;
    const Micros now = clock.now();
    if (moment == Moment::now_and_then && (now < remember_at || !reader.is_idle(now))) return;
    remember_at = now + kRememberEvery;
    const std::uint64_t edits = cache.edits();
    std::vector<RememberedRow> rows;
    cache.each([&](PlanCache::Seen& one) {
      if (!one.accepted.empty()) rows.push_back({std::move(one.subject), std::move(one.accepted)});
    });
    const Result<void> written = write_plan_memory(options.memory, options.memory_of, rows);
    if (written) {
      remembered_edits = edits;
      memory_error.clear();
    } else if (std::exchange(memory_error, written.error().message) != written.error().message && options.report) {
      options.report({PlanEvent::Kind::not_remembered, "", written.error().message});
    }
  }

  // Returns false if the database cannot be used now.
  bool step() {
    try {
      check_if_new();
      const Result<void> done = is_open ? turn() : open();
      if (!done) go_down(done.error());
      return done.has_value();
    } catch (const std::exception& thrown) {
      go_down({ErrorCode::exhausted, std::string("cannot read plans: ") + thrown.what()});
      return false;
    }
  }

  Result<void> open() {
    if (Result<void> done = source->connect(); !done) return done;
    is_open = true;
    reader.start_over();
    return {};
  }

  void pause() {
    const Micros until =
        clock.now() + Micros{std::uniform_int_distribution<std::int64_t>(0, pause_max.count())(random)};
    pause_max = std::min(2 * pause_max, kPauseMax);
    run_jobs();
    while (clock.now() < until && !is_stopping()) {
      clock.sleep(nap, until);
      run_jobs();
      check_if_new();
    }
  }

  Result<void> turn() {
    run_jobs();
    const Micros now = clock.now();
    cache.set_tick(static_cast<std::uint32_t>(now / kTick));
    refusals.report_rest(now);
    std::vector<std::string> batch;
    bool is_more = false;
    {
      const base::MutexLock lock(work_mutex);
      for (; !wanted.empty() && batch.size() < reader.at_once(); wanted.pop_front()) {
        batch.push_back(std::move(wanted.front()));
      }
      is_more = !wanted.empty();
    }
    if (!batch.empty()) {
      if (Result<void> done = look_up_wanted(batch, now); !done) return done;
    }
    if (Result<void> done = reader.turn(now); !done) return done;
    if (is_proven) note_contact();
    remember(Moment::now_and_then);
    const bool is_idle = !is_more && reader.is_idle(now);
    Result<PlanSource::Changes> changed =
        source->wait(is_idle && is_proven ? std::clamp(reader.next_at() - now, Micros{0}, kIdleMax) : Micros{0});
    if (!changed) return fail(changed.error());
    if (changed->all) {
      reader.read_all();
    } else if (!changed->subjects.empty()) {
      reader.read(std::move(changed->subjects));
    }
    if (is_idle) pause_max = kPauseFirst;
    if (!is_proven) come_up();
    note_contact();
    return {};
  }

  // Looks up new subjects. After a failure they are queued again. A subject that failed alone goes to the end of the
  // queue, because it may be the one whose lookup takes too long.
  Result<void> look_up_wanted(std::vector<std::string>& batch, Micros now) {
    try {
      Result<void> done = reader.look_up(batch, PlanCache::WhenFull::evict, now);
      if (done) {
        waiting_pays.store(true, std::memory_order_relaxed);
        return done;
      }
      const base::MutexLock lock(work_mutex);
      wanted.insert(batch.size() == 1 ? wanted.end() : wanted.begin(), batch.begin(), batch.end());
      return done;
    } catch (const std::exception&) {
      for (const std::string& subject : batch) cache.not_queued(subject);
      throw;
    }
  }

  void run_jobs() {
    for (;;) {
      std::function<void()> job;
      {
        const base::MutexLock lock(work_mutex);
        if (jobs.empty()) return;
        job = std::move(jobs.front());
        jobs.pop_front();
      }
      job();
    }
  }

  void check_if_new() {
    std::function<Result<CheckedRow>(const PlanRow&)> by;
    {
      const base::MutexLock lock(work_mutex);
      if (!has_new_check) return;
      by = check;
      has_new_check = false;
    }
    try {
      reader.check_by(std::move(by), clock.now());
    } catch (const std::exception&) {
      const base::MutexLock lock(work_mutex);
      has_new_check = true;  // some rows are checked already, which does no harm
      throw;
    }
  }

  // A connection alone is not enough: the first read may break it.
  void come_up() {
    is_proven = true;
    waiting_pays.store(true, std::memory_order_relaxed);
    bool is_back = false;
    {
      const base::MutexLock lock(state_mutex);
      is_up = true;
      error.clear();
      is_back = std::exchange(is_away_told, false);
    }
    if (is_back && options.report) options.report({PlanEvent::Kind::available, "", "the plan database answers again"});
  }

  void go_down(const Error& why) {
    is_open = is_proven = false;
    waiting_pays.store(false, std::memory_order_relaxed);
    bool is_news = false;
    {
      const base::MutexLock lock(state_mutex);
      is_news = !is_away_told || error != why.message;
      is_up = false;
      is_away_told = true;
      error = why.message;
      ++failures;
    }
    if (is_news && options.report) options.report({PlanEvent::Kind::unavailable, "", why.message});
  }

  void note_contact() {
    const Micros now = clock.now();
    const base::MutexLock lock(state_mutex);
    contact_at = now;
    lookups = reader.lookups();
    changes = reader.changes();
    if (!is_read && reader.was_read()) {
      is_read = true;
      was_read.notify_all();
    }
  }

  void want(std::string_view subject) {
    bool is_first = false, is_taken = false;
    {
      const base::MutexLock lock(work_mutex);
      is_first = wanted.empty();
      is_taken = wanted.size() < kWantedMax;
      if (is_taken) wanted.emplace_back(subject);
    }
    if (!is_taken) cache.not_queued(subject);
    if (is_first) source->wake();
  }

  // Bounds how long checks wait for the database in a flood of new subjects: all of them together a tenth of the
  // elapsed time, and 50 ms more at first.
  bool may_wait(Micros now) const { return waited_to_us.load(std::memory_order_relaxed) < (now + kWaitAhead).count(); }

  void note_wait(Micros begun, Micros ended) {
    const std::int64_t cost = kWaitShare * (ended - begun).count();
    std::int64_t before = waited_to_us.load(std::memory_order_relaxed);
    while (!waited_to_us.compare_exchange_weak(before, std::max(before, begun.count()) + cost)) {
    }
  }

  // Runs a query on the directory's thread, between two of its own queries.
  template <class T, class Ask>
  Result<T> ask(Ask question) {
    std::promise<Result<T>> answer;
    {
      const base::MutexLock lock(work_mutex);
      jobs.push_back([&] {
        // The caller waits, so always answer. This message fits into a string's inline buffer.
        Result<T> said = fail(ErrorCode::exhausted, "out of memory");
        try {
          said = is_open ? Result<T>(question()) : Result<T>(fail(ErrorCode::unavailable, last_error()));
        } catch (const std::bad_alloc&) {
          said = fail(ErrorCode::exhausted, "out of memory");
        } catch (const std::exception& thrown) {
          said = fail(ErrorCode::unavailable, thrown.what());
        }
        answer.set_value(std::move(said));
      });
    }
    wake_all();
    return answer.get_future().get();
  }

  bool is_stopping() {
    const base::MutexLock lock(work_mutex);
    return stopping;
  }
  std::string last_error() const {
    const base::MutexLock lock(state_mutex);
    return error;
  }
  void wake_all() {
    source->wake();
    nap.wake();
  }

  const std::unique_ptr<PlanSource> source;
  const PlanDirectoryOptions options;
  const std::shared_ptr<const Clock> own_clock;
  const Clock& clock;
  PlanCache cache;
  Refusals refusals;

  PlanReader reader;                        // used by the thread only, like the members below
  bool is_open = false, is_proven = false;  // connected; something was read since
  std::uint64_t remembered_edits = 0;
  Micros remember_at{0};
  std::string memory_error;  // already reported
  Micros pause_max{kPauseFirst};

  base::Mutex memory_mutex;  // guards the file, too
  bool is_retired GUARDED_BY(memory_mutex) = false;

  base::Mutex work_mutex;  // for the thread's work queue
  std::deque<std::string> wanted GUARDED_BY(work_mutex);
  std::deque<std::function<void()>> jobs GUARDED_BY(work_mutex);
  std::function<Result<CheckedRow>(const PlanRow&)> check GUARDED_BY(work_mutex);
  bool has_new_check GUARDED_BY(work_mutex) = true;
  bool stopping GUARDED_BY(work_mutex) = false;

  mutable base::Mutex state_mutex;  // for what the thread reports
  std::condition_variable was_read;
  bool is_up GUARDED_BY(state_mutex) = false;
  bool is_read GUARDED_BY(state_mutex) = false;
  bool is_away_told GUARDED_BY(state_mutex) = false;
  std::string error GUARDED_BY(state_mutex) = "not connected yet";
  Micros contact_at GUARDED_BY(state_mutex);
  std::uint64_t failures GUARDED_BY(state_mutex) = 0;
  std::uint64_t lookups GUARDED_BY(state_mutex) = 0;
  std::uint64_t changes GUARDED_BY(state_mutex) = 0;

  std::atomic<bool> waiting_pays{true};  // false after a wait without an answer, or while the database is down
  std::atomic<std::uint64_t> waits{0}, wait_timeouts{0};
  std::atomic<std::int64_t> waited_to_us{0};  // the time up to which waiting has used its share
  std::minstd_rand random;
  Sleeper nap;
  std::thread thread;
};

PlanDirectory::PlanDirectory(std::unique_ptr<PlanSource> source, PlanDirectoryOptions options)
    : impl_(std::make_unique<Impl>(std::move(source), std::move(options))) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

PlanDirectory::~PlanDirectory() {
  {
    const base::MutexLock lock(impl_->work_mutex);
    impl_->stopping = true;
  }
  impl_->wake_all();
  impl_->thread.join();
}

PlanTerms PlanDirectory::find(std::string_view subject) noexcept {
  if (subject.size() > kPlanSubjectMax) return {};
  try {
    bool wants_lookup = false;
    PlanTerms terms = impl_->cache.find(subject, wants_lookup);
    if (wants_lookup) impl_->want(subject);
    if (terms.until != Micros{0} && impl_->clock.now() >= terms.until) terms.limits = nullptr;
    return terms;
  } catch (const std::exception&) {
    return {.is_pending = true};  // no memory for another subject
  }
}

bool PlanDirectory::wait(std::string_view subject) noexcept {
  if (subject.size() > kPlanSubjectMax) return true;
  const Micros begun = impl_->clock.now();
  const bool pays = impl_->waiting_pays.load(std::memory_order_relaxed) && impl_->may_wait(begun);
  if (pays) impl_->waits.fetch_add(1, std::memory_order_relaxed);
  const PlanCache::Waited waited = impl_->cache.wait(subject, pays ? impl_->options.wait : Micros{0});
  if (pays) impl_->note_wait(begun, impl_->clock.now());
  if (pays && waited == PlanCache::Waited::timed_out) {
    impl_->wait_timeouts.fetch_add(1, std::memory_order_relaxed);
    impl_->waiting_pays.store(false, std::memory_order_relaxed);
  }
  return waited == PlanCache::Waited::known;
}

void PlanDirectory::check_by(std::function<Result<CheckedRow>(const PlanRow&)> check) {
  {
    const base::MutexLock lock(impl_->work_mutex);
    impl_->check = std::move(check);
    impl_->has_new_check = true;
  }
  impl_->wake_all();
}

bool PlanDirectory::wait_until_read(Micros most) {
  base::MutexLock lock(impl_->state_mutex);
  return impl_->was_read.wait_for(lock, most, [&]() REQUIRES(impl_->state_mutex) { return impl_->is_read; });
}

void PlanDirectory::retire() {
  const base::MutexLock lock(impl_->memory_mutex);
  impl_->is_retired = true;
}

PlanStatus PlanDirectory::status() const {
  PlanStatus status;
  const Micros now = impl_->clock.now();
  {
    const base::MutexLock lock(impl_->state_mutex);
    status.is_up = impl_->is_up;
    status.error = impl_->error;
    status.age = std::max(now - impl_->contact_at, Micros{0});
    status.failures = impl_->failures;
    status.lookups = impl_->lookups;
    status.changes = impl_->changes;
  }
  status.subjects = impl_->cache.size();
  status.pending = impl_->cache.pending();
  status.evicted = impl_->cache.evicted();
  status.waits = impl_->waits.load(std::memory_order_relaxed);
  status.wait_timeouts = impl_->wait_timeouts.load(std::memory_order_relaxed);
  status.refused = impl_->refusals.total();
  status.refused_rows = impl_->refusals.last();
  return status;
}

Result<void> PlanDirectory::write(const PlanChange& change) {
  return impl_->ask<void>([&]() -> Result<void> {
    if (Result<void> written = impl_->source->write(change); !written) return written;
    return impl_->reader.look_up({&change.subject, 1}, PlanCache::WhenFull::evict, impl_->clock.now());
  });
}

Result<PlanRow> PlanDirectory::look(const std::string& subject) {
  return impl_->ask<PlanRow>([&]() -> Result<PlanRow> {
    Result<std::vector<PlanRow>> rows = impl_->source->find({&subject, 1});
    if (!rows) return fail(rows.error());
    if (rows->empty()) return fail(ErrorCode::not_found, "the database has no row for " + base::in_quotes(subject));
    return std::move(rows->front());
  });
}

Result<std::vector<PlanRow>> PlanDirectory::list(std::string_view after, std::size_t most) {
  return impl_->ask<std::vector<PlanRow>>([&] { return impl_->source->all(after, most); });
}

}  // namespace weir::plans
