// Reads and writes each socket once per turn; epoll reports when there is more. See connection.h.
#include "server/loop/connection.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"

namespace weir::server::loop {
namespace {

constexpr std::uint32_t kLingerMax = 2;
constexpr std::uint32_t kFreshMax = 1;  // seconds: a new client is about to send something
constexpr std::uint32_t kHandshakeMax = 10;
constexpr std::size_t kHandshakesMax = 16;  // of a turn; epoll reports the others again
constexpr std::size_t kBufferKeep = std::size_t{16} << 10;

}  // namespace

Connection::Connection(base::Descriptor socket, std::unique_ptr<Session> session, Timeouts timeouts, Shared& all,
                       ListenerCounts& counts)
    : socket_(std::move(socket)),
      session_(std::move(session)),
      timeouts_(timeouts),
      all_(all),
      counts_(counts),
      since_(all.tick) {
  session_->set_owner(this);
}

Connection::~Connection() { all_.held -= held_; }

// While a process is being started, it has a copy of every socket for a moment. A socket closed here stays open in
// that copy, and epoll would go on reporting its events. They would reach whatever object is at the old address by
// then. So remove it from epoll explicitly.
void Connection::die() {
  if (is_dead()) return;
  epoll_ctl(all_.epoll, EPOLL_CTL_DEL, socket_.get(), nullptr);
  socket_.close();
}

// Exceptions of a step go no further: without memory, this connection ends.
template <class Step>
void Connection::guarded(Step step) {
  if (is_dead()) return;
  try {
    step();
  } catch (...) {
    asked_ = false;
    die();
  }
}

bool Connection::is_fresh() const { return all_.tick - since_ <= kFreshMax; }

bool Connection::takes_input() const {
  return !is_full_ && !session_->is_holding() && out_.size() - sent_ < all_.bounds.output_max;
}

std::uint32_t Connection::interest() const {
  if (handshake_) return handshake_->wants_write() ? EPOLLOUT : EPOLLIN;
  std::uint32_t events = 0;
  if (waits_to_write()) events |= EPOLLOUT;
  if (has_ended_) return events;
  if (is_closing_ || takes_input()) events |= EPOLLIN;
  // A connection whose answer is only delayed ends if its client closes, so watch for that. Work in pieces continues
  // without the client, and so does a request that waits for a decision.
  if (!session_->is_holding()) return events;
  const Micros due = session_->due();
  if (due > Micros{0} && due != kNever) events |= EPOLLRDHUP;
  return events;
}

void Connection::on_readable() {
  guarded([this] {
    if (handshake_) {
      if (all_.handshakes >= kHandshakesMax) return;
      ++all_.handshakes;
      prepare();
    }
    if (!handshake_ && !is_dead()) receive();
  });
}

void Connection::begin_with(std::unique_ptr<Handshake> handshake) {
  handshake_ = std::move(handshake);
  phase_ = Phase::header;
}

// A handshake takes memory from its first byte on, even for a client that never completes it.
void Connection::prepare() {
  if (handshake_->will_shake_hands() && all_.held + TlsStream::kHandshakeHeld > all_.held_max) {
    counts_.refuse(Refused::buffers);
    return die();
  }
  const bool had_begun = handshake_->has_begun();
  switch (handshake_->go_on()) {
    case Handshake::Step::again:
      if (is_draining_ && !had_begun && handshake_->has_begun()) since_ = all_.tick;
      return;
    case Handshake::Step::failed:
      return give_up_handshake();
    case Handshake::Step::done:
      break;
  }
  tls_ = handshake_->stream();
  session_ = handshake_->make_session();
  session_->set_owner(this);
  handshake_.reset();
  phase_ = Phase::idle;
  since_ = all_.tick;
  if (is_draining_) session_->drain(out_);
}

// A client that sends nothing is not logged. Any other has something to read: an alert, or the plain text.
void Connection::give_up_handshake() {
  const std::unique_ptr<Handshake> handshake = std::move(handshake_);
  if (!handshake->has_begun()) return die();
  handshake->log_failure();
  counts_.refuse(handshake->why());
  is_closing_ = true;
  written_ = all_.tick;
  out_ = handshake->last_words();
}

// Like recv() and send(). Input after the last answer is dropped without decryption.
ssize_t Connection::read_some(std::span<char> buffer) {
  if (!tls_ || is_closing_) return recv(socket_.get(), buffer.data(), buffer.size(), 0);
  const std::size_t size = tls_->receive(buffer);
  if (size > 0 || (tls_->has_ended() && !tls_->has_failed())) return static_cast<ssize_t>(size);
  errno = tls_->has_failed() ? EPROTO : EAGAIN;
  return -1;
}

ssize_t Connection::write_some(std::string_view bytes) {
  if (!tls_) return send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  const std::size_t size = tls_->send(bytes);
  if (size > 0) return static_cast<ssize_t>(size);
  errno = tls_->has_failed() ? EPROTO : EAGAIN;
  return -1;
}

void Connection::receive() {
  if (has_ended_ || asked_ || (!is_closing_ && !takes_input())) return;
  const std::span<char> buffer = all_.buffer.next();
  const ssize_t size = read_some(buffer);
  note_record();
  if (size < 0) {
    if (tls_ && tls_->sends_idle_records()) counts_.refuse(Refused::malformed);
    if (errno != EAGAIN && errno != EINTR) die();
    return;
  }
  if (size == 0) {
    has_ended_ = true;
    return;
  }
  has_spoken_ = true;
  if (is_closing_) return;  // input after the last answer is dropped
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(size));
  counts_.bytes_in.add(bytes.size());
  if (!in_.empty() || !rest_.empty()) keep_rest();  // also of an earlier read in this turn
  if (in_.empty()) {
    all_.buffer.keep(bytes.size());
    rest_ = bytes;
  } else {
    in_.append(bytes);
    rest_ = in_;
  }
  consume();
}

