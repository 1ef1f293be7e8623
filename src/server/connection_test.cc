// A connection over a real pair of sockets, driven as a loop drives it: what is read, what is written, and when.
//
// The client takes nothing until it wants to, and sends nothing more afterwards: whatever the connection then still
// owes must come by itself.
#include "server/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>

#include "server/http_session.h"
#include "server/resp_session.h"

namespace weir {
namespace {

class Connections : public testing::Test {
 protected:
  void open(std::unique_ptr<Session> session) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    client = Descriptor(ends[1]);
    connection = std::make_unique<Connection>(Descriptor(ends[0]), std::move(session), Patience{}, all, counts);
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
    all.room.clear();
  }

  // Sends all of it, while the connection reads what it wants to.
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

  // Takes everything that comes, and sends what did not fit before.
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

  static std::size_t count(const std::string& text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

  Limiter limiter;
  HttpService http{.limiter = limiter};
  RespService resp{.limiter = limiter};
  Shared all{limiter};
  DoorCounts counts;
  Descriptor client;
  std::unique_ptr<Connection> connection;

 private:
  std::string left_;
};

TEST_F(Connections, AnswerEverythingToAClientThatTakesItLate) {
  const std::string line = "WEIR.LIMIT k 1/s\r\n";
  const std::string body = R"({"key":"u","limit":"1/s"})";
  const std::string post =
      "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  all.held_max = std::size_t{1} << 30;
  for (std::size_t total = 7'000; total < 12'000; total += 211) {
    open(make_resp_session(resp, 1));
    std::string pipeline;
    for (std::size_t i = 0; i < total; ++i) pipeline += line;
    send_all(pipeline);
    ASSERT_EQ(count(take_all(), "delay_ms"), total) << "RESP";
  }
  for (std::size_t total = 2'000; total < 4'500; total += 107) {
    open(make_http_session(http));
    std::string pipeline;
    for (std::size_t i = 0; i < total; ++i) pipeline += post;
    send_all(pipeline);
    ASSERT_EQ(count(take_all(), "HTTP/1.1 "), total) << "HTTP";
  }
}

TEST_F(Connections, LoseNothingOfTwoReadingsInOneTurn) {
  all.held_max = std::size_t{1} << 30;
  open(make_resp_session(resp, 1));
  const auto say = [&](const std::string& bytes) {
    ASSERT_EQ(send(client.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    connection->on_readable();
  };
  say("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI");
  say("NG\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4");
  say("\r\nPING\r\n");
  finish_turn();
  EXPECT_EQ(take_all(), "+PONG\r\n+PONG\r\n+PONG\r\n+PONG\r\n");
}

}  // namespace
}  // namespace weir
