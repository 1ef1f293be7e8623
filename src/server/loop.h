// An event loop: what arrives on all its connections in one turn is read, decided together, and answered.
//
// One thread each; only ask() may be called from elsewhere. A tick each second serves all time-outs, so that a
// connection costs no timer; answers that are held back have a calendar of their own. When file descriptors run out,
// accepting rests for a moment instead of spinning. Where decisions may wait, sessions are on fibers (fiber_session.h),
// and what those wait for is watched here, too; the loop ends when no fiber is left. Tested by tests/server/*.sh.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fiber.h"
#include "server/connection.h"
#include "server/counts.h"
#include "server/descriptor.h"
#include "server/far_end.h"
#include "weir/limiter.h"

namespace weir {

// What the loops share of a door: one cannot starve another, and what goes wrong is told once.
struct DoorState {
  std::atomic<std::size_t> open{0};
  std::atomic<std::int64_t> told_us{0};  // when a failure to accept was last told
};

// What stands behind a listener.
struct Door {
  Patience patience{};
  MakeSession make_session;
  Entrance entrance{};  // what comes before a session
  DoorState* state = nullptr;
  DoorCounts* counts = nullptr;  // this loop's
  std::size_t connections_max = 0;
  std::size_t refused_max = 0;  // beyond those: they are told so in peace; closing at once could throw the answer away
  bool is_sheddable = true;     // its clients can be answered without a decision, or turned away, when there is no time
};

enum class Stopped : std::uint8_t {
  drained,  // everything in flight was answered
  forced,   // by a second signal, or because the drain took too long
};

// What is asked of a loop, each more than the one before.
enum class Wish : std::uint8_t {
  serve,
  tell,   // who watches the server's health that it will stop
  shut,   // its doors: nobody is let in any more, who has connected is served
  drain,  // and end, once what is in flight is answered
  leave,  // now
};

class Loop {
 public:
  static constexpr std::size_t kRefusedMax = 64;  // of Door::refused_max, where there are descriptors enough

  virtual ~Loop() = default;
  // Before run().
  virtual void open(Descriptor listening, Door door) = 0;
  virtual Stopped run() = 0;
  // What it counts; read from any thread.
  virtual LoopCounts& counts() = 0;
  // From any thread. To ask for less than before changes nothing.
  virtual void ask(Wish wish) = 0;

 protected:
  Loop() = default;
  Loop(const Loop&) = default;
  Loop& operator=(const Loop&) = default;
};

struct LoopOptions {
  std::size_t buffers_max = 0;  // bytes of unfinished requests and unread answers, of all its connections
  Bounds bounds{};
  Gate* counting = nullptr;   // counts what is decided by limits that clients bring along; null: nobody does
  Fibers* fibers = nullptr;   // on which its sessions work, and which outlive it; null: nothing ever waits
  FarEnd* far_end = nullptr;  // what those wait for; outlives it, too
};

// The limiter and the gate outlive it.
Result<std::unique_ptr<Loop>> make_loop(Limiter& limiter, const LoopOptions& options);

}  // namespace weir
