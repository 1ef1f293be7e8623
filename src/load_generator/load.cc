// Starts the threads, measures time and the server's processor time, and adds up results. See load.h.
#include "load_generator/load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "load_generator/process_cpu.h"
#include "load_generator/worker.h"
#include "weir/clock.h"

namespace weir::load_generator {
namespace {

using Workers = std::vector<std::unique_ptr<Worker>>;
using std::chrono::nanoseconds;

constexpr nanoseconds kNap{2'000'000};

// Totals at a moment; a result is the difference of two.
struct Moment {
  std::int64_t at_ns = 0;
  std::int64_t own_cpu_ns = 0;
  std::optional<std::int64_t> server_cpu_ns;
  Worker::Progress progress;
};

std::int64_t own_cpu_ns() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) { return (std::int64_t{time.tv_sec} * 1'000'000 + time.tv_usec) * 1'000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

Moment look(const Workers& workers, pid_t pid) {
  Moment moment;
  moment.own_cpu_ns = own_cpu_ns();
  if (pid > 0) moment.server_cpu_ns = process_cpu_ns(pid);
  moment.at_ns = read_stopwatch().count();
  for (const auto& worker : workers) {
    const Worker::Progress progress = worker->progress();
    moment.progress.answered += progress.answered;
    moment.progress.bytes_out += progress.bytes_out;
    moment.progress.bytes_in += progress.bytes_in;
  }
  return moment;
}

std::uint64_t share_of(std::uint64_t all, std::size_t part, std::size_t parts) {
  return all * (part + 1) / parts - all * part / parts;
}

Result<Workers> open_workers(const Options& options) {
  Workers workers;
  const std::size_t count = std::min(options.threads, options.connections);
  for (std::size_t i = 0; i < count; ++i) {
    Worker::Share share;
    share.connections = share_of(options.connections, i, count);
    share.cpu = options.cpu < 0 ? -1 : options.cpu + static_cast<int>(i);
    share.keys = {.count = options.keys,
                  .order = options.each_key_once ? Keys::Order::in_turn : Keys::Order::random,
                  .first = i,
                  .step = count};
    share.rate =
        options.rate == 0 ? 0 : std::max<std::uint64_t>(options.rate * share.connections / options.connections, 1);
    if (options.each_key_once) share.requests_max = (options.keys - i + count - 1) / count;
    auto worker = Worker::open(options, share);
    if (!worker) return fail(worker.error());
    workers.push_back(*std::move(worker));
  }
  return workers;
}

bool any_failed(const Workers& workers) {
  return std::ranges::any_of(workers, [](const auto& worker) { return worker->is_done() && worker->error(); });
}
bool all_done(const Workers& workers) {
  return std::ranges::all_of(workers, [](const auto& worker) { return worker->is_done(); });
}

// Waits until each has sent its share; fails if answers stop.
Result<void> wait_for_all(const Workers& workers) {
  Moment before = look(workers, 0);
  while (!all_done(workers)) {
    std::this_thread::sleep_for(kNap);
    const Moment now = look(workers, 0);
    if (now.progress.answered != before.progress.answered) before = now;
    if (now.at_ns - before.at_ns < nanoseconds(kTimeout).count()) continue;
    return fail(ErrorCode::unavailable, "the server has not answered for 10 s");
  }
  return {};
}

// Sleeps until then, or until a thread has failed.
void sleep_until(std::int64_t then_ns, const Workers& workers) {
  for (nanoseconds left; !any_failed(workers);) {
    left = nanoseconds{then_ns} - read_stopwatch();
    if (left <= nanoseconds{0}) return;
    std::this_thread::sleep_for(left > 2 * kNap ? left / 2 : left);
  }
}

Outcome difference(const Moment& from, const Moment& to, const Options& options) {
  Outcome outcome;
  const auto ns = static_cast<double>(std::max<std::int64_t>(to.at_ns - from.at_ns, 1));
  outcome.seconds = ns / 1e9;
  outcome.checks = (to.progress.answered - from.progress.answered) * options.checks_per_request;
  outcome.bytes_out = to.progress.bytes_out - from.progress.bytes_out;
  outcome.bytes_in = to.progress.bytes_in - from.progress.bytes_in;
  outcome.generator_cores = static_cast<double>(to.own_cpu_ns - from.own_cpu_ns) / ns;
  if (from.server_cpu_ns && to.server_cpu_ns) {
    outcome.server_cores = static_cast<double>(*to.server_cpu_ns - *from.server_cpu_ns) / ns;
  }
  return outcome;
}

void add_up(const Workers& workers, Outcome& outcome) {
  for (const auto& worker : workers) {
    outcome.times.merge(worker->times());
    outcome.denied += worker->answers().denied;
    outcome.errors += worker->answers().errors;
    outcome.unanswered += worker->unanswered();
    if (outcome.first_error.empty()) outcome.first_error = worker->answers().first_error;
  }
}

// Starts the threads and joins them.
Result<Outcome> run_workers(const Workers& workers, const Options& options) {
  Moment from = look(workers, options.pid);
  Worker::Times times;
  times.start_ns = read_stopwatch().count();
  times.measure_ns = times.start_ns + options.warmup.count();
  times.end_ns = times.measure_ns + options.duration.count();
  std::vector<std::jthread> threads;
  for (const auto& worker : workers) threads.emplace_back([&worker, &times] { worker->run(times); });

  if (options.warmup.count() > 0) {
    sleep_until(times.measure_ns, workers);
    from = look(workers, options.pid);
  }
  Result<void> ended;
  if (options.each_key_once) {
    ended = wait_for_all(workers);
  } else {
    sleep_until(times.end_ns, workers);
  }
  const Moment to = look(workers, options.pid);
  if (options.rate == 0 || any_failed(workers)) {  // an open loop waits for its last answers
    for (const auto& worker : workers) worker->stop();
  }
  threads.clear();
  if (!ended) return fail(ended.error());
  return difference(from, to, options);
}

}  // namespace

std::optional<double> Outcome::server_ns_per_check() const {
  if (!server_cores || checks == 0) return {};
  return *server_cores * seconds * 1e9 / static_cast<double>(checks);
}

Result<Outcome> run_load(const Options& options) {
  auto workers = open_workers(options);
  if (!workers) return fail(workers.error());
  if (options.pid > 0 && !process_cpu_ns(options.pid)) {
    return fail(ErrorCode::not_found, "no process has the id " + std::to_string(options.pid));
  }
  auto outcome = run_workers(*workers, options);
  for (const auto& worker : *workers) {
    if (worker->error()) return fail(*worker->error());
  }
  if (!outcome) return outcome;
  add_up(*workers, *outcome);
  // An answer at the end of the warm-up may be in one of the two only.
  if (outcome->checks == 0 || outcome->times.count() == 0) {
    return fail(ErrorCode::unavailable, "no answer from " + base::to_string(options.target));
  }
  return outcome;
}

}  // namespace weir::load_generator
