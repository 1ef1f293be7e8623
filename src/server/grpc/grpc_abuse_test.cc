// Tests hostile and careless gRPC clients: memory stays bounded, and well-behaved clients are not cut off.
//
// grpc_session_test.cc has the conversations of well-behaved clients.
#include <gtest/gtest.h>

#include <string>

#include "grpc_client.h"
#include "grpc_fixture.h"
#include "server/grpc/grpc_greeting.h"
#include "server/grpc/grpc_session.h"
#include "server/loop/session_fixture.h"

namespace weir::test {
namespace {

class GrpcAbuseTest : public GrpcTest {
 protected:
  // Begins and cancels calls. False once the connection has ended.
  bool cancel_calls(std::size_t count) {
    while (count > 0 && !client->progress.close) {
      std::vector<std::int32_t> streams;
      for (std::size_t i = 0; i < server::loop::GrpcBounds{}.calls_max && count > 0; ++i, --count) {
        streams.push_back(client->begin(GrpcClient::usual(kShouldRateLimit), std::string(1, 0)));
      }
      client->exchange();
      for (const std::int32_t stream : streams) {
        nghttp2_submit_rst_stream(client->http2, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
      }
      client->exchange();
      client->heard.clear();
      client->said.clear();
    }
    return !client->progress.close;
  }
};

TEST_F(GrpcAbuseTest, KeepsAGatewayWhoseCallsTimeOutInThousands) {
  EXPECT_TRUE(cancel_calls(15'000));
  EXPECT_EQ(client->call(kHealthCheck, "").status(), "0");
  EXPECT_EQ(session->held(), 0u);
}

TEST_F(GrpcAbuseTest, CutsOffAClientThatResetsWithoutEnd) { EXPECT_FALSE(cancel_calls(200'000)); }

TEST_F(GrpcAbuseTest, BoundsTheCallsOfAConnection) {
  client->exchange();
  EXPECT_EQ(nghttp2_session_get_remote_settings(client->http2, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
            server::loop::GrpcBounds{}.calls_max);
}

TEST_F(GrpcAbuseTest, BoundsTheBytesOfUnfinishedRequests) {
  client->exchange();
  std::string head("\0\0\x10\0\0", 5);
  std::vector<std::int32_t> streams;
  for (int i = 0; i < 10; ++i) {
    streams.push_back(client->begin(GrpcClient::usual(kShouldRateLimit), head + std::string(700'000, 'x')));
    client->exchange();
    EXPECT_LE(session->held(), server::grpc::kGrpcHeldMax);
  }
  EXPECT_EQ(client->heard[streams.front()].status(), "none");
  EXPECT_EQ(client->heard[streams.back()].status(), "8");
  EXPECT_EQ(client->call(kHealthCheck, "").status(), "0");
}

TEST_F(GrpcAbuseTest, BoundsAnswersThatTheClientDoesNotRead) {
  connect(0);
  client->takes = false;
  std::string question = framed(
                  "\x1a\x24"
                  "envoy/service/ratelimit/v3/rls.proto"),
              questions;
  for (int i = 0; i < 1'000; ++i) questions += question;
  for (int i = 0; i < 200; ++i) {
    client->begin(GrpcClient::usual(kReflection), questions);
    client->exchange();
    ASSERT_LE(session->held(), server::grpc::kGrpcHeldMax + 2 * questions.size());
  }
}

TEST_F(GrpcAbuseTest, DoesNotWaitForeverForAWindowUpdate) {
  connect(0);
  client->takes = false;
  std::string questions;
  for (int i = 0; i < 100'000; ++i) questions += framed(std::string_view(":\0", 2));  // asks for the list of services
  const std::int32_t stream = client->begin(GrpcClient::usual(kReflection), questions);
  const std::int32_t unary = begin_call(GrpcClient::usual(kShouldRateLimit), framed(kOneAddress), true);
  EXPECT_GT(session->held(), 300'000u) << "requests and answers";
  EXPECT_EQ(session->due(), kStart + kTakeMax);
  wake_at(kTakeMax - Micros{1});
  EXPECT_FALSE(client->heard[stream].is_closed);
  nghttp2_submit_window_update(client->http2, NGHTTP2_FLAG_NONE, unary, 1);
  client->exchange();
  wake_at(kTakeMax);
  EXPECT_EQ(client->heard[stream].error, std::uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
  EXPECT_FALSE(client->heard[unary].is_closed) << "the client has read a byte: it is slow, and the server waits";
  EXPECT_EQ(counts.count(server::loop::Refused::unread), 1U);
  wake_at(2 * kTakeMax);
  EXPECT_EQ(client->heard[unary].error, std::uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
  EXPECT_EQ(counts.count(server::loop::Refused::unread), 2U);
  EXPECT_EQ(session->held(), 0u);
  EXPECT_EQ(session->due(), kNever);
  client->takes = true;
  nghttp2_settings_entry wide{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 65'535};
  nghttp2_submit_settings(client->http2, NGHTTP2_FLAG_NONE, &wide, 1);
  EXPECT_EQ(client->call(kHealthCheck, "").status(), "0") << "the connection goes on";
}

TEST_F(GrpcAbuseTest, DoesNotWaitForeverForTheRestOfAMessage) {
  const std::string question = framed(std::string_view(":\0", 2));
  const std::int32_t stream = begin_call(GrpcClient::usual(kReflection), question);
  EXPECT_EQ(client->heard[stream].messages().size(), 1u);
  EXPECT_EQ(session->due(), kNever) << "a stream may be silent";
  send_more(stream, question.substr(0, 6), false);
  EXPECT_EQ(session->due(), kStart + server::grpc::kGrpcRequestMax);
  send_more(stream, question.substr(6), false);
  EXPECT_EQ(client->heard[stream].messages().size(), 2u);
  wake_at(server::grpc::kGrpcRequestMax);
  EXPECT_FALSE(client->heard[stream].is_closed);
  send_more(stream, question.substr(0, 6), false);
  wake_at(2 * server::grpc::kGrpcRequestMax);
  EXPECT_EQ(client->heard[stream].status(), "4");
  EXPECT_EQ(session->held(), 0u);
}

TEST_F(GrpcAbuseTest, AnswersAFloodOfMessages) {
  std::string question = framed(
                  "\x1a\x24"
                  "envoy/service/ratelimit/v3/rls.proto"),
              questions;
  for (int i = 0; i < 500; ++i) questions += question;
  const std::int32_t stream = client->begin(GrpcClient::usual(kReflection), questions, true);
  for (int i = 0; i < 100 && !client->heard[stream].is_closed; ++i) client->exchange();
  EXPECT_EQ(client->heard[stream].messages().size(), 500u);
  EXPECT_EQ(client->heard[stream].status(), "0");
}

TEST_F(GrpcAbuseTest, PausesWhenItsAnswersPileUp) {
  client->exchange();
  std::string request;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 100; ++i) client->begin(GrpcClient::usual(kHealthList), framed(""), true);
    const std::uint8_t* data = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(client->http2, &data)) > 0;) {
      request.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
    }
    server::loop::Turn turn(limiter);
    std::string output(server::loop::kOutputMax, 'x');
    const server::loop::Progress stopped = session->consume(request, turn, output);
    EXPECT_TRUE(stopped.full);
    EXPECT_EQ(output.size(), server::loop::kOutputMax) << "nothing is added";
    output.clear();
    std::size_t consumed = stopped.consumed;
    while (consumed < request.size()) {
      const server::loop::Progress progress =
          session->consume(std::string_view(request).substr(consumed), turn, output);
      ASSERT_FALSE(progress.close);
      consumed += progress.consumed;
    }
    request.clear();
    client->hear(output);
  }
  client->exchange();
  std::size_t answered = 0;
  for (const auto& [stream, heard] : client->heard) answered += heard.status() == "0" ? 1u : 0u;
  EXPECT_EQ(answered, 20'000u);
}

TEST_F(GrpcAbuseTest, EndsAConnectionThatBreaksHttp2) {
  client->exchange();
  const std::string oversized = std::string("\xff\xff\xff\x00\x00\x00\x00\x00\x01", 9);
  EXPECT_TRUE(client->player.feed(oversized).close);
  client->hear(client->player.take());
  EXPECT_EQ(client->goaways.size(), 1u);
}

TEST_F(GrpcAbuseTest, EndsAConnectionThatUsesClosedStreams) {
  const std::string late("\0\0\1\0\0\0\0\0\1x", 10), left_out("\0\0\1\x01\x05\0\0\0\3\x83", 10);
  for (const std::string& frame : {late, left_out}) {
    connect();
    client->call(kHealthCheck, "");
    nghttp2_session_set_next_stream_id(client->http2, 5);
    EXPECT_EQ(client->call(kHealthCheck, "").status(), "0");
    EXPECT_TRUE(client->player.feed(frame).close);
    client->hear(client->player.take());
    EXPECT_EQ(client->goaways, std::vector<std::int32_t>{5});
  }
}

TEST_F(GrpcAbuseTest, IgnoresDataForACallThatItHasReset) {
  const std::int32_t stream = begin_call(GrpcClient::usual("/no.Such/Method"), "abc");
  ASSERT_TRUE(client->heard[stream].is_closed);
  EXPECT_FALSE(client->player.feed(std::string("\0\0\1\0\1\0\0\0\1x", 10)).close);
  EXPECT_EQ(client->call(kHealthCheck, "").status(), "0");
}

TEST_F(GrpcAbuseTest, EndsAFloodOfSettings) {
  client->exchange();
  std::string flood;
  for (int i = 0; i < 200'000; ++i) flood += std::string("\0\0\0\x04\0\0\0\0\0", 9);
  const server::loop::Progress progress = client->player.feed(flood);
  EXPECT_TRUE(progress.close || progress.full);
  EXPECT_LE(client->player.output.size(), 2 * server::loop::kOutputMax);
}

TEST_F(GrpcAbuseTest, KeepsAClientThatUpdatesItsWindowsWithEveryCall) {
  const std::string update("\0\0\4\x08\0\0\0\0\0\0\0\0\1", 13);
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_EQ(client->call(kHealthCheck, "").status(), "0");
    for (int n = 0; n < 4; ++n) ASSERT_FALSE(client->player.feed(update).close) << i;
    client->heard.clear();
    client->said.clear();
  }
}

TEST_F(GrpcAbuseTest, CountsEveryRefusedClient) {
  const auto say = [&](const std::string& bytes) {
    const auto one = server::grpc::make_grpc_session(service);
    server::loop::SessionPlayer player(*one, limiter);
    return player.feed(bytes).close;
  };
  const std::string preface(server::grpc::kHttp2Preface);
  std::string pings, headers =
                         "\x83\x86\x01\x01x\x04\x01/\x0f\x10\x10"
                         "application/grpc";
  for (int i = 0; i < 20'000; ++i) pings += std::string("\0\0\x08\x06\0\0\0\0\0pppppppp", 17);
  EXPECT_TRUE(say(preface + std::string("\0\0\0\4\0\0\0\0\0", 9) + pings));
  EXPECT_EQ(counts.count(server::loop::Refused::streams), 1U);
  for (int i = 0; i < 90; ++i) headers += std::string("\0\4name\x64", 7) + std::string(100, 'v');
  for (int i = 0; i < 300; ++i) headers += std::string("\x40\4more\x04much", 11);
  const std::string size{static_cast<char>(headers.size() >> 16), static_cast<char>(headers.size() >> 8),
                         static_cast<char>(headers.size())};
  EXPECT_FALSE(say(preface + std::string("\0\0\0\4\0\0\0\0\0", 9) + size + std::string("\1\4\0\0\0\1", 6) + headers));
  EXPECT_EQ(counts.count(server::loop::Refused::header), 1U);
  EXPECT_TRUE(say("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(counts.count(server::loop::Refused::malformed), 1U);
}

TEST_F(GrpcAbuseTest, WaitsForAHeaderThatIsNotComplete) {
  client->exchange();
  const std::string begun("\0\0\1\x01\0\0\0\0\1\x83", 10);  // HEADERS without END_HEADERS
  EXPECT_EQ(client->player.feed(begun).phase, server::loop::Phase::header);
}

}  // namespace
}  // namespace weir::test
