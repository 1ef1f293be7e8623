// The protocol of one connection, without its socket: bytes in, bytes out.
//
// A connection passes its input and learns how much of it was used. Answers are appended in order. This makes every
// protocol testable byte by byte, and independent of the loop. Checks may join the loop's turn, which decides those
// of all connections at once: consume() asks, settle() answers.
//
// A session belongs to one thread. Implemented by resp_session.cc, http_session.cc and grpc_session.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/loop/bounds.h"
#include "server/loop/turn.h"
#include "weir/verdict.h"

namespace weir {

// What a session waits for; the connection has a time-out for each.
enum class Phase : std::uint8_t { idle, header, body };

struct Progress {
  std::size_t consumed = 0;
  std::size_t answered = 0;  // requests that were completed
  Phase phase = Phase::idle;
  bool close = false;  // after the output is written
  bool full = false;   // stopped because of Bounds::output_max: call again with the rest
  bool asked = false;  // checks have joined the turn: call settle(), then consume() with the rest
};

// Why the server ends a connection.
enum class GiveUp : std::uint8_t {
  too_slow,     // a request was begun and not finished in time
  no_room,      // the memory of all connections is at its bound
  too_crowded,  // the number of open connections is at its bound
  too_busy,     // the server is overloaded
};

class Desk;  // desk.h

// Drives a session, and is notified if the session must be woken although nothing arrived.
class SessionOwner {
 public:
  virtual void on_ready() = 0;

 protected:
  SessionOwner() = default;
  ~SessionOwner() = default;
  SessionOwner(const SessionOwner&) = default;
  SessionOwner& operator=(const SessionOwner&) = default;
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
  virtual void belong_to(SessionOwner*) {}
  // The state for its requests from now on, where there are fibers.
  virtual void sit_at(Desk&) {}

  // When to call wake() although nothing arrives; kNever: not at all. A time of Limiter::now().
  virtual Micros due() const { return kNever; }
  virtual void wake(Micros, std::string&) {}
  // An answer is delayed until wake(). Nothing is read meanwhile, and a client that leaves gives up its place. If
  // due() is kNever, the answer waits for a decision; a client that has only closed its sending side still gets it.
  virtual bool is_holding() const { return false; }

  // The server will stop soon, and serves until then. Notifies health watchers.
  virtual void tell_watchers(std::string&) {}
  // The server is stopping. Later answers say so, where the protocol can; delayed answers are released.
  virtual void drain(std::string& output) = 0;
  // While draining: whether the connection may end between two requests.
  virtual bool is_drained() const { return true; }

  // Writes the last answer before the connection is closed.
  virtual void give_up(GiveUp why, std::string& output) = 0;

  // Bytes of requests that were consumed but are still kept.
  virtual std::size_t held() const = 0;

 protected:
  Session() = default;
  Session(const Session&) = default;
  Session& operator=(const Session&) = default;
};

}  // namespace weir
