// A server's life after its doors are open: signals, its end, the process that takes its place, who is told of it.
//
//   SIGTERM  not ready, and goes on; after the delay the doors are shut, what is in flight is finished
//   SIGINT   the same at once; either of them again: now, whatever a loop may be waiting for
//   SIGUSR2  a successor is started; once it serves, this process gives it the doors, lets its clients move on, and
//            ends
//   SIGHUP   what the server was given to do then; without anything, a line in the log
//
// The loops do the work; this tells them when. One thread, but for upgrade(). Tested by life_test.cc and
// tests/server/drain.sh, upgrade.sh and systemd.sh there.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "server/heartbeat.h"
#include "server/held_sockets.h"
#include "server/inheritance.h"
#include "server/loop.h"
#include "server/service_manager.h"
#include "server/signals.h"
#include "server/successor.h"
#include "weir/verdict.h"

namespace weir {

struct LifeSettings {
  Inheritance inherited{};            // sockets to serve on, whatever the addresses say
  ServiceManager* manager = nullptr;  // which wants to hear of all this; it outlives the server
  Micros drain_delay{2'000'000};      // after SIGTERM: it is not ready, and goes on
  Micros drain_max{10'000'000};       // then, to finish what is in flight
  Micros upgrade_max{30'000'000};     // for a successor to be ready
  Succession succession{};
  bool keeps_state = false;  // a successor would know all counts
};

// What the sessions of all loops are told of the end.
struct Ending {
  std::atomic<bool> stopping{false};  // the server is: nobody should send more
  std::atomic<bool> leaving{false};   // this process is: connections should move on
};

class Life {
 public:
  using Loops = std::vector<std::unique_ptr<Loop>>;

  // All outlive it.
  Life(LifeSettings& settings, const Loops& loops, HeldSockets& sockets)
      : settings_(settings), loops_(loops), sockets_(sockets) {}

  const Ending& ending() const { return ending_; }

  // Takes the signals from now on; `on_hangup` may be empty: SIGHUP then ends nothing, either. The first `serving`
  // loops serve everybody, and a watchdog hears of them; those behind them may wait for a disk. False, and errno, if
  // the kernel refuses.
  bool open(std::function<void()> on_hangup, std::size_t serving);
  // Until every loop has told that it has ended.
  void run();
  // After run(): the server was told a second time to stop, or has used up its time. What is left need not be done.
  bool is_hurried();
  static void tell_loop_ended() { Signals::tell(0); }
  // From any thread, as SIGUSR2.
  static void upgrade();

 private:
  void on_signal(int signal);
  void on_time();
  void stop(Micros delay);
  void begin_upgrade();
  std::string_view why_no_upgrade() const;
  void give_up_upgrade(std::string_view why);
  void hear_successor();
  void hand_over();
  [[noreturn]] static void end_at_once();
  void ask(Wish wish);
  template <class Tell>
  void manager(Tell tell);

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
  Micros end_at_ = kNever;  // though a loop has not ended
  std::size_t serving_ = 0;
  bool is_stopping_ = false;
  bool is_hurried_ = false;
  bool has_handed_over_ = false;
};

}  // namespace weir
