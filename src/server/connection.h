// A socket with a session behind it, as a loop drives it: read, ask, settle, write once.
//
// In each turn a loop lets it read (on_readable()), and if it asks() something of the turn, lets it settle() and
// go_on() with what it had read, as often as need be; finish() then writes. Patience is counted in the loop's ticks of
// a second; nothing here reads a clock. A client that does not take its answers is read no further beyond a bound,
// and cut off if it takes none at all; a slow one is waited for. What all connections hold is counted: beyond the
// bound, one that holds more than a little and wants more is told so and closed. What comes before a session (see
// prelude.h) and TLS cost those that have none of it a look at a null pointer. One thread. Tested by
// connection_test.cc and tests/server/*.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/bounds.h"
#include "server/counts.h"
#include "server/descriptor.h"
#include "server/overload.h"
#include "server/prelude.h"
#include "server/room.h"
#include "server/session.h"
#include "server/turn.h"

namespace weir {

class Connection;

// What the connections of a loop share.
struct Shared {
  explicit Shared(Limiter& limiter, const Bounds& with = {}, Gate* counting = nullptr)
      : turn(limiter, counting), bounds(with), overload(with.shed_after) {}

  Turn turn;
  Room room;
  int epoll = -1;  // the loop's, in which each connection is watched
  const Bounds bounds;
  Overload overload;
  std::uint64_t tick = 0;            // seconds since the loop began
  std::size_t held = 0;              // bytes in the buffers of all connections
  std::size_t held_max = 0;          // beyond it, none may grow that holds more than a little
  std::size_t unwritten = 0;         // bytes of answers since somebody could write: a turn must not gather too many
  std::size_t preludes = 0;          // of this turn: those who are served already do not wait for many handshakes
  std::vector<Connection*> ready{};  // whose sessions are to be woken in this turn: what a fiber waited for has come
};

class Connection final : private SessionOwner {
 public:
  Connection(Descriptor socket, std::unique_ptr<Session> session, Patience patience, Shared& all, DoorCounts& counts);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  int descriptor() const { return socket_.get(); }

  // Before anything happens to it: its session is made when this is over.
  void begin_with(std::unique_ptr<Prelude> prelude);

  // What happens to it. After each of these comes finish(), before that the rounds of settle() and go_on().
  void on_readable();
  void on_gone();  // the peer has left, or something is wrong with the socket
  void on_tick();
  void on_due(Micros now);
  void tell_watchers();
  void drain();
  void refuse(GiveUp why);

  bool asks() const { return asked_; }
  void settle();
  void go_on();
  // Writes, and keeps what the session has not consumed. True if there is room for more answers now: another round.
  bool finish();

  bool is_dead() const { return !socket_; }
  // Whether the client would miss an answer if it were closed now: it has sent a request, or a part of one.
  bool has_request() const;
  // Of epoll: what it waits for.
  std::uint32_t interest() const;
  // What is closing waits for nothing but its client.
  Micros due() const { return is_closing_ ? kNever : session_->due(); }

  // The loop's own notes.
  struct Notes {
    std::uint32_t watched = 0;  // what epoll was told
    Micros due = kNever;        // when it is in the loop's calendar
    bool in_turn = false;
    bool in_asking = false;
    bool in_ready = false;
    void* client = nullptr;  // what it is a part of
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
  void give_up_prelude();
  void drain_prelude();
  ssize_t read_some(std::span<char> room);
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
  void watch_patience();

  Descriptor socket_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Prelude> prelude_;  // until the session is there
  std::unique_ptr<TlsStream> tls_;
  Patience patience_;
  Shared& all_;
  DoorCounts& counts_;
  std::string in_;         // what was left over from turns before
  std::string_view rest_;  // what the session has not consumed: of the room while a turn lasts, else all of in_
  std::string out_;        // what is to be written, from sent_ on
  std::size_t sent_ = 0;
  std::size_t held_ = 0;       // what all_.held counts of these and of the session
  std::uint64_t since_;        // the tick at which the phase, or the lingering, began
  std::uint64_t written_ = 0;  // the tick at which the client last took something, or was first asked to
  int queued_ = 0;             // bytes that the kernel held for the client at the last look
  Phase phase_ = Phase::idle;  // as the session sees it
  bool in_record_ = false;     // TLS: a part of one has come
  bool asked_ = false;
  bool has_spoken_ = false;  // the client has sent something
  bool is_full_ = false;     // the session waits for room in out_
  bool is_closing_ = false;  // after out_ is written
  bool is_lingering_ = false;
  bool is_draining_ = false;
  bool spoke_last_ = false;  // something was written while draining
  bool has_ended_ = false;   // the client sends no more
};

}  // namespace weir
