// Tests a connection over a real socket pair, driven as a loop drives it: what is read, what is written, and when.
//
// The client reads nothing for a while, and sends nothing more afterwards. The connection must then write all
// remaining answers by itself.
#include "server/loop/connection.h"

#include "sanitized.h"
#include "server/connection_fixture.h"
#include "server/grpc/grpc_session.h"

namespace weir::server {
namespace {

TEST_F(Connections, AnswerEveryRequestOfAClientThatReadsLate) {
  const std::string line = "WEIR.LIMIT k 1/s\r\n";
  const std::string post = request("POST", "/v1/check", R"({"key":"u","limit":"1/s"})");
  constexpr std::size_t kStep = test::kIsSanitized ? 5 : 1;  // try one of this many sizes
  for (std::size_t total = 7'000; total < 12'000; total += 211 * kStep) {
    open(resp::make_resp_session(resp, 1));
    std::string pipeline;
    for (std::size_t i = 0; i < total; ++i) pipeline += line;
    send_all(pipeline);
    ASSERT_EQ(count(take_all(), "delay_ms"), total) << "RESP";
  }
  for (std::size_t total = 2'000; total < 4'500; total += 107 * kStep) {
    open(http::make_http_session(http));
    std::string pipeline;
    for (std::size_t i = 0; i < total; ++i) pipeline += post;
    send_all(pipeline);
    ASSERT_EQ(count(take_all(), "HTTP/1.1 "), total) << "HTTP";
  }
}

TEST_F(Connections, LoseNoBytesOfSeveralReadsInOneTurn) {
  open(resp::make_resp_session(resp, 1));
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

TEST_F(Connections, AreNeverDueOnceTheyClose) {
  const auto frame = [](char type, char flags, char stream, const std::string& bytes) {
    return std::string({'\0', '\0', static_cast<char>(bytes.size()), type, flags, '\0', '\0', '\0', stream}) + bytes;
  };
  const auto field = [](const std::string& name, const std::string& value) {
    return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
  };
  grpc::GrpcService grpc(limiter, nullptr);
  open(grpc::make_grpc_session(grpc));
  send_all("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "") +
           frame(1, 4, 1,
                 field(":method", "POST") + field(":scheme", "http") + field(":authority", "x") +
                     field(":path", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit") +
                     field("content-type", "application/grpc") + field("te", "trailers") +
                     field("grpc-timeout", "10m")));
  EXPECT_LT(connection->due(), kNever) << "the call has a deadline";
  send_all(frame(0, 0, 0, "xx"));  // data for a stream that is not open: the connection closes and lingers
  EXPECT_FALSE(connection->is_dead());
  EXPECT_EQ(connection->due(), kNever);
  connection.reset();  // before the objects that its session uses
}

TEST_F(Connections, LeaveEpollThoughAChildProcessHasACopyOfTheirSocket) {
  const base::Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  open(resp::make_resp_session(resp, 1));
  all.epoll = epoll.get();
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, connection->descriptor(), &event), 0);
  const base::Descriptor copy(dup(connection->descriptor()));
  client.close();
  EXPECT_EQ(epoll_wait(epoll.get(), &event, 1, 0), 1);
  connection->on_gone();
  EXPECT_TRUE(connection->is_dead());
  EXPECT_EQ(epoll_wait(epoll.get(), &event, 1, 0), 0);
}

}  // namespace
}  // namespace weir::server
