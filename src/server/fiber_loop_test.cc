// Tests a loop with sockets whose sessions wait for a slow store: no client delays another, and the loop ends
// cleanly.
//
// The store is a timer of the loop; a test can withhold its answers. The clients run in threads of the test.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "far_store.h"
#include "sanitized.h"
#include "server/http/http_session.h"
#include "server/loop/fiber_session.h"
#include "server/loop/listener.h"
#include "server/loop/loop.h"
#include "server/resp/resp_session.h"

namespace weir::server {
namespace {

using test::FarStore;

class Client {
 public:
  explicit Client(const loop::Address& address) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }

  bool is_connected() const { return is_connected_; }

  void say(std::string_view bytes) const {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Reads until the text ends with `end`, or the connection closes.
  std::string hear(std::string_view end) const {
    std::string heard;
    std::string buffer(4'096, '\0');
    while (!heard.ends_with(end) || end.empty()) {
      const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (size <= 0) break;
      heard.append(buffer, 0, static_cast<std::size_t>(size));
    }
    return heard;
  }
  std::string hear_all() const { return hear(""); }
  void say_no_more() const { shutdown(socket_.get(), SHUT_WR); }
  // Closes with a reset, which the server sees at once.
  void reset() {
    const struct linger at_once { .l_onoff = 1, .l_linger = 0 };
    setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    socket_.close();
  }

 private:
  base::Descriptor socket_;
  bool is_connected_ = false;
};

class FiberLoops : public testing::Test {
 protected:
  FiberLoops() {
    auto made = loop::make_loop(limiter, {.buffers_max = std::size_t{64} << 20, .fibers = &fibers, .backend = &store});
    EXPECT_TRUE(made) << made.error().message;
    loop = *std::move(made);
    http.bounds.counts = &loop->counts().listeners[loop::ListenerName::http];
    resp.bounds.counts = &loop->counts().listeners[loop::ListenerName::resp];
    http_address = open(loop::ListenerName::http,
                        [this](std::string peer) { return http::make_http_session(http_contexts, std::move(peer)); });
    resp_address =
        open(loop::ListenerName::resp, [this](std::string) { return resp::make_resp_session(resp_contexts, 1); });
    thread = std::thread([this] { stopped = loop->run(); });
  }
  ~FiberLoops() override { end(loop::StopStage::leave); }

  loop::Address open(loop::ListenerName listener, loop::MakeSession make_session) {
    auto listening = loop::listen_on(*loop::parse_address("127.0.0.1:0"), "a listener", 1);
    EXPECT_TRUE(listening);
    loop->open(std::move(listening->sockets[0]), {.make_session = std::move(make_session),
                                                  .state = &states[listener],
                                                  .counts = &loop->counts().listeners[listener],
                                                  .connections_max = 1'000});
    return listening->address;
  }
  void end(loop::StopStage stage) {
    if (!thread.joinable()) return;
    loop->stop(stage);
    thread.join();
  }
  void wait_for_calls(std::size_t n) const {
    while (store.calls.load() < n) std::this_thread::yield();
  }
  static std::string check(const std::string& key) {
    const std::string body = R"({"key":")" + key + R"(","limit":"3/day","id":"x)" + key + "\"}";
    return "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  base::Fibers fibers;
  loop::FiberTasks tasks{fibers};
  FarStore store{fibers};
  Limiter limiter{{.shared = store.store()}};
  http::HttpService http{.limiter = limiter};
  resp::RespService resp{.limiter = limiter};
  loop::ContextPool http_contexts{tasks, [this] { return std::make_unique<http::HttpContext>(http); },
                                  loop::WithoutFiber::shed};
  loop::ContextPool resp_contexts{tasks, [this] { return std::make_unique<resp::RespContext>(resp); },
                                  loop::WithoutFiber::shed};
  loop::PerListener<loop::ListenerState> states{};
  std::unique_ptr<loop::Loop> loop;
  loop::Address http_address, resp_address;
  std::optional<loop::Stopped> stopped;
  std::thread thread;
};

TEST_F(FiberLoops, ServeOtherClientsWhileSomeWait) {
  store.answers = false;
  const Client waits(resp_address), other(resp_address), third(http_address);
  waits.say("CL.THROTTLE k 1 1 60\r\nPING\r\n");
  wait_for_calls(1);
  other.say("PING\r\n");
  EXPECT_EQ(other.hear("\r\n"), "+PONG\r\n");
  third.say("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(third.hear("ok\n").starts_with("HTTP/1.1 200"));
  store.answers = true;
  EXPECT_EQ(waits.hear("PONG\r\n"), "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n+PONG\r\n");
}

TEST_F(FiberLoops, AnswerManyConnectionsAtOnce) {
  constexpr int kClients = 8, kRounds = test::kIsSanitized ? 20 : 100;
  std::vector<std::thread> clients;
  std::atomic<int> right{0};
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      const bool is_http = c % 2 == 0;
      const Client client(is_http ? http_address : resp_address);
      for (int i = 0; i < kRounds; ++i) {
        const std::string key = std::to_string(c) + "-" + std::to_string(i);
        if (is_http) {
          client.say(check(key));
          if (client.hear("}\n").find("\"remaining\":2") != std::string::npos) ++right;
        } else {
          client.say("CL.THROTTLE " + key + " 1 1 60\r\nCL.THROTTLE " + key + " 1 1 60\r\nDEL " + key + "\r\n");
          const std::string all = "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n*5\r\n:0\r\n:2\r\n:0\r\n:-1\r\n:120\r\n:1\r\n";
          if (client.hear(all) == all) ++right;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, kClients * kRounds);
  EXPECT_GE(store.calls, static_cast<std::size_t>(kClients * kRounds));
}

TEST_F(FiberLoops, AnswerAClientThatHasClosedItsSendingSide) {
  store.answers = false;
  const Client client(resp_address);
  client.say("CL.THROTTLE k 1 1 60\r\n");
  client.say_no_more();
  wait_for_calls(1);
  const Client other(resp_address);
  other.say("PING\r\n");
  other.hear("\r\n");
  store.answers = true;
  EXPECT_EQ(client.hear_all(), "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n");
}

TEST_F(FiberLoops, AllowClientsToDisconnectAtAnyTime) {
  for (std::size_t i = 0; i < 50; ++i) {
    const std::size_t before = store.calls;
    store.answers = i % 2 == 0;
    const Client one(resp_address), other(http_address);
    one.say("CL.THROTTLE k 1 1 60\r\nDEL k\r\nCL.THROTTLE k 1 1 60\r\n");
    other.say(check("k" + std::to_string(i)));
    wait_for_calls(before + 1);
  }
  store.answers = true;
  const Client last(resp_address);
  last.say("DEL k\r\nPING\r\n");
  EXPECT_TRUE(last.hear("+PONG\r\n").ends_with("+PONG\r\n"));
}

TEST_F(FiberLoops, EndOnceAllRequestsAreAnswered) {
  store.answers = false;
  std::optional<Client> client(resp_address);
  client->say("CL.THROTTLE k 1 1 60\r\n");
  wait_for_calls(1);
  loop->stop(loop::StopStage::drain);
  store.answers = true;
  EXPECT_EQ(client->hear_all(), "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n");
  client.reset();
  thread.join();
  EXPECT_EQ(stopped, loop::Stopped::drained);
  EXPECT_EQ(fibers.in_flight(), 0U);
}

TEST_F(FiberLoops, DoNotEndBeforeTheCallsOfDisconnectedClients) {
  store.answers = false;
  Client client(resp_address);
  client.say("CL.THROTTLE k 1 1 60\r\n");
  wait_for_calls(1);
  client.reset();
  while (states[loop::ListenerName::resp].open.load() > 0) std::this_thread::yield();
  loop->stop(loop::StopStage::drain);
  while (Client(resp_address).is_connected()) std::this_thread::yield();
  store.answers = true;
  thread.join();
  EXPECT_EQ(stopped, loop::Stopped::drained);
  EXPECT_EQ(store.abandoned, 0U);
  EXPECT_EQ(fibers.in_flight(), 0U);
}

TEST_F(FiberLoops, EndAtOnceWithoutLossIfAllRequestsAreAnswered) {
  const Client answered(resp_address), silent(http_address), leaving(http_address);
  answered.say("PING\r\n");
  EXPECT_EQ(answered.hear("+PONG\r\n"), "+PONG\r\n");
  leaving.say("GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(leaving.hear("ok\n").starts_with("HTTP/1.1 200"));
  end(loop::StopStage::leave);
  EXPECT_EQ(stopped, loop::Stopped::drained);
}

TEST_F(FiberLoops, EndAtOnceWithALossIfARequestIsIncomplete) {
  const Client one(http_address);
  one.say("POST /v1/check HTTP/1.1\r\n");
  end(loop::StopStage::leave);
  EXPECT_EQ(stopped, loop::Stopped::forced);
}

TEST_F(FiberLoops, EndAtOnceThoughRequestsWait) {
  store.answers = false;
  const Client one(resp_address), other(http_address);
  one.say("CL.THROTTLE k 1 1 60\r\nDEL k\r\n");
  other.say(check("k"));
  wait_for_calls(2);
  end(loop::StopStage::leave);
  EXPECT_EQ(stopped, loop::Stopped::forced);
  EXPECT_EQ(store.abandoned, 2U);
  EXPECT_EQ(fibers.in_flight(), 0U);
}

TEST_F(FiberLoops, DoNotCountWaitingAsProcessingTime) {
  constexpr Micros kWait{2'000'000};  // longer than a busy machine stalls a loop
  store.answers = false;
  const Client client(resp_address);
  const Micros since = limiter.now();
  client.say("CL.THROTTLE k 1 1 60\r\n");
  while (limiter.now() - since < kWait) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  store.answers = true;
  client.hear(":60\r\n");
  end(loop::StopStage::leave);
  const loop::ListenerCounts& counts = loop->counts().listeners[loop::ListenerName::resp];
  EXPECT_EQ(counts.requests.get(), 1U);
  EXPECT_LT(counts.seconds.sum_us(), static_cast<std::uint64_t>(kWait.count()));
}

}  // namespace
}  // namespace weir::server
