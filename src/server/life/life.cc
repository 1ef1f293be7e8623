// One thread that waits for signals and time-outs. See life.h.
#include "server/life/life.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>

#include "log/log.h"
#include "weir/clock.h"

namespace weir::server::life {
namespace {

// After the handover to a successor: a client may use its connection here once more, and learns that this is the last
// time.
constexpr Micros kMoveOn{1'000'000};
// After a second signal: a loop that has not ended by then waits for the kernel.
constexpr Micros kLeaveMax{1'000'000};

// A monotonic time, independent of the time of day.
Micros stopwatch() { return std::chrono::duration_cast<Micros>(read_stopwatch()); }

}  // namespace

bool Life::open(std::function<void()> on_hangup, std::size_t serving) {
  serving_ = serving;
  on_hangup_ = std::move(on_hangup);
  return signals_.open({SIGTERM, SIGINT, SIGUSR2, SIGHUP});
}

void Life::upgrade() { Signals::send(SIGUSR2); }

void Life::run() {
  // With a predecessor, that process notifies the service manager until it has handed over.
  if (!settings_.inherited.predecessor) manager([](ServiceManager& manager) { manager.ready(); });
  notify_predecessor(settings_.inherited.predecessor);
  heartbeat_.emplace(settings_.manager == nullptr ? Micros{0} : settings_.manager->watchdog(), serving_);
  for (std::size_t running = loops_.size(); running > 0;) {
    const Micros next = std::min({drain_at_, leave_at_, end_at_, successor_due_, heartbeat_->due()});
    const int signal = signals_.next(next - stopwatch(), successor_ ? successor_->descriptor() : -1);
    if (signal == 0) --running;
    if (signal > 0) on_signal(signal);
    if (signal == Signals::kOther) on_successor();
    on_time();
  }
}

void Life::on_signal(int signal) {
  if (signal == SIGHUP) {
    manager([](ServiceManager& manager) { manager.reloading(); });
    if (on_hangup_) return on_hangup_();
    log::log(log::LogLevel::info, "nothing to reload: the server was started without --config and without TLS");
    return manager([](ServiceManager& manager) { manager.ready(); });
  }
  if (signal == SIGUSR2) return begin_upgrade();
  if (std::exchange(is_stopping_, true)) {
    end_at_ = std::min(end_at_, stopwatch() + kLeaveMax);
    return stop_loops(loop::StopStage::leave);
  }
  if (successor_) on_successor();  // it may serve by now, and then it keeps the listeners
  if (has_handed_over_) return;    // already ending
  if (successor_) give_up_upgrade("the server received a signal to stop");
  stop(signal == SIGTERM ? settings_.drain_delay : Micros{0});
}

void Life::stop(Micros delay) {
  manager([&](ServiceManager& manager) { manager.stopping(delay + settings_.drain_max); });
  ending_.stopping = ending_.leaving = true;
  stop_loops(loop::StopStage::announce);
  drain_at_ = stopwatch() + delay;
}

void Life::on_time() {
  const Micros now = stopwatch();
  if (now >= drain_at_) {
    drain_at_ = kNever;
    leave_at_ = now + settings_.drain_max;
    sockets_.close();  // now, because later the files may belong to another server
    stop_loops(loop::StopStage::drain);
  }
  if (now >= leave_at_) {
    leave_at_ = kNever;
    stop_loops(loop::StopStage::leave);
  }
  if (now >= end_at_) end_at_once();
  if (now >= successor_due_) give_up_upgrade("the new process was not ready in time");
  if (now >= heartbeat_->due()) {
    std::vector<std::uint64_t> ticks;
    for (std::size_t i = 0; i < serving_; ++i) ticks.push_back(loops_[i]->counts().ticks.get());
    if (heartbeat_->look(now, ticks)) manager([](ServiceManager& manager) { manager.alive(); });
  }
}

std::string_view Life::why_no_upgrade() const {
  if (is_stopping_ || has_handed_over_) return "the server is shutting down";
  if (successor_) return "an upgrade is already in progress";
  if (!settings_.keeps_state) {
    return "an upgrade would lose the counts in memory; start the server with --state FILE";
  }
  if (getpid() == 1) return "this is process 1, and when it exits, the container ends; restart the container";
  return {};
}

void Life::begin_upgrade() {
  if (const std::string_view why = why_no_upgrade(); !why.empty()) {
    return log::log(log::LogLevel::error, "cannot start upgrade", {{"reason", why}});
  }
  auto started = Successor::start(settings_.succession, sockets_.sockets(), sockets_.listeners_with_files());
  if (!started) return log::log(log::LogLevel::error, "cannot start upgrade", {{"reason", started.error().message}});
  successor_ = *std::move(started);
  successor_due_ = stopwatch() + settings_.upgrade_max;
  log::log(log::LogLevel::info, "upgrade started, waiting for the new process",
           {{"pid", std::to_string(successor_->pid())}});
}

void Life::give_up_upgrade(std::string_view why) {
  successor_due_ = kNever;
  if (successor_->why().empty()) successor_->end();
  log::log(log::LogLevel::error, "upgrade failed, this process keeps serving", {{"reason", why}});
  successor_.reset();
}

void Life::on_successor() {
  const Successor::Report report = successor_->read_report();
  if (report == Successor::Report::failed) return give_up_upgrade(std::string(successor_->why()));
  if (report == Successor::Report::ready) hand_over();
}

void Life::hand_over() {
  const pid_t pid = successor_->pid();
  log::log(log::LogLevel::info, "new process took over, draining this process", {{"pid", std::to_string(pid)}});
  manager([pid](ServiceManager& manager) { manager.hand_over(pid); });
  successor_.reset();
  successor_due_ = kNever;
  has_handed_over_ = ending_.leaving = true;
  sockets_.give_away();
  stop_loops(loop::StopStage::shut);
  drain_at_ = stopwatch() + kMoveOn;
}

// Safe for the state file, whose content is consistent at any moment.
void Life::end_at_once() {
  log::log(log::LogLevel::error, "second stop signal, exiting before all threads have ended");
  log::end_log();
  _exit(1);
}

bool Life::is_hurried() {
  for (int signal = 0; (signal = signals_.next(Micros{0}, -1)) >= 0;) {
    is_hurried_ = is_hurried_ || signal == SIGTERM || signal == SIGINT;
  }
  return is_hurried_;
}

void Life::stop_loops(loop::StopStage stage) {
  is_hurried_ = stage == loop::StopStage::leave;
  for (const auto& loop : loops_) loop->stop(stage);
}

template <class Notify>
void Life::manager(Notify notify) {
  if (settings_.manager != nullptr) notify(*settings_.manager);
}

}  // namespace weir::server::life