// From its first byte on, an incomplete record has a time-out like an incomplete request.
void Connection::note_record() {
  const bool in_record = tls_ && !is_closing_ && tls_->is_midway();
  if (in_record && !in_record_ && phase_ == Phase::idle) since_ = all_.tick;
  in_record_ = in_record;
}

// Passes old and new input to the session.
void Connection::consume() {
  if (!has_output()) written_ = all_.tick;  // the client's time to read begins now
  const std::size_t before = out_.size();
  const Progress progress = session_->consume(rest_, all_.turn, out_);
  all_.unwritten += out_.size() - before;
  rest_.remove_prefix(progress.consumed);
  counts_.requests.add(progress.answered);
  if (progress.answered > 0 || progress.phase != phase_) since_ = all_.tick;
  phase_ = progress.phase;
  is_full_ = progress.full;
  asked_ = progress.asked;
  is_closing_ = is_closing_ || progress.close;
}

void Connection::settle() {
  asked_ = false;
  guarded([this] {
    if (session_->settle(all_.turn, out_)) is_closing_ = true;
  });
}

void Connection::go_on() {
  guarded([this] { consume_rest(); });
}

// The rest may have to wait until the client has read its answers; then finish() continues.
void Connection::consume_rest() {
  if (is_closing_ || rest_.empty() || session_->is_holding()) return;
  if (out_.size() - sent_ >= all_.bounds.output_max) {
    is_full_ = true;
  } else if (!is_full_) {
    consume();
  }
}

bool Connection::finish() {
  bool goes_on = false;
  guarded([&] {
    if (handshake_ && handshake_->wants_write()) prepare();
    if (tls_ && tls_->wants_write()) tls_->go_on();
    flush();
    if (is_dead()) return;
    if (is_full_ && !has_output() && !is_closing_) {
      is_full_ = false;
      consume();
      goes_on = true;
      return;
    }
    keep_rest();
    if (tls_ && tls_->has_ended() && takes_input()) has_ended_ = true;
    end_if_drained();
    if (!is_dead() && has_ended_ && !has_output()) part();
    if (is_dead() || !is_growing_too_much() || is_closing_) return;
    counts_.refuse(Refused::buffers);
    if (handshake_) return die();
    give_up(GiveUp::no_memory);
    flush();
    // A client that leaves much unread would keep that memory until its time-out: the error comes too late for it.
    if (is_dead() || out_.size() <= kBufferKeep) return;
    cut_off();
    base::free_memory(out_);  // the object of a dead connection stays until the round is over
    sent_ = 0;
  });
  return goes_on && !is_dead();
}

void Connection::keep_rest() {
  if (is_closing_) {
    in_.clear();
  } else if (in_.empty()) {
    in_.assign(rest_);
  } else {
    in_.erase(0, in_.size() - rest_.size());
  }
  if (in_.capacity() > kBufferKeep && in_.size() < in_.capacity() / 4) in_.shrink_to_fit();
  rest_ = in_;
}

void Connection::drop_input() {
  base::free_memory(in_);
  rest_ = {};
}

// If something was written last, gives the client time to read it.
void Connection::end_if_drained() {
  if (!is_draining_ || is_closing_ || is_full_ || is_midway() || !session_->is_drained()) return;
  if (!has_spoken_ && !has_ended_ && is_fresh()) return;
  is_closing_ = true;
  if (has_output()) return;
  if (spoke_last_) return linger();
  part();
}

bool Connection::has_request() const {
  if (is_dead()) return false;
  if (has_output() || is_closing_) return has_output();
  int unread = 0;
  return is_full_ || is_midway() || !session_->is_drained() ||
         (ioctl(socket_.get(), FIONREAD, &unread) == 0 && unread > 0);
}

bool Connection::is_growing_too_much() {
  const std::size_t of_tls = handshake_ && handshake_->is_shaking_hands() ? TlsStream::kHandshakeHeld
                             : in_record_                                 ? TlsStream::kMidwayHeld
                                                                          : 0;
  const std::size_t before = std::exchange(held_, in_.capacity() + out_.capacity() + session_->held() + of_tls);
  all_.held += held_ - before;  // unsigned arithmetic wraps to the right sum when it shrinks
  return held_ > before && held_ > kBufferKeep && all_.held > all_.held_max;
}

