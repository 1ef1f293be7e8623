// Tests a connection over a real socket pair, driven as a loop drives it: what is read, what is written, and when.
//
// The client reads nothing for a while, and sends nothing more afterwards. The connection must then write all
// remaining answers by itself.
#include "server/loop/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <string>

#include "sanitized.h"
#include "server/grpc/grpc_session.h"
#include "server/loop/connection_fixture.h"

namespace weir {
namespace {

TEST_F(Connections, AnswerEverythingToAClientThatTakesItLate) {
  const std::string line = "WEIR.LIMIT k 1/s\r\n";
  const std::string body = R"({"key":"u","limit":"1/s"})";
  const std::string post =
      "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  all.held_max = std::size_t{1} << 30;
  constexpr std::size_t kStep = test::kIsSanitized ? 5 : 1;  // try one of this many sizes
  for (std::size_t total = 7'000; total < 12'000; total += 211 * kStep) {
    open(make_resp_session(resp, 1));
    std::string pipeline;
    for (std::size_t i = 0; i < total; ++i) pipeline += line;
    send_all(pipeline);
    ASSERT_EQ(count(take_all(), "delay_ms"), total) << "RESP";
  }
  for (std::size_t total = 2'000; total < 4'500; total += 107 * kStep) {
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

TEST_F(Connections, AreDueNoMoreOnceTheyClose) {
  const auto frame = [](char type, char flags, char stream, const std::string& bytes) {
    return std::string({'\0', '\0', static_cast<char>(bytes.size()), type, flags, '\0', '\0', '\0', stream}) + bytes;
  };
  const auto field = [](const std::string& name, const std::string& value) {
    return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
  };
  GrpcService grpc(limiter, nullptr);
  all.held_max = std::size_t{1} << 30;
  open(make_grpc_session(grpc));
  send_all("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "") +
           frame(1, 4, 1,
                 field(":method", "POST") + field(":scheme", "http") + field(":authority", "x") +
                     field(":path", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit") +
                     field("content-type", "application/grpc") + field("te", "trailers") +
                     field("grpc-timeout", "10m")));
  EXPECT_LT(connection->due(), kNever) << "a call has an end";
  send_all(frame(0, 0, 0, "xx"));  // data on no stream: the connection closes, and lingers
  EXPECT_FALSE(connection->is_dead());
  EXPECT_EQ(connection->due(), kNever);
  connection.reset();  // before the objects that its session uses
}

TEST_F(Connections, AreForgottenByEpollThoughAProcessThatIsBeingStartedHasACopy) {
  const Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  open(make_resp_session(resp, 1));
  all.epoll = epoll.get();
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, connection->descriptor(), &event), 0);
  const Descriptor copy(dup(connection->descriptor()));
  client.close();
  EXPECT_EQ(epoll_wait(epoll.get(), &event, 1, 0), 1);
  connection->on_gone();
  EXPECT_TRUE(connection->is_dead());
  EXPECT_EQ(epoll_wait(epoll.get(), &event, 1, 0), 0);
}

}  // namespace
}  // namespace weir
