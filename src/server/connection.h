// A socket with a session behind it: reads what has arrived, lets the session answer, writes once.
//
// The socket is asked whether it is readable, and only then read, into a buffer that all connections share: an
// idle connection holds no memory. Patience is counted in the loop's ticks of a second; nothing here reads a
// clock. A client that does not take its answers is read no further beyond kOutputMax, and cut off if it takes none
// at all; a slow one is waited for. What all connections hold is counted: beyond the bound, one that holds more than
// a little and wants more is told so and closed. Included by server.cc alone, because it brings Asio along; all of it
// runs on that thread. Tested by tests/server/*.sh.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/session.h"

namespace weir {

// How many seconds a connection may stay in a phase; 0 is for ever.
struct Patience {
  std::uint32_t idle = 0;
  std::uint32_t header = 10;
  std::uint32_t body = 60;
};

// What the connections of a loop share.
struct Shared {
  explicit Shared(Limiter& limiter) : turn(limiter) {}
  Turn turn;
  std::vector<char> scratch = std::vector<char>(std::size_t{64} << 10);
  std::uint64_t tick = 0;    // seconds since the loop began
  std::size_t held = 0;      // bytes in the buffers of all connections
  std::size_t held_max = 0;  // beyond it, none may grow that holds more than kBufferKeep
};

class Connection {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Home = std::list<Connection>;

  // Both `home`, the list that it is in, and `all` outlive it.
  Connection(Socket socket, std::unique_ptr<Session> session, Patience patience, Home& home, Shared& all)
      : socket_(std::move(socket)),
        session_(std::move(session)),
        patience_(patience),
        home_(home),
        all_(all),
        since_(all.tick) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { all_.held -= held_; }

  // Each of these may end with the connection gone.
  void start(Home::iterator self) {
    self_ = self;
    guarded([this] { wait_readable(); });
  }
  void refuse(Home::iterator self, GiveUp why) {
    self_ = self;
    guarded([&] {
      give_up(why);
      flush();
      wait_readable();
    });
  }
  void on_tick() {
    guarded([this] { watch(); });
  }
  void drain() {
    guarded([this] {
      is_draining_ = true;
      session_->drain(out_);
      on_readable();
      if (is_dead_ || is_closing_ || is_midway()) return;
      if (!has_output()) return die();
      is_closing_ = true;
    });
  }

 private:
  using Error = boost::system::error_code;
  static constexpr std::uint32_t kWriteStallMax = 10;
  static constexpr std::uint32_t kLingerMax = 2;
  static constexpr std::size_t kBufferKeep = std::size_t{16} << 10;

  // An assignment of {} would keep the capacity.
  static void free_memory(std::string& buffer) { std::string().swap(buffer); }

  bool has_output() const { return sent_ < out_.size(); }
  bool is_midway() const { return phase_ != Phase::idle || !in_.empty(); }

  // Runs a step so that nothing it throws goes further, and removes the connection once nobody refers to it.
  template <class Step>
  void guarded(Step step) {
    try {
      step();
    } catch (...) {
      die();
    }
    count_held();
    if (is_dead_ && !is_reading_ && !is_writing_) home_.erase(self_);
  }

  void die() {
    Error ignored;
    socket_.close(ignored);
    is_dead_ = true;
  }

  void wait_readable() {
    if (is_reading_ || is_dead_ || has_ended_ || is_full_ || out_.size() - sent_ >= kOutputMax) return;
    socket_.async_wait(Socket::wait_read, [this](const Error& error) {
      is_reading_ = false;
      guarded([&] {
        if (error) return die();
        on_readable();
        wait_readable();
      });
    });
    is_reading_ = true;  // not before: had the wait thrown, nobody would come
  }

  void wait_writable() {
    if (is_writing_ || is_dead_) return;
    socket_.async_wait(Socket::wait_write, [this](const Error& error) {
      is_writing_ = false;
      guarded([&] {
        if (error) return die();
        flush();
        wait_readable();
      });
    });
    is_writing_ = true;
  }

  void on_readable() {
    if (is_dead_ || is_full_) return;
    Error error;
    const std::size_t size = socket_.read_some(boost::asio::buffer(all_.scratch), error);
    if (error == boost::asio::error::would_block) return;
    if (error == boost::asio::error::eof) {
      has_ended_ = true;
      if (!has_output()) die();
      return;
    }
    if (error) return die();
    if (is_closing_) return;  // what comes after the last answer is read and dropped
    answer({all_.scratch.data(), size});
    flush();
    if (is_dead_ || is_closing_ || count_held() == Growth::fine) return;
    give_up(GiveUp::no_room);
    flush();
  }

