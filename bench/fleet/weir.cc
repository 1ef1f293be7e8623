// Runs checks of Weir's store on fibers. See contestants.h.
#include <poll.h>

#include <algorithm>

#include "fleet/contestants.h"

namespace weir::bench {
namespace {

constexpr std::size_t kFibersMax = 8'192;
constexpr std::size_t kAtOnce = 256;  // checks started in one turn, as by a loop of the server
constexpr int kWaitMs = 100;
constexpr int kTriesMax = 2'000;

std::chrono::nanoseconds seconds(double count) {
  return std::chrono::nanoseconds{static_cast<std::int64_t>(count * 1e9)};
}

}  // namespace

// Counts the checks of one run by how they were decided.
class Weir::Counting {
 public:
  Counting(Weir& weir, const Load& load) : weir_(weir), load_(load), begun_(read_stopwatch()), before_(weir.counts()) {}

  // Returns false if Redis did not decide, or if the check failed.
  bool check(std::chrono::nanoseconds from) {
    KeyOrder::Buffer buffer;
    const auto decision = weir_.limiter_->check(load_.keys.next(buffer), load_.limit);
    times_.add(read_stopwatch() - from);
    if (!decision) return false;
    ++made_[static_cast<std::size_t>(decision->decided_by)];
    return decision->decided_by != DecidedBy::local && decision->decided_by != DecidedBy::overloaded;
  }
  bool is_over() const {
    if (load_.checks > 0) return times_.count() >= load_.checks;
    return read_stopwatch() - begun_ >= seconds(load_.seconds);
  }
  std::chrono::nanoseconds begun() const { return begun_; }

  Figures figures() {
    const double took = static_cast<double>((read_stopwatch() - begun_).count()) / 1e9;
    const auto all = static_cast<double>(std::max<std::size_t>(1, times_.count()));
    const auto part = [&](DecidedBy decided_by) {
      return static_cast<double>(made_[static_cast<std::size_t>(decided_by)]) / all;
    };
    return {.checks_per_second = all / took * (1 - part(DecidedBy::local) - part(DecidedBy::overloaded)),
            .p50_us = times_.quantile_ns(0.5) / 1e3,
            .p99_us = times_.quantile_ns(0.99) / 1e3,
            .per_call = per_call(),
            .cached = part(DecidedBy::cached),
            .fallback = part(DecidedBy::local)};
  }

 private:
  double per_call() const {
    const base::PipelineCounts after = weir_.counts();
    const auto calls = static_cast<double>(after.calls - before_.calls);
    return calls == 0 ? 0 : static_cast<double>(after.answered - before_.answered) / calls;
  }

  Weir& weir_;
  const Load& load_;
  const std::chrono::nanoseconds begun_;
  const base::PipelineCounts before_;
  Times times_;
  std::array<std::uint64_t, 8> made_{};
};

Weir::Weir(const base::redis::Target& target, std::size_t keys, Micros deadline) : fibers_({.most = kFibersMax}) {
  fleet::FleetStoreOptions options;
  options.pipeline.deadline = deadline;
  options.target = target;
  store_ = std::make_shared<fleet::FleetStore>(options);
  limiter_ = std::make_unique<Limiter>(LimiterOptions{.keys = keys, .shared = store_});
  waiter_ = store_->make_waiter(fibers_);
}

Weir::Weir(std::size_t keys)
    : limiter_(std::make_unique<Limiter>(LimiterOptions{.keys = keys})), fibers_({.most = kFibersMax}) {}

base::PipelineCounts Weir::counts() const {
  return waiter_ == nullptr ? base::PipelineCounts{} : waiter_->pipeline().counts();
}

Weir::~Weir() {
  if (waiter_ != nullptr) waiter_->close();
}

void Weir::turn(int wait_ms) {
  if (waiter_ == nullptr) return;
  waiter_->flush();
  pollfd watched{waiter_->descriptor(), POLLIN, 0};
  if (poll(&watched, 1, wait_ms) > 0) waiter_->turn();
}

Figures Weir::run(const Load& load) {
  Counting counting(*this, load);
  do {
    for (std::size_t i = fibers_.in_flight(); i < load.in_flight && !counting.is_over(); ++i) {
      fibers_.start([&counting] {
        while (!counting.is_over() && counting.check(read_stopwatch())) {
        }
      });
    }
    turn(kWaitMs);
  } while (fibers_.in_flight() > 0 || !counting.is_over());
  return counting.figures();
}

Figures Weir::run_at(const Load& load, double rate) {
  Counting counting(*this, load);
  std::uint64_t asked = 0;
  while (!counting.is_over()) {
    const auto now = read_stopwatch() - counting.begun();
    const auto due = static_cast<std::uint64_t>(static_cast<double>(now.count()) / 1e9 * rate);
    for (std::size_t i = 0; i < kAtOnce && asked < due; ++i) {
      const auto at = counting.begun() + seconds(static_cast<double>(++asked) / rate);
      if (!fibers_.start([&counting, at] { counting.check(at); })) break;
    }
    turn(0);
  }
  const Figures figures = counting.figures();
  while (fibers_.in_flight() > 0) turn(kWaitMs);
  return figures;
}

void Weir::on_fiber(const std::function<void()>& work) {
  fibers_.start([&work] { work(); });
  while (fibers_.in_flight() > 0) turn(kWaitMs);
}

void Weir::wait_until(DecidedBy decided_by, const Limit& limit) {
  bool is_so = false;
  for (int i = 0; i < kTriesMax && !is_so; ++i) {
    on_fiber([&] {
      const auto decision = limiter_->check("warm", limit);
      is_so = decision && decision->decided_by == decided_by;
    });
    turn(1);
  }
  if (!is_so) throw Missing{"the store still does not decide as expected"};
}

void Weir::wait_until_two() {
  for (int i = 0; i < kTriesMax && store_->nodes() < 2; ++i) turn(kWaitMs / 10);
  if (store_->nodes() < 2) throw Missing{"the nodes do not find each other"};
}

double Weir::wait_until_synced() {
  const auto begun = read_stopwatch();
  for (int i = 0; i < 60'000 && !store_->unsynced_charges().is_synced(); ++i) turn(1);
  if (!store_->unsynced_charges().is_synced()) throw Missing{"not all charges were written back"};
  return static_cast<double>((read_stopwatch() - begun).count()) / 1e9;
}

void Weir::wait_until_strict(const Limit& limit) { wait_until(DecidedBy::strict, limit); }
void Weir::wait_until_fallback(const Limit& limit) {
  for (int i = 0; i < 10; ++i) wait_until(DecidedBy::local, limit);
}

}  // namespace weir::bench
