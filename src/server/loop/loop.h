// An event loop: in each turn it reads all input of its connections, decides it together, and answers.
//
// One thread each; only ask() may be called from other threads. A tick every second serves all time-outs, so that a
// connection needs no timer. Delayed answers have a calendar of their own. When file descriptors run out, the loop
// pauses accepting for a moment instead of spinning. If decisions may wait, sessions run on fibers (fiber_session.h),
// and the loop also watches their backend; it ends when no fiber is left. Tested by tests/server/*.sh.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/descriptor.h"
#include "base/fiber.h"
#include "server/loop/connection.h"
#include "server/loop/counts.h"
#include "server/loop/far_end.h"
#include "weir/limiter.h"

namespace weir {

// A listener's state shared by all loops: the bound on its connections applies to all, and errors are logged once.
struct DoorState {
  std::atomic<std::size_t> open{0};
  std::atomic<std::int64_t> told_us{0};  // when a failure to accept was last logged
};

// Everything that belongs to a listener.
struct Door {
  Patience patience{};
  MakeSession make_session;
  Entrance entrance{};  // what precedes a session
  DoorState* state = nullptr;
  DoorCounts* counts = nullptr;  // of this loop
  std::size_t connections_max = 0;
  std::size_t refused_max = 0;  // connections beyond those that get an error; closing them at once could lose it
  bool is_sheddable = true;     // under overload, its clients may get answers without a decision, or be refused
};

enum class Stopped : std::uint8_t {
  drained,  // every request in flight was answered
  forced,   // by a second signal, or because draining took too long
};

// What a loop is asked to do; each includes the ones before.
enum class Wish : std::uint8_t {
  serve,
  tell,   // health watchers that the server will stop
  shut,   // the listeners; open connections are still served
  drain,  // end once all requests in flight are answered
  leave,  // end now
};

class Loop {
 public:
  static constexpr std::size_t kRefusedMax = 64;  // for Door::refused_max, if there are enough descriptors

  virtual ~Loop() = default;
  // Call it before run().
  virtual void open(Descriptor listening, Door door) = 0;
  virtual Stopped run() = 0;
  // The loop's counters; any thread may read them.
  virtual LoopCounts& counts() = 0;
  // Any thread. A wish below an earlier one has no effect.
  virtual void ask(Wish wish) = 0;

 protected:
  Loop() = default;
  Loop(const Loop&) = default;
  Loop& operator=(const Loop&) = default;
};

struct LoopOptions {
  std::size_t buffers_max = 0;  // bytes of unfinished requests and unread answers, of all its connections
  Bounds bounds{};
  Gate* counting = nullptr;   // counts decisions by limits that clients send; null: not counted
  Fibers* fibers = nullptr;   // the fibers that run its sessions; must outlive it; null: decisions never wait
  FarEnd* far_end = nullptr;  // what the fibers wait for; must outlive it, too
};

// Limiter and gate must outlive it.
Result<std::unique_ptr<Loop>> make_loop(Limiter& limiter, const LoopOptions& options);

}  // namespace weir
