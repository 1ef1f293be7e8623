// Tests bounds set below their defaults: beyond a bound, a client gets an error and is counted; just within, it
// passes.
#include "server/loop/bounds.h"

#include "server/http/http_session_fixture.h"
#include "server/resp/resp_session_fixture.h"

namespace weir::server {
namespace {

template <class Fixture>
class Bounded : public Fixture {
 protected:
  Bounded() {
    this->service.bounds.counts = &counts;
    this->service.bounds.http = {.header_max = 400, .fields_max = 5};
    this->service.bounds.body_max = 1000;
    this->service.bounds.key_max = 10;
    this->service.bounds.checks_max = 3;
    this->service.bounds.resp_args_max = 8;
    this->service.bounds.resp_line_max = 200;
  }

  loop::ListenerCounts counts;
};

using HttpBounded = Bounded<http::HttpClient>;

TEST_F(HttpBounded, HeadersHaveAMaximumOfBytesAndFields) {
  EXPECT_EQ(status(send(request("GET", "/livez", "", "X: " + std::string(300, 'x') + "\r\n"))), 200);
  EXPECT_EQ(counts.count(loop::Refused::header), 0U);
  EXPECT_EQ(status(send(request("GET", "/livez", "", "X: " + std::string(400, 'x') + "\r\n"))), 431);
  connect();
  const std::string answer = send(request("GET", "/livez", "", "a: b\r\na: b\r\na: b\r\na: b\r\na: b\r\n"));
  EXPECT_EQ(status(answer), 431);
  EXPECT_TRUE(has(answer, "more than 5 fields")) << answer;
  EXPECT_EQ(counts.count(loop::Refused::header), 2U);
}

TEST_F(HttpBounded, BodiesHaveAMaximumOfBytesAndBatchesFourTimesThat) {
  EXPECT_EQ(status(post("/v1/check", std::string(1001, ' '))), 413);
  connect();
  EXPECT_EQ(status(post("/v1/checks", "[" + std::string(3998, ' ') + "]")), 200);
  EXPECT_EQ(status(post("/v1/checks", std::string(4001, ' '))), 413);
  EXPECT_EQ(counts.count(loop::Refused::body), 2U);
}

TEST_F(HttpBounded, KeysHaveAMaximumLengthOnEveryRoute) {
  EXPECT_EQ(status(post("/v1/check", R"({"key":"0123456789","limit":"5/s"})")), 200);
  const std::string answer = post("/v1/check", R"({"key":"01234567890","limit":"5/s"})");
  EXPECT_EQ(status(answer), 400);
  EXPECT_TRUE(has(answer, "the key has 11 bytes, at most 10 are accepted")) << answer;
  EXPECT_EQ(status(post("/v1/acquire", R"({"key":"01234567890","limit":"5 concurrent"})")), 400);
  EXPECT_EQ(status(send(request("DELETE", "/v1/keys?key=01234567890"))), 400);
  EXPECT_EQ(counts.count(loop::Refused::key), 3U);
  const std::string many = post("/v1/checks", R"([{"key":"01234567890","limit":"5/s"},{"key":"0","limit":"5/s"}])");
  EXPECT_EQ(status(many), 200);
  EXPECT_TRUE(has(many, "at most 10 are accepted")) << many;
  EXPECT_EQ(counts.count(loop::Refused::key), 4U);
}

TEST_F(HttpBounded, BatchesHaveAMaximumOfChecks) {
  const std::string one = R"({"key":"u","limit":"5/s"})";
  EXPECT_EQ(status(post("/v1/checks", "[" + one + "," + one + "," + one + "]")), 200);
  EXPECT_EQ(status(post("/v1/checks", "[" + one + "," + one + "," + one + "," + one + "]")), 413);
  EXPECT_EQ(counts.count(loop::Refused::body), 1U);
}

TEST_F(HttpBounded, InputThatIsNotHttpCountsAsMalformed) {
  EXPECT_EQ(status(send("PING\r\n\r\n")), 400);
  EXPECT_EQ(counts.count(loop::Refused::malformed), 1U);
}

using RespBounded = Bounded<resp::RespSessionTest>;

TEST_F(RespBounded, CommandsHaveAMaximumOfArgumentsAndBytes) {
  session = resp::make_resp_session(service, 1);
  const std::string protocol = "-ERR Protocol error: ";
  EXPECT_EQ(say("*9\r\n"), protocol + "invalid multibulk length: 9 arguments, at most 8 are accepted\r\n");
  EXPECT_EQ(say("*1\r\n$1001\r\n"), protocol + "invalid bulk length: 1001 bytes, at most 1000 are accepted\r\n");
  EXPECT_EQ(say(std::string(201, 'a')), protocol + "too big inline request\r\n");
  EXPECT_EQ(counts.count(loop::Refused::body), 3U);
  EXPECT_EQ(say("*1\r\n$x\r\n"), protocol + "invalid bulk length\r\n");
  EXPECT_EQ(counts.count(loop::Refused::malformed), 1U);
}

TEST_F(RespBounded, KeysHaveAMaximumLengthInEveryCommand) {
  const std::string too_long = "-ERR the key has 11 bytes, at most 10 are accepted; send a hash of it instead\r\n";
  EXPECT_EQ(flat(say("CL.THROTTLE 0123456789 15 30 60\r\n")), "0 16 15 -1 2 ");
  for (const std::string_view command :
       {"CL.THROTTLE 01234567890 15 30 60\r\n", "THROTTLE 01234567890 15 30 60\r\n", "GCRA 01234567890 15 30 60\r\n",
        "WEIR.LIMIT 01234567890 5/s\r\n", "WEIR.RESET 01234567890\r\n", "DEL a 01234567890\r\n"}) {
    EXPECT_EQ(say(command), too_long) << command;
  }
  EXPECT_EQ(counts.count(loop::Refused::key), 6U);
}

TEST_F(RespBounded, SmallCommandsHaveTheTimeoutOfAHeader) {
  session = resp::make_resp_session(service, 1);
  say("*2\r\n$4\r\nECHO\r\n$900\r\n");
  EXPECT_EQ(progress.phase, loop::Phase::header);
  session = resp::make_resp_session(service, 1);
  say("*2\r\n$4\r\nECHO\r\n$900\r\n" + std::string(500, 'x'));
  EXPECT_EQ(progress.phase, loop::Phase::body);
}

}  // namespace
}  // namespace weir::server