  // Lets the session work on what is left over from before and what is new.
  void answer(std::string_view bytes) {
    if (!has_output()) written_ = all_.tick;  // from now on the client is waited for
    if (!in_.empty()) {
      in_.append(bytes);
      bytes = in_;
    }
    const Progress progress = session_->consume(bytes, all_.turn, out_);
    if (in_.empty()) {
      in_.assign(bytes.substr(progress.consumed));
    } else {
      in_.erase(0, progress.consumed);
    }
    if (in_.capacity() > kBufferKeep && in_.size() < in_.capacity() / 4) in_.shrink_to_fit();
    if (progress.answered > 0 || progress.phase != phase_) since_ = all_.tick;
    phase_ = progress.phase;
    is_full_ = progress.full;
    is_closing_ = progress.close || (is_draining_ && !progress.full && !is_midway());
  }

  enum class Growth : std::uint8_t { fine, too_much };

  Growth count_held() {
    const std::size_t before = std::exchange(held_, in_.capacity() + out_.capacity() + session_->held());
    all_.held += held_ - before;  // wraps around to the right sum when it shrinks
    return held_ > before && held_ > kBufferKeep && all_.held > all_.held_max ? Growth::too_much : Growth::fine;
  }

  // Adds the last words; whoever calls flushes.
  void give_up(GiveUp why) {
    if (!has_output()) written_ = all_.tick;
    session_->give_up(why, out_);
    is_closing_ = true;
    is_full_ = false;
    free_memory(in_);
  }

  void flush() {
    while (!is_dead_) {
      if (has_output()) {
        Error error;
        sent_ += socket_.write_some(boost::asio::buffer(out_.data() + sent_, out_.size() - sent_), error);
        if (error == boost::asio::error::would_block) {
          out_.erase(0, std::exchange(sent_, 0));
          return wait_writable();
        }
        if (error) return die();
        written_ = all_.tick;
        continue;
      }
      out_.clear();
      sent_ = 0;
      if (out_.capacity() > kBufferKeep) free_memory(out_);
      if (is_closing_) return linger();
      if (has_ended_) return die();
      if (!is_full_) return;
      answer({});
    }
  }

  // What the client takes of what the kernel holds for it is progress too, though there is no room for more yet.
  bool is_taking() {
    int queued = 0;
    if (ioctl(socket_.native_handle(), SIOCOUTQ, &queued) != 0) return false;
    return queued < std::exchange(queued_, queued);
  }

  // Closing at once would throw away answers that the client has not read while it still sends.
  void linger() {
    if (has_ended_) return die();
    if (is_lingering_) return;
    Error ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    is_lingering_ = true;
    since_ = all_.tick;
    free_memory(in_);
    is_full_ = false;
  }

  void watch() {
    if (is_dead_) return;
    if (phase_ == Phase::idle && in_.empty() && !has_output()) {
      free_memory(in_);
      free_memory(out_);
      sent_ = 0;
    }
    if (is_lingering_) {
      if (is_taking()) since_ = all_.tick;
      if (all_.tick - since_ > kLingerMax) die();
      return;
    }
    if (has_output()) {
      if (is_taking()) written_ = all_.tick;
      if (all_.tick - written_ > kWriteStallMax) die();
      return;
    }
    const std::uint32_t most = phase_ == Phase::idle     ? patience_.idle
                               : phase_ == Phase::header ? patience_.header
                                                         : patience_.body;
    if (most == 0 || all_.tick - since_ <= most) return;
    if (phase_ == Phase::idle) return die();
    give_up(GiveUp::too_slow);
    flush();
  }

  Socket socket_;
  std::unique_ptr<Session> session_;
  Patience patience_;
  Home& home_;
  Shared& all_;
  Home::iterator self_{};
  std::string in_;   // what the session has not consumed
  std::string out_;  // what is to be written, from sent_ on
  std::size_t sent_ = 0;
  std::size_t held_ = 0;       // what all_.held counts of these and of the session
  std::uint64_t since_;        // the tick at which the phase, or the lingering, began
  std::uint64_t written_ = 0;  // the tick at which the client last took something, or was first asked to
  int queued_ = 0;             // bytes that the kernel held for the client at the last look
  Phase phase_ = Phase::idle;
  bool is_reading_ = false;  // a wait for the socket to become readable is under way
  bool is_writing_ = false;
  bool is_full_ = false;     // the session waits for room in out_
  bool is_closing_ = false;  // after out_ is written
  bool is_lingering_ = false;
  bool is_draining_ = false;
  bool has_ended_ = false;  // the client sends no more
  bool is_dead_ = false;
};

}  // namespace weir
