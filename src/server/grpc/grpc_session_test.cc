// Tests gRPC conversations without a socket: every kind of call, every error for the client, streams, draining.
#include "server/grpc/grpc_session.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "grpc_client.h"
#include "grpc_fixture.h"

namespace weir::test {
namespace {

TEST_F(GrpcTest, DecidesByTheRules) {
  use("rules: [{name: per-ip, per: ip, limit: 2/minute, algorithm: fixed_window}]");
  for (const char* code : {"\x08\x01", "\x08\x01", "\x08\x02"}) {
    const Heard& heard = client->call(kShouldRateLimit, kOneAddress);
    EXPECT_EQ(heard.fields.at(":status"), "200");
    EXPECT_EQ(heard.fields.at("content-type"), "application/grpc");
    EXPECT_EQ(heard.status(), "0");
    EXPECT_EQ(heard.text(), "");
    EXPECT_EQ(heard.headers, 2u);
    ASSERT_EQ(heard.messages().size(), 1u);
    EXPECT_EQ(heard.messages()[0].substr(0, 2), code);
    EXPECT_TRUE(heard.is_closed);
    EXPECT_EQ(heard.error, 0u);
  }
  EXPECT_EQ(client->answered, 3u);
  EXPECT_EQ(session->held(), 0u);
  EXPECT_EQ(client->progress.phase, server::loop::Phase::idle);
}

TEST_F(GrpcTest, AnswersTheSameByteForByteHoweverTheRequestIsCut) {
  use("rules: [{name: per-ip, per: ip, limit: 20/minute, algorithm: fixed_window}]");
  client->call(kShouldRateLimit, kOneAddress);
  const std::string whole = client->received;
  for (const std::size_t piece : {1u, 2u, 3u, 7u}) {
    limiter = Limiter(
        {.clock = clock, .keys = 1'000, .sweeping = Sweeping::by_hand, .shared = server::loop::store_of_tests()});
    connect();
    client->piece = piece;
    client->call(kShouldRateLimit, kOneAddress);
    EXPECT_EQ(client->received, whole) << piece;
  }
}

TEST_F(GrpcTest, AnswersManyCallsOfOneConnectionAtOnce) {
  std::vector<std::int32_t> streams;
  for (int i = 0; i < 100; ++i) {
    streams.push_back(client->begin(GrpcClient::usual(kShouldRateLimit), framed(kOneAddress), true));
  }
  client->exchange();
  for (const std::int32_t stream : streams) EXPECT_EQ(client->heard[stream].status(), "0");
  EXPECT_EQ(client->answered, 100u);
}

struct Mistake {
  const char* name;
  const char* status;
  std::string path;
  std::string body;
  Fields more;
};

TEST_F(GrpcTest, ReportsEveryMistakeByItsStatus) {
  const std::string one = framed(kOneAddress), large = std::string("\0\0\x10\0\1", 5);
  const std::vector<Mistake> mistakes = {
      {"unknown service", "12", "/no.Such/Method", one, {}},
      {"unknown method", "12", "/grpc.health.v1.Health/check", one, {}},
      {"unparsable message", "13", kShouldRateLimit, framed("\xff\xff"), {}},
      {"no message", "12", kShouldRateLimit, "", {}},
      {"two messages", "12", kShouldRateLimit, one + one, {}},
      {"half a message", "13", kShouldRateLimit, one.substr(0, 20), {}},
      {"half a head", "13", kShouldRateLimit, one.substr(0, 3), {}},
      {"compression that is not here", "12", kShouldRateLimit, one, {{"grpc-encoding", "gzip"}}},
      {"a compressed message without encoding", "13", kShouldRateLimit, std::string("\1\0\0\0\1x", 6), {}},
      {"no framing", "13", kShouldRateLimit, "hello", {}},
      {"too large a message", "8", kShouldRateLimit, large, {}},
      {"no domain", "2", kShouldRateLimit, framed(""), {}},
      {"no descriptors",
       "2",
       kShouldRateLimit,
       framed("\x0a\x01"
              "d"),
       {}},
      {"a limit without unit",
       "3",
       kShouldRateLimit,
       framed("\x0a\x01"
              "d\x12\x04\x12\x02\x08\x05"),
       {}},
      {"a deadline that has passed", "4", kShouldRateLimit, one, {{"grpc-timeout", "0m"}}},
      {"a bad timeout", "13", kShouldRateLimit, one, {{"grpc-timeout", "soon"}}},
      {"too many header fields", "8", kShouldRateLimit, one, {{"x-big", std::string(17'000, 'x')}}},
      {"an unknown service's health", "5", kHealthCheck, framed("\x0a\x01x"), {}},
  };
  for (const Mistake& mistake : mistakes) {
    Fields fields = GrpcClient::usual(mistake.path);
    fields.insert(fields.end(), mistake.more.begin(), mistake.more.end());
    const std::int32_t stream = begin_call(fields, mistake.body, true);
    const Heard& heard = client->heard[stream];
    EXPECT_EQ(heard.status(), mistake.status) << mistake.name;
    EXPECT_NE(heard.text(), "") << mistake.name;
    EXPECT_EQ(heard.headers, 1u) << mistake.name << ": trailers only";
    EXPECT_EQ(heard.fields.at(":status"), "200") << mistake.name;
    EXPECT_TRUE(heard.is_closed) << mistake.name;
    EXPECT_EQ(heard.fields.count("grpc-accept-encoding") > 0, mistake.more == (Fields{{"grpc-encoding", "gzip"}}))
        << mistake.name;
  }
  EXPECT_EQ(client->call(kHealthCheck, "").status(), "0") << "the connection goes on";
  EXPECT_EQ(session->held(), 0u);
}

TEST_F(GrpcTest, AcceptsIdentityAndTypesOfGrpc) {
  EXPECT_EQ(client->call(kHealthCheck, "", {{"grpc-encoding", "identity"}}).status(), "0");
  for (const char* type : {"application/grpc+proto", "application/grpc;charset=utf-8"}) {
    Fields fields = GrpcClient::usual(kHealthCheck);
    fields.back().second = type;
    const std::int32_t stream = begin_call(fields, framed(""), true);
    EXPECT_EQ(client->heard[stream].status(), "0") << type;
  }
}

TEST_F(GrpcTest, RefusesPlainHttpWithAnHttpStatus) {
  for (const char* type : {"application/json", "application/grpc-web", "application/grp"}) {
    Fields fields = GrpcClient::usual(kHealthCheck);
    fields.back().second = type;
    const std::int32_t stream = begin_call(fields, "{}", true);
    EXPECT_EQ(client->heard[stream].fields.at(":status"), "415") << type;
    EXPECT_EQ(client->heard[stream].fields.at("accept"), "application/grpc") << type;
    EXPECT_EQ(client->heard[stream].status(), "none");
  }
  for (const std::string method : {"GET", "HEAD"}) {
    Fields fields = GrpcClient::usual(kHealthCheck);
    fields[0].second = method;
    const std::int32_t stream = begin_call(fields, "", true);
    const Heard& heard = client->heard[stream];
    EXPECT_EQ(heard.fields.at(":status"), "405");
    EXPECT_EQ(heard.fields.at("allow"), "POST");
    EXPECT_EQ(heard.fields.at("content-type"), "text/plain; charset=utf-8");
    EXPECT_EQ(heard.body.find("/v1/check") != std::string::npos, method == "GET") << "HEAD is answered without a body";
    EXPECT_TRUE(heard.is_closed);
    EXPECT_EQ(heard.headers, 1u);
  }
  EXPECT_EQ(session->held(), 0u);
}

TEST_F(GrpcTest, RefusesPlainHttpWhenItsRequestEndsOrTimesOut) {
  Fields fields = GrpcClient::usual("/");
  fields.back().second = "text/plain";
  const std::int32_t polite = begin_call(fields, "x"), silent = begin_call(fields, "x");
  for (const std::int32_t stream : {polite, silent}) EXPECT_EQ(client->heard[stream].headers, 0u);
  EXPECT_EQ(client->progress.phase, server::loop::Phase::body);
  send_more(polite, "the end", true);
  EXPECT_TRUE(client->heard[polite].is_closed);
  EXPECT_FALSE(client->heard[silent].is_closed);
  EXPECT_EQ(client->answered, 1u);
  wake_at(server::grpc::kGrpcRequestMax);
  EXPECT_TRUE(client->heard[silent].is_closed);
  for (const std::int32_t stream : {polite, silent}) {
    EXPECT_EQ(client->heard[stream].error, 0u);
    EXPECT_EQ(client->heard[stream].fields.at(":status"), "415");
    EXPECT_NE(client->heard[stream].body, "");
  }
  EXPECT_EQ(session->due(), kNever);
}

TEST_F(GrpcTest, RefusesALongPlainRequestWithinItAndLaterEndsIt) {
  Fields fields = GrpcClient::usual("/");
  fields.back().second = "text/plain";
  std::array<std::int32_t, 3> streams{};
  for (std::int32_t& stream : streams) stream = begin_call(fields, std::string(66'000, 'x'));
  for (const std::int32_t stream : streams) {
    EXPECT_NE(client->heard[stream].body, "");
    EXPECT_FALSE(client->heard[stream].is_closed) << "some clients lose an answer that comes with a reset";
  }
  EXPECT_EQ(session->held(), 3 * server::grpc::kGrpcCallBytes) << "the server does not keep what they send";
  client->send(streams[0], "the end", true);
  send_more(streams[1], std::string(66'000, 'x'), false);
  EXPECT_TRUE(client->heard[streams[0]].is_closed);
  EXPECT_TRUE(client->heard[streams[1]].is_closed);
  EXPECT_FALSE(client->heard[streams[2]].is_closed);
  wake_at(server::grpc::kGrpcRequestMax);
  EXPECT_TRUE(client->heard[streams[2]].is_closed);
  for (const std::int32_t stream : streams) EXPECT_EQ(client->heard[stream].error, 0u);
  EXPECT_EQ(session->due(), kNever);
}

TEST_F(GrpcTest, EndsAPlainRequestThatContinuesAndReadsNoAnswer) {
  connect(0);
  client->takes = false;
  Fields fields = GrpcClient::usual("/");
  fields.back().second = "text/plain";
  const std::int32_t stream = begin_call(fields, std::string(100'000, 'x'));
  EXPECT_EQ(client->heard[stream].fields.at(":status"), "415");
  EXPECT_FALSE(client->heard[stream].is_closed);
  send_more(stream, std::string(100'000, 'x'), false);
  EXPECT_TRUE(client->heard[stream].is_closed);
  EXPECT_EQ(session->held(), 0u);
}

TEST_F(GrpcTest, StopsAClientThatContinuesToSendAfterItsAnswer) {
  const std::int32_t stream = begin_call(GrpcClient::usual("/no.Such/Method"), "abc");
  EXPECT_EQ(client->heard[stream].status(), "12");
  EXPECT_TRUE(client->heard[stream].is_closed);
  EXPECT_EQ(client->heard[stream].error, 0u) << "a reset without an error";
}

TEST_F(GrpcTest, AnswersARequestThatEndsInTrailers) {
  const std::int32_t stream = begin_call(GrpcClient::usual(kHealthCheck), framed(""));
  const nghttp2_nv trailer{GrpcClient::bytes("x-a"), GrpcClient::bytes("b"), 3, 1, NGHTTP2_NV_FLAG_NONE};
  nghttp2_submit_headers(client->http2, NGHTTP2_FLAG_END_STREAM, stream, nullptr, &trailer, 1, nullptr);
  client->exchange();
  EXPECT_EQ(client->heard[stream].status(), "0");
}

TEST_F(GrpcTest, EndsARequestWhoseDeadlinePasses) {
  Fields fields = GrpcClient::usual(kShouldRateLimit);
  fields.emplace_back("grpc-timeout", "20m");
  const std::int32_t hurried = client->begin(fields, framed(kOneAddress).substr(0, 10));
  const std::int32_t patient = begin_call(GrpcClient::usual(kShouldRateLimit), "");
  EXPECT_EQ(client->progress.phase, server::loop::Phase::body);
  EXPECT_EQ(session->due(), kStart + Micros{20'000});
  wake_at(Micros{19'999});
  EXPECT_FALSE(client->heard[hurried].is_closed);
  wake_at(Micros{20'000});
  EXPECT_EQ(client->heard[hurried].status(), "4");
  EXPECT_EQ(session->due(), kStart + server::grpc::kGrpcRequestMax);
  wake_at(server::grpc::kGrpcRequestMax);
  EXPECT_EQ(client->heard[patient].status(), "4");
  EXPECT_EQ(session->due(), kNever);
  EXPECT_EQ(session->held(), 0u);
}

TEST_F(GrpcTest, HasNoDeadlineForACallThatIsAnswered) {
  client->call(kShouldRateLimit, kOneAddress, {{"grpc-timeout", "20m"}});
  EXPECT_EQ(session->due(), kNever);
}

TEST_F(GrpcTest, DropsACancelledCall) {
  const std::int32_t stream = begin_call(GrpcClient::usual(kShouldRateLimit), framed(kOneAddress).substr(0, 10));
  EXPECT_EQ(session->held(), server::grpc::kGrpcCallBytes + 10);
  nghttp2_submit_rst_stream(client->http2, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
  client->exchange();
  EXPECT_EQ(session->held(), 0u);
  EXPECT_EQ(client->progress.phase, server::loop::Phase::idle);
  wake_at(server::grpc::kGrpcRequestMax);
  EXPECT_EQ(session->due(), kNever);
  EXPECT_EQ(service.calls.kept(), 1u);
}

TEST_F(GrpcTest, KeepsCallsForTheNextOnes) {
  for (int i = 0; i < 10; ++i) client->call(kHealthCheck, "");
  EXPECT_EQ(service.calls.kept(), 1u);
  client->begin(GrpcClient::usual(kShouldRateLimit), "");
  client->exchange();
  connect();
  EXPECT_EQ(service.calls.kept(), 1u) << "the open call of a client that leaves is reused";
}

TEST_F(GrpcTest, SendsNoMoreThanTheWindowOfTheClientAllows) {
  connect(10);
  const Heard& heard = client->call(kHealthList, "");
  EXPECT_EQ(heard.status(), "0");
  EXPECT_EQ(heard.messages().size(), 1u);

  client->takes = false;
  const std::int32_t stream = begin_call(GrpcClient::usual(kHealthList), framed(""), true);
  EXPECT_EQ(client->heard[stream].body.size(), 10u);
  EXPECT_GT(session->held(), 0u);
  EXPECT_EQ(session->due(), kStart + kTakeMax) << "the server does not wait forever for the client to read the answer";
  client->takes = true;
  nghttp2_session_consume(client->http2, stream, 10);
  client->exchange();
  EXPECT_EQ(client->heard[stream].status(), "0");
  EXPECT_EQ(client->heard[stream].body, heard.body);
  EXPECT_EQ(session->held(), 0u);
  EXPECT_EQ(session->due(), kNever);
}

TEST_F(GrpcTest, TakesAMessageLargerThanAnyWindow) {
  std::string message =
      "\x0a\x04"
      "edge";
  for (int i = 0; i < 16; ++i) {  // an unknown field of 60,000 bytes
    message += std::string("\x9a\x06\xe0\xd4\x03") + std::string(60'000, 'x');
  }
  EXPECT_EQ(client->call(kShouldRateLimit, message).text(), "rate limit descriptor list must not be empty");
}

TEST_F(GrpcTest, ReportsItsHealth) {
  for (const char* service_name : {"", "\x0a\x09ratelimit"}) {
    EXPECT_EQ(client->call(kHealthCheck, service_name).messages().at(0), "\x08\x01");
  }
  EXPECT_EQ(client->call(kHealthList, "").messages().size(), 1u);
}

TEST_F(GrpcTest, ReportsItsHealthToWatchersUntilItDrains) {
  const std::int32_t known = client->begin(GrpcClient::usual(kHealthWatch), framed(""), true);
  const std::int32_t unknown = begin_call(GrpcClient::usual(kHealthWatch), framed("\x0a\x01x"), true);
  EXPECT_EQ(client->heard[known].messages(), std::vector<std::string>{"\x08\x01"});
  EXPECT_EQ(client->heard[unknown].messages(), std::vector<std::string>{"\x08\x03"});
  EXPECT_FALSE(client->heard[known].is_closed);
  EXPECT_EQ(client->progress.phase, server::loop::Phase::idle);
  EXPECT_EQ(session->due(), kNever);

  session->drain(client->player.output);
  client->exchange();
  EXPECT_EQ(client->heard[known].messages(), (std::vector<std::string>{"\x08\x01", "\x08\x02"}));
  EXPECT_EQ(client->heard[known].status(), "14");
  EXPECT_TRUE(client->heard[known].is_closed);
  EXPECT_TRUE(session->is_drained());
}

TEST_F(GrpcTest, NotifiesHealthWatchersBeforeItStops) {
  std::atomic<bool> stopping{false};
  service.stopping = &stopping;
  const std::int32_t watch = begin_call(GrpcClient::usual(kHealthWatch), framed(""), true);
  stopping = true;
  session->announce_stop(client->player.output);
  client->exchange();
  EXPECT_EQ(client->heard[watch].messages(), (std::vector<std::string>{"\x08\x01", "\x08\x02"}));
  EXPECT_FALSE(client->heard[watch].is_closed);
  const std::int32_t check = begin_call(GrpcClient::usual(kHealthCheck), framed(""), true);
  EXPECT_EQ(client->heard[check].messages(), std::vector<std::string>{"\x08\x02"});
  EXPECT_EQ(client->heard[check].status(), "0");
}

TEST_F(GrpcTest, EndsAWatchWithoutAlarmWhenASuccessorServes) {
  std::atomic<bool> stopping{false};
  service.stopping = &stopping;
  const std::int32_t watch = begin_call(GrpcClient::usual(kHealthWatch), framed(""), true);
  session->drain(client->player.output);
  client->exchange();
  EXPECT_EQ(client->heard[watch].messages(), std::vector<std::string>{"\x08\x01"});
  EXPECT_EQ(client->heard[watch].status(), "14");
}

TEST_F(GrpcTest, EndsAWatchAtItsDeadline) {
  Fields fields = GrpcClient::usual(kHealthWatch);
  fields.emplace_back("grpc-timeout", "60S");
  client->piece = 1;  // so that its request takes more than one turn
  const std::int32_t stream = begin_call(fields, framed(""), true);
  wake_at(server::grpc::kGrpcRequestMax);
  EXPECT_EQ(client->heard[stream].status(), "none");
  wake_at(Micros{60'000'000});
  EXPECT_EQ(client->heard[stream].status(), "4");
}

TEST_F(GrpcTest, DescribesItselfInBothVersions) {
  for (const char* version : {"v1", "v1alpha"}) {
    const std::string path = std::string("/grpc.reflection.") + version + ".ServerReflection/ServerReflectionInfo";
    const std::int32_t stream = begin_call(GrpcClient::usual(path), framed("\x3a\x01*"));
    EXPECT_EQ(client->heard[stream].messages().size(), 1u);
    EXPECT_NE(client->heard[stream].body.find("envoy.service.ratelimit.v3.RateLimitService"), std::string::npos);
    send_more(stream,
              framed("\x22\x03"
                     "a.B") +
                  framed("\x3a\x01*").substr(0, 6),
              false);
    EXPECT_EQ(client->heard[stream].messages().size(), 2u);
    send_more(stream, framed("\x3a\x01*").substr(6), true);
    EXPECT_EQ(client->heard[stream].messages().size(), 3u);
    EXPECT_EQ(client->heard[stream].status(), "0");
  }
}

TEST_F(GrpcTest, DrainsWithANoticeAPingAndTheLastGoaway) {
  const std::int32_t unfinished = begin_call(GrpcClient::usual(kShouldRateLimit), framed(kOneAddress).substr(0, 9));
  session->drain(client->player.output);
  EXPECT_FALSE(session->is_drained());
  client->hear(client->player.take());
  EXPECT_EQ(client->goaways, std::vector<std::int32_t>{0x7fffffff});
  client->exchange();  // answers the ping
  EXPECT_EQ(client->goaways, (std::vector<std::int32_t>{0x7fffffff, unfinished}));
  EXPECT_FALSE(session->is_drained()) << "a call is open";
  send_more(unfinished, framed(kOneAddress).substr(9), true);
  EXPECT_EQ(client->heard[unfinished].status(), "0");
  EXPECT_TRUE(session->is_drained());
}

TEST_F(GrpcTest, DoesNotWaitForAPingThatIsNeverAnswered) {
  client->call(kHealthCheck, "");
  session->drain(client->player.output);
  client->player.take();
  EXPECT_FALSE(session->is_drained());
  EXPECT_EQ(session->due(), kStart + server::grpc::kGrpcDrainNotice);
  wake_at(server::grpc::kGrpcDrainNotice);
  EXPECT_TRUE(session->is_drained());
}

TEST_F(GrpcTest, DrainsClientsThatGreetAfterItHasBegun) {
  session->drain(client->player.output);
  EXPECT_EQ(client->player.output, "") << "the client's protocol is unknown";
  EXPECT_TRUE(session->is_drained()) << "the server does not wait for a client without a preface";
  const std::int32_t asked = begin_call(GrpcClient::usual(kShouldRateLimit), framed(kOneAddress).substr(0, 9));
  EXPECT_EQ(client->goaways, (std::vector<std::int32_t>{0x7fffffff, asked}));
  EXPECT_FALSE(session->is_drained()) << "a call is open";
  send_more(asked, framed(kOneAddress).substr(9), true);
  EXPECT_EQ(client->heard[asked].status(), "0") << "a request that was sent before is answered";
  EXPECT_TRUE(session->is_drained());
  EXPECT_FALSE(client->is_broken) << "SETTINGS come first";
}

TEST_F(GrpcTest, SaysWhileDrainingThatItNoLongerServes) {
  client->call(kHealthCheck, "");
  session->drain(client->player.output);
  EXPECT_EQ(client->call(kHealthCheck, "").messages().at(0), "\x08\x02") << "sent before the client got the notice";
  connect();
  std::string output;
  session->drain(output);
  EXPECT_TRUE(session->is_drained()) << "the client has sent nothing";
  EXPECT_EQ(output, "");
  EXPECT_EQ(client->call(kHealthCheck, "").messages().at(0), "\x08\x02");
}

TEST_F(GrpcTest, SaysWhyItGivesUp) {
  client->call(kHealthCheck, "");
  session->give_up(server::loop::GiveUp::no_memory, client->player.output);
  client->exchange();
  EXPECT_EQ(client->goaway_text, "all connections together have reached the memory limit");
  connect();
  std::string output;
  session->give_up(server::loop::GiveUp::too_slow, output);
  EXPECT_EQ(output, "") << "the client's protocol is unknown";
  session->give_up(server::loop::GiveUp::too_crowded, output);
  client->hear(output);
  EXPECT_EQ(client->goaway_text, "too many connections are open");
}

TEST_F(GrpcTest, RefersClientsOfOtherProtocolsToTheRightPort) {
  const std::string http = talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(http.starts_with("HTTP/1.1 400 ")) << http;
  const std::size_t body = http.find("\r\n\r\n") + 4;
  EXPECT_NE(http.find("Content-Length: " + std::to_string(http.size() - body) + "\r\n"), std::string::npos) << http;
  EXPECT_TRUE(talk("POST /v1/check HTTP/1.1\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(talk("*1\r\n$4\r\nPING\r\n").starts_with("-ERR "));
  for (const char* typed : {"PING\r\n", "ping\n", "Client list\r\n"}) {
    EXPECT_TRUE(talk(typed).starts_with("-ERR ")) << typed;
  }
  EXPECT_EQ(talk("INVALID CONNECTION PREFACE\r\n\r\n"), "") << "words of no protocol";
  EXPECT_EQ(talk(std::string("\x16\x03\x01\x02\x00\x01", 6)), "");
  EXPECT_EQ(talk("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"), "");
  EXPECT_EQ(talk(std::string(24, 'x')), "");
}

TEST_F(GrpcTest, TakesLittleMemoryBeforeTheFirstByte) {
  constexpr std::size_t kSessions = 100;
  std::vector<std::unique_ptr<server::loop::Session>> silent(kSessions);
  const std::size_t before = mallinfo2().uordblks;
  for (auto& one : silent) one = server::grpc::make_grpc_session(service);
  EXPECT_LT((mallinfo2().uordblks - before) / kSessions, 1'024u);
}

TEST_F(GrpcTest, WaitsForAPrefaceThatIsNotComplete) {
  std::string output;
  server::loop::Turn turn(limiter);
  for (const char* begun : {"P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r", "GE", "PIN"}) {
    const server::loop::Progress progress = session->consume(begun, turn, output);
    EXPECT_FALSE(progress.close) << begun;
    EXPECT_EQ(progress.consumed, 0u);
    EXPECT_EQ(progress.phase, server::loop::Phase::header);
  }
  EXPECT_EQ(output, "");
}

}  // namespace
}  // namespace weir::test