// Appends the last answer; the caller flushes.
void Connection::give_up(GiveUp why) {
  if (!has_output()) written_ = all_.tick;
  session_->give_up(why, out_);
  is_closing_ = true;
  is_full_ = false;
  drop_input();
}

void Connection::flush() {
  while (has_output()) {
    const ssize_t size = write_some(std::string_view(out_).substr(sent_));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) {
      out_.erase(0, std::exchange(sent_, 0));
      return;
    }
    if (size < 0) return die();
    sent_ += static_cast<std::size_t>(size);
    counts_.bytes_out.add(static_cast<std::size_t>(size));
    written_ = all_.tick;
    spoke_last_ = is_draining_;
  }
  base::empty_out(out_, kBufferKeep);
  sent_ = 0;
  if (is_closing_) linger();
}

// Whether the client has read some of the kernel's send queue since the last call, even if there is no space for more.
bool Connection::is_taking() {
  int queued = 0;
  if (ioctl(socket_.get(), SIOCOUTQ, &queued) != 0) return false;
  return queued < std::exchange(queued_, queued);
}

// Without the reset, the kernel would keep megabytes of unread data until the client closes.
void Connection::cut_off() {
  const struct linger at_once { .l_onoff = 1, .l_linger = 0 };
  setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  counts_.refuse(Refused::unread);
  die();
}

// Closing at once would lose unread answers if the client is still sending.
void Connection::linger() {
  if (has_ended_) return part();
  if (is_lingering_) return;
  if (tls_ && tls_->send_close_notify() == TlsStream::Step::again) return;  // finish() comes here again
  shutdown(socket_.get(), SHUT_WR);
  is_lingering_ = true;
  since_ = all_.tick;
  drop_input();
}

// Closes after both sides have ended.
void Connection::part() {
  if (tls_) tls_->send_close_notify();
  die();
}

void Connection::on_gone() { die(); }

void Connection::on_tick() {
  guarded([this] { check_timeouts(); });
}

void Connection::on_ready() {
  if (!std::exchange(notes.in_ready, true)) all_.ready.push_back(this);
}

void Connection::on_due(Micros now) {
  guarded([&] {
    if (is_closing_ || asked_) return;  // it remains due
    const bool was_holding = session_->is_holding();
    if (!has_output()) written_ = all_.tick;
    session_->wake(now, out_);
    after_hold(was_holding);
  });
}

// Called even if nothing has arrived: the session may want to write or to close.
void Connection::after_hold(bool was_holding) {
  if (session_->is_holding()) return;
  if (was_holding) since_ = all_.tick;
  if (out_.size() - sent_ >= all_.bounds.output_max) {
    is_full_ = true;
  } else {
    consume();
  }
}

void Connection::announce_stop() {
  guarded([this] {
    if (is_closing_ || handshake_) return;
    if (!has_output()) written_ = all_.tick;
    session_->announce_stop(out_);
  });
}

void Connection::drain() {
  guarded([this] {
    if (handshake_) drain_handshake();
    is_draining_ = true;
    if (is_closing_ || handshake_ || is_dead()) return;
    const bool was_holding = session_->is_holding();
    if (!has_output()) written_ = all_.tick;
    session_->drain(out_);
    after_hold(was_holding);
    receive();
  });
}

// A client that has begun its handshake may finish it and is then served once. A new client may still begin.
void Connection::drain_handshake() {
  prepare();
  if (!handshake_ || is_dead()) return;
  if (handshake_->has_begun()) {
    since_ = all_.tick;
  } else if (!is_fresh()) {
    die();
  }
}

void Connection::refuse(GiveUp why) {
  guarded([&] {
    if (handshake_) return die();
    give_up(why);
  });
}

void Connection::check_timeouts() {
  if (phase_ == Phase::idle && in_.empty() && !has_output()) {
    drop_input();
    base::free_memory(out_);
    sent_ = 0;
  }
  if (is_lingering_) {
    if (is_taking()) since_ = all_.tick;
    const bool is_waited_for = queued_ > 0 && !is_draining_;
    if (all_.tick - since_ <= (is_waited_for ? all_.bounds.write_seconds : kLingerMax)) return;
    if (is_waited_for) return cut_off();
    die();
    return;
  }
  if (handshake_) {
    if (is_draining_ && !handshake_->has_begun()) {
      if (!is_fresh()) die();
      return;
    }
    const std::uint32_t most = is_draining_ ? kLingerMax : std::min(timeouts_.header, kHandshakeMax);
    if (all_.tick - since_ <= most) return;
    counts_.refuse(Refused::slow);
    return die();
  }
  if (waits_to_write()) {
    if (is_taking()) written_ = all_.tick;
    if (all_.tick - written_ > all_.bounds.write_seconds) cut_off();
    return;
  }
  if (session_->is_holding()) return;
  const std::uint32_t most = phase() == Phase::idle     ? timeouts_.idle
                             : phase() == Phase::header ? timeouts_.header
                                                        : timeouts_.body;
  if (most == 0 || all_.tick - since_ <= most) return;
  if (phase() == Phase::idle) return part();
  counts_.refuse(Refused::slow);
  give_up(GiveUp::too_slow);
}

}  // namespace weir::server::loop
