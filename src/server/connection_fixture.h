// A connection over a real socket pair, driven as a loop drives it. The test is the client.
//
// One thread. Used by connection_test.cc and, by tls_fixture.h, the tests of TLS.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "server/http/http_session_fixture.h"
#include "server/loop/connection.h"
#include "server/resp/resp_session.h"

namespace weir::server {

class Connections : public testing::Test, protected http::HttpTexts {
 protected:
  Connections() { all.held_max = std::size_t{1} << 30; }

  void open(std::unique_ptr<loop::Session> session) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    client = base::Descriptor(ends[1]);
    connection = std::make_unique<loop::Connection>(base::Descriptor(ends[0]), std::move(session), loop::Timeouts{},
                                                    all, counts);
  }

  // One turn of a loop, in which this connection may be readable.
  void turn() {
    if (!connection->is_dead() && (connection->interest() & EPOLLIN) != 0) connection->on_readable();
    finish_turn();
  }
  void finish_turn() {
    do {
      while (connection->asks()) {
        all.turn.decide();
        connection->settle();
        all.turn.clear();
        connection->go_on();
      }
    } while (connection->finish());
    all.buffer.clear();
    all.handshakes = 0;
  }

  // Sends all bytes while the connection reads as much as it accepts.
  void send_all(const std::string& bytes) {
    std::size_t sent = 0;
    for (int stuck = 0; sent < bytes.size() && stuck < 10; ++stuck) {
      const ssize_t size = send(client.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (size > 0) {
        sent += static_cast<std::size_t>(size);
        stuck = 0;
      }
      turn();
    }
    for (int i = 0; i < 50; ++i) turn();
    left_ = bytes.substr(sent);
  }

  // Reads everything that comes, and sends what did not fit before.
  std::string take_all() {
    std::string taken, buffer(1 << 16, '\0');
    for (int idle = 0; idle < 20; ++idle) {
      if (!left_.empty()) {
        const ssize_t size = send(client.get(), left_.data(), left_.size(), MSG_NOSIGNAL);
        if (size > 0) left_.erase(0, static_cast<std::size_t>(size));
      }
      const ssize_t size = recv(client.get(), buffer.data(), buffer.size(), 0);
      if (size > 0) {
        taken.append(buffer, 0, static_cast<std::size_t>(size));
        idle = 0;
      }
      turn();
    }
    return taken;
  }

  Limiter limiter;
  http::HttpService http{.limiter = limiter};
  resp::RespService resp{.limiter = limiter};
  loop::Shared all{limiter};
  loop::ListenerCounts counts;
  base::Descriptor client;
  std::unique_ptr<loop::Connection> connection;

 private:
  std::string left_;
};

}  // namespace weir::server
