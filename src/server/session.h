// One connection's conversation, without its socket: bytes in, bytes out.
//
// A connection hands over what has arrived and is told how much of it was used; answers are appended in
// order. That keeps every protocol testable byte by byte and lets the loop be replaced beneath it. Checks may be put
// into the loop's turn, which decides those of all connections at once: consume() asks, settle() answers.
// A session belongs to one thread. Implemented by resp_session.cc, http_session.cc and grpc_session.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/bounds.h"
#include "server/turn.h"
#include "weir/verdict.h"

namespace weir {

// What a session waits for; the connection has a patience for each.
enum class Phase : std::uint8_t { idle, header, body };

struct Progress {
  std::size_t consumed = 0;
  std::size_t answered = 0;  // requests that were completed
  Phase phase = Phase::idle;
  bool close = false;  // once the output is written
  bool full = false;   // stopped because of Bounds::output_max: call again with the rest
  bool asked = false;  // something of the turn: settle() comes next, then consume() with the rest
};

// Why a connection ends before its client wanted it to.
enum class GiveUp : std::uint8_t {
  too_slow,     // a request was begun and not finished in time
  no_room,      // what all connections hold in memory is at its bound
  too_crowded,  // as many connections as may be are open
  too_busy,     // there is no time for those that are open already
};

class Desk;  // desk.h

// Whoever drives a session, and may be told that it is to be woken although nothing arrived.
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
  virtual ~Session() = default;  // the client has left: what was held for it is given back

  // `input` is everything not consumed so far. Called again with the same beginning and more behind it. Whoever asked
  // something of the turn stops at the first request whose answer must come after it and does not join it; the input
  // stays where it is until settle() has returned.
  virtual Progress consume(std::string_view input, Turn& turn, std::string& output) = 0;

  // The turn is decided: the answers to what was asked. True if the connection is to be closed after them.
  virtual bool settle(Turn&, std::string&) { return false; }

  // Who is told when something has come that a fiber waited for: wake() is to be called then. It outlives the session.
  virtual void belong_to(SessionOwner*) {}
  // What its requests are worked on with from now on, where there are fibers.
  virtual void sit_at(Desk&) {}

  // When wake() is to be called although nothing arrives; kNever: not at all. A time of Limiter::now().
  virtual Micros due() const { return kNever; }
  virtual void wake(Micros, std::string&) {}
  // An answer is held back until wake(): nothing is read, and a client that leaves gives up its place. If it is due at
  // no time, it waits for a decision, and a client that has only said that it will send no more is answered.
  virtual bool is_holding() const { return false; }

  // The server will stop soon, and goes on until then: whoever watches its health is told.
  virtual void tell_watchers(std::string&) {}
  // The server is stopping: what is answered from now on says so, where the protocol can; what is held is released.
  virtual void drain(std::string& output) = 0;
  // Whether, when draining, the connection may end between two requests.
  virtual bool is_drained() const { return true; }

  // The last words before the connection is closed.
  virtual void give_up(GiveUp why, std::string& output) = 0;

  // Bytes of a request that were consumed but are still kept.
  virtual std::size_t held() const = 0;

 protected:
  Session() = default;
  Session(const Session&) = default;
  Session& operator=(const Session&) = default;
};

}  // namespace weir
