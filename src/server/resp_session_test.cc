// A Redis client's conversation without a socket: CL.THROTTLE's vectors, handshakes, errors, pipelines.
#include "server/resp_session.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "resp/reply.h"
#include "resp/writer.h"

namespace weir {
namespace {

constexpr Micros kStart{1'700'000'000'000'000};

class RespSessionTest : public testing::Test {
 protected:
  // Everything that is answered to `bytes`.
  std::string say(std::string_view bytes) {
    std::string output;
    progress = session->consume(bytes, output);
    return output;
  }

  // A five-number reply as text, times in milliseconds from the start.
  std::string throttle(std::int64_t at_ms, std::string_view args) {
    clock->set(kStart + Micros{at_ms * 1000});
    const std::string reply = say("CL.THROTTLE " + std::string(args) + "\r\n");
    resp::ReplyParser parser;
    const auto parsed = parser.parse(reply);
    std::string out = parsed.value.text;
    for (const auto& item : parsed.value.items) out += std::to_string(item.integer) + " ";
    return out;
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(kStart);
  Limiter limiter{LimiterOptions{clock, 1000}};
  std::unique_ptr<Session> session = make_resp_session(limiter, "9.9.9", 77);
  Progress progress;
};

TEST_F(RespSessionTest, ThrottlesAsRedisCellDoes) {
  struct Row {
    std::int64_t at_ms;
    const char* quantity;
    const char* reply;  // limited, limit, remaining, retry, reset
  };
  const std::vector<Row> rows = {
      {0, "6", "1 5 5 -1 0 "},    {0, "1", "0 5 4 -1 1 "},    {0, "1", "0 5 3 -1 2 "},    {0, "1", "0 5 2 -1 3 "},
      {0, "1", "0 5 1 -1 4 "},    {0, "1", "0 5 0 -1 5 "},    {0, "1", "1 5 0 1 5 "},     {3000, "1", "0 5 2 -1 3 "},
      {3100, "1", "0 5 1 -1 4 "}, {4000, "1", "0 5 1 -1 4 "}, {8000, "1", "0 5 4 -1 1 "}, {9500, "1", "0 5 4 -1 1 "},
      {9500, "0", "0 5 4 -1 1 "}, {9500, "2", "0 5 2 -1 3 "}, {9500, "5", "1 5 2 3 3 "},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(throttle(rows[i].at_ms, std::string("k 4 1 1 ") + rows[i].quantity), rows[i].reply) << "row " << i;
  }
}

TEST_F(RespSessionTest, GivesTheFirstAnswersThatEveryoneQuotes) {
  EXPECT_EQ(throttle(0, "user123 15 30 60"), "0 16 15 -1 2 ");
  EXPECT_EQ(throttle(0, "k 0 1 2"), "0 1 0 -1 2 ");
  EXPECT_EQ(throttle(0, "k 0 1 2"), "1 1 0 2 2 ");
  EXPECT_EQ(throttle(0, "u 1 30 60"), "0 2 1 -1 2 ");
  EXPECT_EQ(throttle(0, "u 1 30 60"), "0 2 0 -1 4 ");
  EXPECT_EQ(throttle(0, "u 1 30 60"), "1 2 0 2 4 ");
}

TEST_F(RespSessionTest, GivesBackWithANegativeQuantity) {
  EXPECT_EQ(throttle(0, "k 4 1 1 3"), "0 5 2 -1 3 ");
  EXPECT_EQ(throttle(0, "k 4 1 1 -2"), "0 5 4 -1 1 ");
  EXPECT_EQ(throttle(0, "k 4 1 1 -9007199254740992"), "0 5 5 -1 0 ");
}

TEST_F(RespSessionTest, NeverSaysDeniedAndRetryAtOnce) {
  EXPECT_EQ(throttle(0, "k 0 1000000 1"), "0 1 0 -1 1 ");
  EXPECT_EQ(throttle(0, "k 0 1000000 1"), "1 1 0 1 1 ");
}

TEST_F(RespSessionTest, WordsThrottleErrors) {
  EXPECT_EQ(throttle(0, "k 1 1"),
            "ERR Cell error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]");
  EXPECT_EQ(throttle(0, "k x 1 1"), "ERR Cell error: Couldn't parse as integer: x");
  EXPECT_EQ(throttle(0, "k 1 0 1"), "ERR Cell error: Zero rates are not supported");
  EXPECT_EQ(throttle(0, "k 1 1099511627776 1").substr(0, 4), "ERR ");  // faster than any bucket refills
  EXPECT_EQ(throttle(0, "k 0 1 1"), "0 1 0 -1 1 ");                    // and nothing was charged
}

TEST_F(RespSessionTest, AnswersPings) {
  EXPECT_EQ(say("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(say("*2\r\n$4\r\nping\r\n$2\r\nhi\r\n"), "$2\r\nhi\r\n");
  EXPECT_EQ(say("PING a b\r\n"), "-ERR wrong number of arguments for 'ping' command\r\n");
  EXPECT_EQ(say("ECHO \"a\\r\\nb\"\r\n"), "$4\r\na\r\nb\r\n");
}

TEST_F(RespSessionTest, SaysHelloInBothProtocols) {
  const std::string pairs2 =
      "$6\r\nserver\r\n$4\r\nweir\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:77\r\n"
      "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
  std::string pairs3 = pairs2;
  pairs3.replace(pairs3.find(":2"), 2, ":3");
  EXPECT_EQ(say("HELLO\r\n"), "*14\r\n" + pairs2);
  EXPECT_EQ(say("hello 3\r\n"), "%7\r\n" + pairs3);
  EXPECT_EQ(say("HELLO\r\n"), "%7\r\n" + pairs3);
  EXPECT_EQ(say("CLIENT GETNAME\r\n"), "_\r\n");
  EXPECT_EQ(say("HELLO 2 SETNAME web AUTH default pw\r\n"), "*14\r\n" + pairs2);
  EXPECT_EQ(say("CLIENT GETNAME\r\n"), "$3\r\nweb\r\n");
}

TEST_F(RespSessionTest, RefusesAWrongHelloAndStaysAsItWas) {
  EXPECT_EQ(say("HELLO 4\r\n"), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_EQ(say("HELLO 1\r\n"), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_EQ(say("HELLO x\r\n"), "-ERR Protocol version is not an integer or out of range\r\n");
  EXPECT_EQ(say("HELLO 3 FOO\r\n"), "-ERR Syntax error in HELLO option 'FOO'\r\n");
  EXPECT_EQ(say("HELLO 3 AUTH a\r\n"), "-ERR Syntax error in HELLO option 'AUTH'\r\n");
  EXPECT_EQ(say("HELLO 3 AUTH bob x\r\n"), "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  EXPECT_EQ(say("HELLO 3 SETNAME \"a b\"\r\n"),
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
  EXPECT_EQ(say("CLIENT GETNAME\r\n"), "$-1\r\n");
}

TEST_F(RespSessionTest, AnswersWhatClientsSendOnConnecting) {
  EXPECT_EQ(say("CLIENT SETINFO LIB-NAME redis-py\r\nCLIENT SETINFO LIB-VER 8.1\r\n"), "+OK\r\n+OK\r\n");
  EXPECT_EQ(say("CLIENT SETNAME worker\r\nCLIENT ID\r\n"), "+OK\r\n:77\r\n");
  EXPECT_EQ(say("CLIENT FOO\r\n"), "-ERR unknown subcommand 'FOO'. Try CLIENT HELP.\r\n");
  EXPECT_EQ(say("client setname\r\n"), "-ERR wrong number of arguments for 'client|setname' command\r\n");
  EXPECT_EQ(say("CLIENT\r\n"), "-ERR wrong number of arguments for 'client' command\r\n");
  EXPECT_EQ(say("SELECT 0\r\nSELECT 99\r\nSELECT a\r\n"),
            "+OK\r\n-ERR DB index is out of range\r\n-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(say("COMMAND DOCS\r\n"), "*0\r\n");
  EXPECT_EQ(say("CONFIG GET save\r\n"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
  EXPECT_EQ(say("CONFIG GET appendonly\r\n"), "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
  EXPECT_EQ(say("CONFIG GET maxmemory\r\n"), "*0\r\n");
  EXPECT_EQ(say("AUTH pw\r\n").substr(0, 40), "-ERR AUTH <password> called without any ");
  EXPECT_EQ(say("RESET\r\n"), "+RESET\r\n");
}

TEST_F(RespSessionTest, RefusesALongClientName) {
  const std::string longest(64, 'n'), refusal = "-ERR Client names have at most 64 bytes; this one has 65\r\n";
  EXPECT_EQ(say("CLIENT SETNAME " + longest + "\r\n"), "+OK\r\n");
  EXPECT_EQ(say("CLIENT SETNAME " + longest + "n\r\n"), refusal);
  EXPECT_EQ(say("HELLO 3 SETNAME " + longest + "n\r\n"), refusal);
  EXPECT_EQ(say("CLIENT GETNAME\r\n"), "$64\r\n" + longest + "\r\n");
}

TEST_F(RespSessionTest, InformsInWordsThatClientsLookFor) {
  const std::string info = say("INFO\r\n");
  for (const char* line : {"redis_version:7.0.15\r\n", "loading:0\r\n", "role:master\r\n", "weir_version:9.9.9\r\n",
                           "redis_mode:standalone\r\n"}) {
    EXPECT_NE(info.find(line), std::string::npos) << line;
  }
  say("HELLO 3\r\n");
  EXPECT_EQ(say("info replication\r\n").front(), '=');
  EXPECT_EQ(say("COMMAND DOCS\r\nCONFIG GET x\r\n"), "%0\r\n%0\r\n");
}

TEST_F(RespSessionTest, NamesAnUnknownCommandAsRedisDoes) {
  EXPECT_EQ(say("FOO bar baz\r\n"), "-ERR unknown command 'FOO', with args beginning with: 'bar' 'baz' \r\n");
  EXPECT_EQ(say("FOO \"a\\r\\n+OK\"\r\n"), "-ERR unknown command 'FOO', with args beginning with: 'a  +OK' \r\n");
  std::string request;
  const std::string name(1000, 'n'), arg(1000, 'a');
  resp::append_command(request, std::vector<std::string_view>{name, arg, arg});
  EXPECT_EQ(say(request), "-ERR unknown command '" + std::string(128, 'n') + "', with args beginning with: '" +
                              std::string(128, 'a') + "' \r\n");
}

TEST_F(RespSessionTest, GuessesACommandAfterTheWordsOfRedis) {
  EXPECT_EQ(say("CL.THROTLE u 1\r\n"),
            "-ERR unknown command 'CL.THROTLE', with args beginning with: 'u' '1' ; did you mean CL.THROTTLE?\r\n");
  EXPECT_EQ(say("GET u\r\n"), "-ERR unknown command 'GET', with args beginning with: 'u' \r\n");
}

TEST_F(RespSessionTest, CountsTheCommandsThatItLists) {
  const std::string list = say("COMMAND\r\n");
  EXPECT_EQ(":" + list.substr(1, list.find('\r') - 1) + "\r\n", say("COMMAND COUNT\r\n"));
  EXPECT_NE(list.find("*6\r\n$11\r\ncl.throttle\r\n:-5\r\n*0\r\n:1\r\n:1\r\n:1\r\n"), std::string::npos) << list;
  EXPECT_EQ(say("COMMAND INFO select nonsense\r\n"),
            "*2\r\n*6\r\n$6\r\nselect\r\n:2\r\n*0\r\n:0\r\n:0\r\n:0\r\n$-1\r\n");
  EXPECT_EQ(say("COMMAND INFO\r\n"), list);
}

TEST_F(RespSessionTest, HelpsWhereItSendsPeopleForHelp) {
  for (const std::string name : {"CLIENT", "CONFIG", "COMMAND"}) {
    EXPECT_EQ(say(name + " FOO\r\n"), "-ERR unknown subcommand 'FOO'. Try " + name + " HELP.\r\n");
    const std::string help = say(name + " help\r\n");
    EXPECT_NE(help.find("+" + name + " <subcommand>"), std::string::npos) << help;
  }
  EXPECT_EQ(say("CONFIG GET\r\n"), "-ERR wrong number of arguments for 'config|get' command\r\n");
}

TEST_F(RespSessionTest, AnswersAPipelineInOrderAndKeepsTheRest) {
  const std::string bytes = "PING\r\n*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n\r\nFOO\r\nPING\r\n*1\r\n$4\r\nPI";
  EXPECT_EQ(say(bytes), "+PONG\r\n$1\r\nx\r\n-ERR unknown command 'FOO', with args beginning with: \r\n+PONG\r\n");
  EXPECT_EQ(bytes.substr(progress.consumed), "*1\r\n$4\r\nPI");
  EXPECT_EQ(progress.phase, Phase::body);
  EXPECT_EQ(progress.answered, 5u);
  EXPECT_FALSE(progress.close);
  EXPECT_EQ(say("*1\r\n$4\r\nPING\r\n"), "+PONG\r\n");
  EXPECT_EQ(progress.phase, Phase::idle);
}

TEST_F(RespSessionTest, ClosesAfterQuitAndAfterGarbage) {
  EXPECT_EQ(say("QUIT\r\nPING\r\n"), "+OK\r\n");
  EXPECT_TRUE(progress.close);
  EXPECT_EQ(say("PING\r\n*1\r\n:1\r\nPING\r\n"), "+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n");
  EXPECT_TRUE(progress.close);
}

TEST_F(RespSessionTest, DropsWhatABrowserWouldSend) {
  EXPECT_EQ(say("POST / HTTP/1.1\r\nHost: x\r\n\r\nCL.THROTTLE k 0 1 100\r\n"), "");
  EXPECT_TRUE(progress.close);
  EXPECT_EQ(say("Host: x\r\n"), "");
  EXPECT_TRUE(progress.close);
  EXPECT_EQ(throttle(0, "k 0 1 100").front(), '0');
}

TEST_F(RespSessionTest, PausesWhenItsAnswersPileUp) {
  std::string bytes;
  for (int i = 0; i < 20'000; ++i) bytes += "INFO\r\n";
  std::string output;
  progress = session->consume(bytes, output);
  EXPECT_TRUE(progress.full);
  EXPECT_LT(output.size(), kOutputMax + 1000);
  std::size_t answered = progress.answered, consumed = progress.consumed;
  while (progress.full) {
    output.clear();
    progress = session->consume(std::string_view(bytes).substr(consumed), output);
    answered += progress.answered;
    consumed += progress.consumed;
  }
  EXPECT_EQ(answered, 20'000u);
  EXPECT_EQ(consumed, bytes.size());
}

TEST_F(RespSessionTest, DeniesNewKeysRatherThanForgiveSpentOnes) {
  std::string last;
  for (int i = 0; i < 3000; ++i) last = throttle(0, "key" + std::to_string(i) + " 0 1 60");
  EXPECT_TRUE(last.starts_with("1 ")) << last;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(throttle(0, "key" + std::to_string(i) + " 0 1 60").starts_with("1 ")) << i;
  EXPECT_EQ(say("PING\r\n"), "+PONG\r\n");
}

TEST_F(RespSessionTest, SaysWhyItGivesUp) {
  std::string output;
  for (const GiveUp why : {GiveUp::too_slow, GiveUp::no_room, GiveUp::too_crowded}) session->give_up(why, output);
  EXPECT_EQ(output,
            "-ERR the request was not finished in time\r\n"
            "-ERR all connections together hold as much memory as they may; try again shortly\r\n"
            "-ERR max number of clients reached\r\n");
}

}  // namespace
}  // namespace weir
