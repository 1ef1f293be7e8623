// A socket with its session, driven by a loop: read, ask, settle, write once.
//
// In each turn the loop calls on_readable(). If the connection then asks() for decisions of the turn, the loop calls
// settle() and go_on(), as often as needed. finish() then writes. Time-outs count in the loop's ticks of one second;
// nothing here reads a clock.
//
// If a client does not read its answers, the server stops reading from it at a bound, and later closes the connection.
// A client that reads slowly keeps its connection. The memory of all connections is counted. Beyond the bound, a
// connection that already uses more than 16 KiB and needs more gets an error and is closed. Connections without TLS and
// PROXY header (handshake.h) pay only for the test of a null pointer. One thread. Tested by connection_test.cc and
// tests/server/*.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "server/loop/bounds.h"
#include "server/loop/counts.h"
#include "server/loop/handshake.h"
#include "server/loop/overload.h"
#include "server/loop/session.h"
#include "server/loop/turn.h"

namespace weir::server::loop {

class Connection;

// State shared by the connections of a loop.
struct Shared {
  explicit Shared(Limiter& limiter, const Bounds& with = {}, Gate* counting = nullptr)
      : turn(limiter, counting), bounds(with), overload(with.shed_after) {}

  Turn turn;
  TurnBuffer buffer;
  int epoll = -1;  // the loop's epoll descriptor, which watches each connection
  const Bounds bounds;
  Overload overload;
  std::uint64_t tick = 0;            // seconds since the loop began
  std::size_t held = 0;              // bytes in the buffers of all connections
  std::size_t held_max = 0;          // beyond it, a connection that uses more than 16 KiB must not grow
  std::size_t unwritten = 0;         // bytes of answers since the last chance to write: a turn must not gather too many
  std::size_t handshakes = 0;        // handshakes in this turn: open connections must not wait for many of them
  std::vector<Connection*> ready{};  // sessions to wake in this turn: their fiber's answer has come
};

class Connection final : private SessionOwner {
 public:
  Connection(base::Descriptor socket, std::unique_ptr<Session> session, Timeouts timeouts, Shared& all,
             ListenerCounts& counts);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  int descriptor() const { return socket_.get(); }

  // Call it first. The session is made when the handshake is done.
  void begin_with(std::unique_ptr<Handshake> handshake);

  // Events. finish() follows each of them, after the rounds of settle() and go_on().
  void on_readable();
  void on_gone();  // the peer has closed, or the socket has an error
  void on_tick();
  void on_due(Micros now);
  void announce_stop();
  void drain();
  void refuse(GiveUp why);

  bool asks() const { return asked_; }
  void settle();
  void go_on();
  // Writes, and keeps what the session has not consumed. True if there is now space for more answers: another round.
  bool finish();

  bool is_dead() const { return !socket_; }
  // Whether closing now would lose an answer: the client has sent a request, or a part of one.
  bool has_request() const;
  // The epoll events to watch.
  std::uint32_t interest() const;
  // A closing connection waits for its client only.
  Micros due() const { return is_closing_ ? kNever : session_->due(); }

  // Bookkeeping of the loop.
  struct Notes {
    std::uint32_t watched = 0;  // the events registered with epoll
    Micros due = kNever;        // its time in the loop's calendar
    bool in_turn = false;
    bool in_asking = false;
    bool in_ready = false;
    void* client = nullptr;  // the loop's object that contains this connection
  };
  Notes notes{};

 private:
  void on_ready() override;
  bool has_output() const { return sent_ < out_.size(); }
  bool waits_to_write() const { return has_output() || (tls_ && tls_->wants_write()); }
  bool is_midway() const { return phase() != Phase::idle || !in_.empty() || session_->is_holding(); }
  // A part of a TLS record may be a part of a request.
  Phase phase() const { return phase_ == Phase::idle && in_record_ ? Phase::header : phase_; }
  bool takes_input() const;
  bool is_fresh() const;

  void die();
  void cut_off();
  void part();
  template <class Step>
  void guarded(Step step);
  void receive();
  void note_record();
  void prepare();
  void give_up_handshake();
  void drain_handshake();
  ssize_t read_some(std::span<char> buffer);
  ssize_t write_some(std::string_view bytes);
  void consume();
  void consume_rest();
  void after_hold(bool was_holding);
  void give_up(GiveUp why);
  void flush();
  void keep_rest();
  void drop_input();
  void end_if_drained();
  bool is_growing_too_much();
  bool is_taking();
  void linger();
  void check_timeouts();

  base::Descriptor socket_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Handshake> handshake_;  // until there is a session
  std::unique_ptr<TlsStream> tls_;
  Timeouts timeouts_;
  Shared& all_;
  ListenerCounts& counts_;
  std::string in_;         // unconsumed input of earlier turns
  std::string_view rest_;  // unconsumed input: in the turn's buffer during a turn, else all of in_
  std::string out_;        // output; the bytes from sent_ on are not yet written
  std::size_t sent_ = 0;
  std::size_t held_ = 0;       // bytes of these and of the session that all_.held includes
  std::uint64_t since_;        // the tick at which the phase, or the lingering, began
  std::uint64_t written_ = 0;  // the tick at which the client last read something, or output first waited for it
  int queued_ = 0;             // bytes in the kernel's send queue at the last look
  Phase phase_ = Phase::idle;  // the session's phase
  bool in_record_ = false;     // TLS: a record has begun and is incomplete
  bool asked_ = false;
  bool has_spoken_ = false;  // the client has sent something
  bool is_full_ = false;     // the session waits for space in out_
  bool is_closing_ = false;  // after out_ is written
  bool is_lingering_ = false;
  bool is_draining_ = false;
  bool spoke_last_ = false;  // something was written while draining
  bool has_ended_ = false;   // the client has closed its sending side
};

}  // namespace weir::server::loop
