// An event loop: what arrives on all its connections in one turn is read, decided together, and answered.
//
// One thread each; only stop() may be called from elsewhere. A tick each second serves all time-outs, so that a
// connection costs no timer; answers that are held back have a calendar of their own. When file descriptors run out,
// accepting rests for a moment instead of spinning. Tested by tests/server/*.sh.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/connection.h"
#include "server/counts.h"
#include "server/descriptor.h"
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
  std::function<std::unique_ptr<Session>(std::string peer)> make_session;  // `peer` is the client's address
  DoorState* state = nullptr;
  DoorCounts* counts = nullptr;  // this loop's
  std::size_t connections_max = 0;
  bool is_sheddable = true;  // its clients can be answered without a decision, or turned away, when there is no time
};

enum class Stopped : std::uint8_t {
  drained,  // everything in flight was answered
  forced,   // by a second signal, or because the drain took too long
};

class Loop {
 public:
  // Connections beyond the bound that are told so in peace; closing at once could throw the answer away.
  static constexpr std::size_t kRefusedMax = 64;

  virtual ~Loop() = default;
  // Before run().
  virtual void open(Descriptor listening, Door door) = 0;
  virtual Stopped run() = 0;
  // What it counts; read from any thread.
  virtual LoopCounts& counts() = 0;
  // From any thread: finish what is in flight and end; again: end now.
  virtual void stop() = 0;

 protected:
  Loop() = default;
  Loop(const Loop&) = default;
  Loop& operator=(const Loop&) = default;
};

// `buffers_max`: bytes of unfinished requests and unread answers, of all its connections. The limiter outlives it.
Result<std::unique_ptr<Loop>> make_loop(Limiter& limiter, std::size_t buffers_max, const Bounds& bounds = {});

}  // namespace weir
