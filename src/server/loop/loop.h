// An event loop: in each turn it reads all input of its connections, decides it together, and answers.
//
// Each loop has one thread; other threads may call only stop() and counts(). A tick every second serves all time-outs,
// so that a connection needs no timer. Delayed answers have a calendar of their own. When file descriptors run out, the
// loop pauses accepting for a moment instead of spinning. If decisions may wait, sessions run on fibers
// (fiber_session.h), and the loop also watches their backend; it ends when no fiber is left. Tested by
// tests/server/*.sh.
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
#include "server/loop/fiber_task.h"
#include "weir/limiter.h"

namespace weir::server::loop {

// A listener's state shared by all loops: the bound on its connections applies to all, and errors are logged once.
struct ListenerState {
  std::atomic<std::size_t> open{0};
  std::atomic<std::int64_t> logged_us{0};  // when a failure to accept was last logged
};

// Everything that belongs to a listener.
struct ListenerSetup {
  Timeouts timeouts{};
  MakeSession make_session;
  HandshakeOptions handshake{};  // what precedes a session
  ListenerState* state = nullptr;
  ListenerCounts* counts = nullptr;  // of this loop
  std::size_t connections_max = 0;
  std::size_t refused_max = 0;  // refused connections that may be open, so that they receive the error before the close
  bool is_sheddable = true;     // under overload, its clients may get answers without a decision, or be refused
};

enum class Stopped : std::uint8_t {
  drained,  // every request in flight was answered
  forced,   // by a second signal, or because draining took too long
};

// The stages in which a loop stops. From `shut` on, each stage includes the ones before.
enum class StopStage : std::uint8_t {
  serve,
  announce,  // notify health watchers that the server will stop
  shut,      // close the listeners; open connections are still served
  drain,     // end once all requests in flight are answered
  leave,     // end now
};

class Loop {
 public:
  static constexpr std::size_t kRefusedMax = 64;  // for ListenerSetup::refused_max, if there are enough descriptors

  virtual ~Loop() = default;
  // Call it before run().
  virtual void open(base::Descriptor listening, ListenerSetup setup) = 0;
  virtual Stopped run() = 0;
  // The loop's counters; any thread may read them.
  virtual LoopCounts& counts() = 0;
  // Any thread. A stage below an earlier one has no effect.
  virtual void stop(StopStage stage) = 0;
};

struct LoopOptions {
  std::size_t buffers_max = 0;  // bytes of unfinished requests and unread answers, of all its connections
  Bounds bounds{};
  Gate* counting = nullptr;         // counts decisions by limits that clients send; null: not counted
  base::Fibers* fibers = nullptr;   // the fibers that run its sessions; must outlive it; null: decisions never wait
  AsyncBackend* backend = nullptr;  // what the fibers wait for; must outlive it, too
};

// Limiter and gate must outlive it.
Result<std::unique_ptr<Loop>> make_loop(Limiter& limiter, const LoopOptions& options);

}  // namespace weir::server::loop
