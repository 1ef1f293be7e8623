// The protocol of one connection, without its socket: bytes in, bytes out.
//
// A connection passes its input and learns how much of it was used. Answers are appended in order. This makes every
// protocol testable byte by byte, and independent of the loop. Checks may join the loop's turn, which decides those
// of all connections at once: consume() asks, settle() answers.
//
// A session belongs to one thread. Implemented by resp_session.cc, http_session.cc and grpc_session.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/loop/bounds.h"
#include "server/loop/overload.h"
#include "server/loop/turn.h"
#include "weir/verdict.h"

namespace weir::server::loop {

// What a session waits for; the connection has a time-out for each.
enum class Phase : std::uint8_t { idle, header, body };

struct Progress {
  std::size_t consumed = 0;
  std::size_t answered = 0;  // requests that were completed
  Phase phase = Phase::idle;
  bool close = false;  // after the output is written
  bool full = false;   // stopped because of Bounds::output_max: call again with the rest
  bool asked = false;  // checks have joined the turn: call settle(), then consume() with the rest

  // Adds a later step, except for its `consumed` and `asked`.
  void add(const Progress& step) {
    answered += step.answered;
    phase = step.phase;
    full = step.full;
    close = close || step.close;
  }
};

// Why the server ends a connection.
enum class GiveUp : std::uint8_t {
  too_slow,     // a request was begun and not finished in time
  no_memory,    // the memory of all connections is at its bound
  too_crowded,  // the number of open connections is at its bound
  too_busy,     // the server is overloaded
};

// The reason, as clients read it.
constexpr std::string_view reason_of(GiveUp why) {
  constexpr std::array<std::string_view, 4> kReasons = {
      "the client did not finish the request in time",
      "all connections together have reached the memory limit; retry shortly",
      "too many connections are open; retry shortly", kOverloaded};
  return kReasons[static_cast<std::size_t>(why)];
}

class RequestContext;  // request_context.h

// Drives a session, and is notified if the session must be woken although nothing arrived.
class SessionOwner {
 public:
  virtual void on_ready() = 0;

 protected:
  ~SessionOwner() = default;
};

class Session {
 public:
  virtual ~Session() = default;  // if the client leaves: refunds or releases what was reserved for it

  // `input` is everything not consumed so far. The next call has the same beginning, with more behind it. A session
  // with checks in the turn stops at the first request that must be answered after them and cannot join the turn. The
  // input stays in place until settle() has returned.
  virtual Progress consume(std::string_view input, Turn& turn, std::string& output) = 0;

  // The turn is decided: writes the answers. True if the connection is to be closed after them.
  virtual bool settle(Turn&, std::string&) { return false; }

  // The owner is notified when the answer for a fiber has come, and then calls wake(). It must outlive the session.
  virtual void set_owner(SessionOwner*) {}
  // The state for its requests from now on, where there are fibers.
  virtual void use_context(RequestContext&) {}

  // The time at which to call wake() even if no input arrives, by Limiter::now(); kNever: no such time.
  virtual Micros due() const { return kNever; }
  virtual void wake(Micros, std::string&) {}
  // Whether an answer is delayed until wake(). Meanwhile the connection reads nothing, and ends if the client leaves.
  // If due() is kNever, the answer waits for a decision; a client that has only closed its sending side still gets it.
  virtual bool is_holding() const { return false; }

  // The server will stop soon, but still serves. Notifies health watchers.
  virtual void announce_stop(std::string&) {}
  // The server is stopping. Later answers say so if the protocol can. Delayed answers are written now.
  virtual void drain(std::string& output) = 0;
  // While draining: whether the connection may end between two requests.
  virtual bool is_drained() const { return true; }

  // Writes the last answer before the connection is closed.
  virtual void give_up(GiveUp why, std::string& output) = 0;

  // Bytes of requests that were consumed but are still kept.
  virtual std::size_t held() const = 0;
};

}  // namespace weir::server::loop
