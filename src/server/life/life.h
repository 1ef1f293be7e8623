// A server's life after its listeners are open: signals, shutdown, upgrade to a successor, and watchdog.
//
//   SIGTERM  not ready, but still serving; after the delay the listeners close, and requests in flight are finished
//   SIGINT   the same without the delay; a second SIGTERM or SIGINT ends it at once, whatever a loop waits for
//   SIGUSR2  starts a successor; once that serves, it gets the listeners, clients move to it, and this process ends
//   SIGHUP   calls on_hangup; without one, it only writes a line to the log
//
// The loops do the work; this class decides when. One thread, but for upgrade() and note_loop_ended(). Tested by
// life_test.cc and tests/server/drain.sh, upgrade.sh and systemd.sh there.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "server/life/heartbeat.h"
#include "server/life/held_sockets.h"
#include "server/life/inheritance.h"
#include "server/life/service_manager.h"
#include "server/life/signals.h"
#include "server/life/successor.h"
#include "server/loop/loop.h"
#include "weir/verdict.h"

namespace weir::server::life {

struct LifeSettings {
  Inheritance inherited{};            // listening sockets to use, whatever the addresses say
  ServiceManager* manager = nullptr;  // is notified of all this; it must outlive the server
  Micros drain_delay{2'000'000};      // after SIGTERM: how long it still serves, though not ready
  Micros drain_max{10'000'000};       // after that: how long requests in flight may take
  Micros upgrade_max{30'000'000};     // how long a successor may take to be ready
  Succession succession{};
  bool keeps_state = false;  // a successor would keep all counts
};

// Flags by which the sessions of all loops learn of the end.
struct Ending {
  std::atomic<bool> stopping{false};  // the server stops: clients should send no more
  std::atomic<bool> leaving{false};   // this process ends: connections should move on
};

class Life {
 public:
  using Loops = std::vector<std::unique_ptr<loop::Loop>>;

  // All must outlive it.
  Life(LifeSettings& settings, const Loops& loops, HeldSockets& sockets)
      : settings_(settings), loops_(loops), sockets_(sockets) {}

  const Ending& ending() const { return ending_; }

  // Handles the signals from now on. `on_hangup` may be empty; SIGHUP does not end the process even then. The first
  // `serving` loops serve clients, and the watchdog checks them; those after them may wait for a disk. Returns false
  // with errno if the kernel refuses.
  bool open(std::function<void()> on_hangup, std::size_t serving);
  // Runs until every loop has reported its end.
  void run();
  // After run(): a second stop signal came, or the drain time is used up. Remaining work may be skipped.
  bool is_hurried();
  static void note_loop_ended() { Signals::send(0); }
  // Does what SIGUSR2 does. Any thread.
  static void upgrade();

 private:
  void on_signal(int signal);
  void on_time();
  void stop(Micros delay);
  void begin_upgrade();
  std::string_view why_no_upgrade() const;
  void give_up_upgrade(std::string_view why);
  void on_successor();
  void hand_over();
  [[noreturn]] static void end_at_once();
  void stop_loops(loop::StopStage stage);
  template <class Notify>
  void manager(Notify notify);

  LifeSettings& settings_;
  const Loops& loops_;
  HeldSockets& sockets_;
  Ending ending_;
  Signals signals_;
  std::function<void()> on_hangup_;
  std::optional<Heartbeat> heartbeat_{};
  std::optional<Successor> successor_{};  // until it serves or has failed
  Micros successor_due_ = kNever;
  Micros drain_at_ = kNever;
  Micros leave_at_ = kNever;
  Micros end_at_ = kNever;  // end by then, even if a loop has not ended
  std::size_t serving_ = 0;
  bool is_stopping_ = false;
  bool is_hurried_ = false;
  bool has_handed_over_ = false;
};

}  // namespace weir::server::life
