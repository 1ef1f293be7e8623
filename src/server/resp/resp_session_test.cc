// Tests a Redis client's connection without a socket: handshakes, passwords, errors, pipelines.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "resp/request.h"
#include "server/resp/resp_session_fixture.h"

namespace weir::server::resp {
namespace {

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

TEST_F(RespSessionTest, RefusesAWrongHelloAndChangesNothing) {
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
  EXPECT_EQ(say("COMMAND DOCS nothing\r\nCONFIG GET x\r\n"), "%0\r\n%0\r\n");
}

TEST_F(RespSessionTest, NamesAnUnknownCommandAsRedisDoes) {
  EXPECT_EQ(say("FOO bar baz\r\n"), "-ERR unknown command 'FOO', with args beginning with: 'bar' 'baz' \r\n");
  EXPECT_EQ(say("FOO \"a\\r\\n+OK\"\r\n"), "-ERR unknown command 'FOO', with args beginning with: 'a  +OK' \r\n");
  std::string request;
  const std::string name(1000, 'n'), arg(1000, 'a');
  weir::resp::append_command(request, std::vector<std::string_view>{name, arg, arg});
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
  EXPECT_NE(list.find("*6\r\n$11\r\ncl.throttle\r\n:-5\r\n*2\r\n+write\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"),
            std::string::npos)
      << list;
  EXPECT_EQ(say("COMMAND INFO select nonsense\r\n"),
            "*2\r\n*6\r\n$6\r\nselect\r\n:2\r\n*0\r\n:0\r\n:0\r\n:0\r\n$-1\r\n");
  EXPECT_EQ(say("COMMAND INFO\r\n"), list);
}

TEST_F(RespSessionTest, HasTheHelpThatItsErrorsName) {
  for (const std::string name : {"CLIENT", "CONFIG", "COMMAND"}) {
    EXPECT_EQ(say(name + " FOO\r\n"), "-ERR unknown subcommand 'FOO'. Try " + name + " HELP.\r\n");
    const std::string help = say(name + " help\r\n");
    EXPECT_NE(help.find("+" + name + " <subcommand>"), std::string::npos) << help;
  }
  EXPECT_EQ(say("CONFIG HELP\r\n"),
            "*3\r\n+CONFIG <subcommand> [<arg> ...]. Subcommands are:\r\n+GET\r\n"
            "+    <name> ...: appendonly, databases, save, or * for all.\r\n");
  EXPECT_EQ(say("CONFIG GET\r\n"), "-ERR wrong number of arguments for 'config|get' command\r\n");
}

TEST_F(RespSessionTest, AnswersAPipelineInOrderAndKeepsTheRest) {
  const std::string rest = "*1\r\n$4\r\nPI";
  const std::string bytes = "PING\r\n*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n\r\nFOO\r\nPING\r\n" + rest;
  EXPECT_EQ(say(bytes), "+PONG\r\n$1\r\nx\r\n-ERR unknown command 'FOO', with args beginning with: \r\n+PONG\r\n");
  EXPECT_EQ(left, loop::kIsOnFibers ? "" : rest);
  EXPECT_EQ(progress.phase, loop::Phase::header);
  EXPECT_EQ(progress.answered, 5u);
  EXPECT_FALSE(progress.close);
  EXPECT_EQ(say(left + "NG\r\n"), "+PONG\r\n");
  EXPECT_EQ(progress.phase, loop::Phase::idle);
}

TEST_F(RespSessionTest, ClosesAfterQuitAndAfterGarbage) {
  EXPECT_EQ(say("QUIT\r\nPING\r\n"), "+OK\r\n");
  EXPECT_TRUE(progress.close);
  EXPECT_EQ(say("PING\r\n*1\r\n:1\r\nPING\r\n"), "+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n");
  EXPECT_TRUE(progress.close);
}

TEST_F(RespSessionTest, ClosesAConnectionOfABrowser) {
  EXPECT_EQ(say("POST / HTTP/1.1\r\nHost: x\r\n\r\nCL.THROTTLE k 0 1 100\r\n"), "");
  EXPECT_TRUE(progress.close);
  EXPECT_EQ(say("Host: x\r\n"), "");
  EXPECT_TRUE(progress.close);
  EXPECT_EQ(throttle(0, "k 0 1 100").front(), '0');
}

TEST_F(RespSessionTest, PausesWhenItsAnswersPileUp) {
  std::string bytes;
  for (int i = 0; i < 20'000; ++i)
    bytes += i % 2 == 0 ? "INFO\r\n" : "*5\r\n$4\r\nGCRA\r\n$1\r\nk\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n";
  loop::SessionPlayer player(*session, limiter);
  progress = player.feed(bytes);
  EXPECT_TRUE(progress.full);
  EXPECT_LT(player.output.size(), loop::kOutputMax + 1000);
  std::size_t answered = progress.answered, consumed = progress.consumed;
  while (progress.full) {
    player.take();
    progress = player.feed("");
    answered += progress.answered;
    consumed += progress.consumed;
  }
  EXPECT_EQ(answered, 20'000u);
  EXPECT_EQ(consumed, bytes.size());
}

TEST_F(RespSessionTest, SaysWhyItGivesUp) {
  std::string output;
  for (const loop::GiveUp why : {loop::GiveUp::too_slow, loop::GiveUp::no_memory, loop::GiveUp::too_crowded})
    session->give_up(why, output);
  EXPECT_EQ(output,
            "-ERR the client did not finish the request in time\r\n"
            "-ERR all connections together have reached the memory limit; retry shortly\r\n"
            "-ERR max number of clients reached\r\n");
}

TEST_F(RespSessionTest, KeepsTheOrderOfAMixedPipeline) {
  const std::string check = "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$1\r\n1\r\n$1\r\n1\r\n$2\r\n60\r\n";
  const std::string first = "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n",
                    second = "*5\r\n:0\r\n:2\r\n:0\r\n:-1\r\n:120\r\n";
  const std::string pong = "+PONG\r\n", unknown = "-ERR unknown command 'FOO', with args beginning with: \r\n";
  const std::string bytes = "PING\r\n" + check + "PING\r\nFOO\r\n" + check +
                            "PING\r\nDEL k\r\nCL.THROTTLE k 1 1 60\r\n" + "CL.THROTTLE k 1 1 60\r\nHELLO 4\r\n" +
                            check + "QUIT\r\nPING\r\n";
  const std::string expected = pong + first + pong + unknown + second + pong + ":1\r\n" + first + second +
                               "-NOPROTO unsupported protocol version\r\n" +
                               "*5\r\n:1\r\n:2\r\n:0\r\n:60\r\n:120\r\n+OK\r\n";
  EXPECT_EQ(say(bytes), expected);
  EXPECT_TRUE(progress.close);
  EXPECT_EQ(left, loop::kIsOnFibers ? "" : "PING\r\n");

  say("DEL k\r\n");
  loop::SessionPlayer bytewise(*session, limiter);
  bool is_closed = false;
  for (std::size_t i = 0; i < bytes.size() && !is_closed; ++i) is_closed = bytewise.feed(bytes.substr(i, 1)).close;
  EXPECT_EQ(bytewise.take(), expected);
  EXPECT_TRUE(is_closed);
}

TEST_F(RespSessionTest, AnswersChecksBeforeItEndsForGarbage) {
  const std::string check = "*3\r\n$10\r\nWEIR.LIMIT\r\n$1\r\nk\r\n$4\r\n1/ms\r\n";
  const std::string reply = say(check + "*1\r\n:1\r\nPING\r\n");
  EXPECT_TRUE(reply.starts_with("*16\r\n$7\r\nallowed\r\n:1\r\n")) << reply;
  EXPECT_TRUE(reply.ends_with("-ERR Protocol error: expected '$', got ':'\r\n")) << reply;
  EXPECT_TRUE(progress.close);
  EXPECT_TRUE(say(check + "POST / HTTP/1.1\r\nPING\r\n").ends_with("delay_ms\r\n:0\r\n"));
  EXPECT_TRUE(progress.close);
}

// Two connections of a loop with checks in one turn, and a third that leaves before its answer.
TEST_F(RespSessionTest, SharesATurnWithOthers) {
  if (loop::kIsOnFibers) GTEST_SKIP() << "a turn of its own";
  const auto other = make_resp_session(service, 78);
  auto third = make_resp_session(service, 79);
  const std::string check = "*5\r\n$4\r\nGCRA\r\n$1\r\nk\r\n$1\r\n2\r\n$1\r\n1\r\n$2\r\n60\r\n*1\r\n$4\r\nPING\r\n";
  const std::string two_checks = check + check;
  loop::Turn turn(limiter);
  std::string out, out_other, out_third;
  EXPECT_TRUE(session->consume(check, turn, out).asked);
  EXPECT_TRUE(third->consume(check, turn, out_third).asked);
  EXPECT_TRUE(other->consume(two_checks, turn, out_other).asked);
  EXPECT_EQ(turn.asked(), 4u);
  turn.decide();
  third.reset();
  session->settle(turn, out);
  other->settle(turn, out_other);
  EXPECT_EQ(out, "*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:60\r\n+PONG\r\n");
  EXPECT_EQ(out_other,
            "*5\r\n:0\r\n:3\r\n:0\r\n:-1\r\n:180\r\n+PONG\r\n*5\r\n:1\r\n:3\r\n:0\r\n:60\r\n:180\r\n+PONG\r\n");
  EXPECT_EQ(service.home.sessions, 0u);
  EXPECT_TRUE(service.home.steps.empty());
}

class LockedRespSession : public RespSessionTest {
 protected:
  LockedRespSession() {
    service.password = "open sesame";
    service.bounds.counts = &counts;
    session = make_resp_session(service, 77, "192.0.2.7");
  }
  // The answer after the delay of a wrong password.
  std::string late_answer() {
    EXPECT_TRUE(session->is_holding());
    std::string early, late;
    clock->set(clock->now() + observe::kWrongSecretDelay - Micros{1});
    session->wake(clock->now(), early);
    EXPECT_EQ(early, "");
    clock->set(clock->now() + Micros{1});
    EXPECT_LE(session->due(), clock->now());
    session->wake(clock->now(), late);
    EXPECT_FALSE(session->is_holding());
    return late;
  }
  std::string guess(const std::vector<std::string_view>& args) {
    EXPECT_EQ(call(args), "");
    return late_answer();
  }
  std::uint64_t counted() const { return counts.count(loop::Refused::password); }

  loop::ListenerCounts counts;
  static constexpr const char* kNoAuth = "-NOAUTH Authentication required.\r\n";
  static constexpr const char* kWrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
};

TEST_F(LockedRespSession, AnswersNothingBeforeThePassword) {
  EXPECT_EQ(say("PING\r\nCL.THROTTLE k 0 1 60\r\nINFO\r\nDEL k\r\n"),
            std::string(kNoAuth) + kNoAuth + kNoAuth + kNoAuth);
  EXPECT_EQ(say("HELLO 3\r\n").substr(0, 49), "-NOAUTH HELLO must be called with the client alre");
  EXPECT_EQ(say("PING a b\r\n"), "-ERR wrong number of arguments for 'ping' command\r\n");
  EXPECT_EQ(counted(), 0U);
  EXPECT_EQ(guess({"AUTH", "open"}), kWrong);
  EXPECT_EQ(guess({"AUTH", ""}), kWrong);
  EXPECT_EQ(guess({"AUTH", "open sesamf"}), kWrong);
  EXPECT_EQ(guess({"AUTH", "open sesameopen sesame"}), kWrong);
  EXPECT_EQ(guess({"AUTH", "bob", "open sesame"}), kWrong);
  EXPECT_EQ(guess({"HELLO", "3", "AUTH", "default", "x"}), kWrong);
  EXPECT_EQ(guess({"HELLO", "2", "AUTH", "default", "x", "SETNAME", "a b"}), kWrong);
  EXPECT_EQ(counted(), 7U);
  EXPECT_EQ(say("PING\r\n"), kNoAuth);
  EXPECT_EQ(say("QUIT\r\n"), "+OK\r\n");
}

// In a pipeline each guess has its own delay. Later commands are answered after that delay.
TEST_F(LockedRespSession, SlowsEveryGuessOfAPipeline) {
  loop::SessionPlayer player(*session, limiter);
  player.feed("AUTH a\r\nAUTH b\r\nAUTH default \"open sesame\"\r\nPING\r\n");
  EXPECT_EQ(player.take(), "");
  EXPECT_EQ(counted(), 1U);
  std::string out;
  for (int i = 0; i < 2; ++i) {
    clock->set(clock->now() + observe::kWrongSecretDelay);
    session->wake(clock->now(), player.output);
    player.feed("");
    out += player.take();
    EXPECT_EQ(session->is_holding(), i == 0);
  }
  EXPECT_EQ(out, std::string(kWrong) + kWrong + "+OK\r\n+PONG\r\n");
  EXPECT_EQ(counted(), 2U);
}

TEST_F(LockedRespSession, AnswersAGuessAtOnceWhenTheServerStops) {
  EXPECT_EQ(call({"AUTH", "x"}), "");
  std::string out;
  session->drain(out);
  EXPECT_EQ(out, kWrong);
  EXPECT_FALSE(session->is_holding());
}

TEST_F(LockedRespSession, LogsGuessesOnceASecond) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) guess({"AUTH", "hunter2"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "weir: wrong RESP password from=192.0.2.7 times=1\n"
            "weir: wrong RESP password from=192.0.2.7 times=4\n");
}

TEST_F(LockedRespSession, AcceptsTheRightPassword) {
  EXPECT_EQ(call({"AUTH", "open sesame"}), "+OK\r\n");
  EXPECT_EQ(say("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(say("RESET\r\nPING\r\n"), std::string("+RESET\r\n") + kNoAuth);
  EXPECT_EQ(call({"AUTH", "default", "open sesame"}), "+OK\r\n");
  EXPECT_EQ(say("RESET\r\n"), "+RESET\r\n");
  EXPECT_EQ(call({"HELLO", "3", "AUTH", "default", "open sesame", "SETNAME", "web"}).substr(0, 4), "%7\r\n");
  EXPECT_EQ(say("CLIENT GETNAME\r\nHELLO\r\n").substr(0, 13), "$3\r\nweb\r\n%7\r\n");
}

TEST_F(LockedRespSession, GivesUnauthenticatedClientsSmallerBounds) {
  EXPECT_EQ(call(std::vector<std::string_view>(11, "x")), "-ERR Protocol error: unauthenticated multibulk length\r\n");
  EXPECT_TRUE(progress.close);
  EXPECT_EQ(call({"AUTH", std::string(16'385, 'x')}), "-ERR Protocol error: unauthenticated bulk length\r\n");
  EXPECT_EQ(call({"AUTH", "open sesame"}), "+OK\r\n");
  EXPECT_EQ(call({"ECHO", std::string(16'385, 'x')}).substr(0, 8), "$16385\r\n");
}

TEST_F(RespSessionTest, DescribesTheServer) {
  EXPECT_EQ(say("TIME\r\n"), "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n");
  EXPECT_EQ(say("READONLY\r\n"), "+OK\r\n");
  EXPECT_EQ(say("CLUSTER SHARDS\r\n"), "-ERR This instance has cluster support disabled\r\n");
  EXPECT_EQ(say("CLIENT SETNAME web\r\nCLIENT INFO\r\n"),
            "+OK\r\n$64\r\nid=77 name=web flags=N db=0 cmd=client|info user=default resp=2\n\r\n");
  EXPECT_EQ(say("CLIENT LIST\r\n").front(), '$');
  EXPECT_EQ(say("CLIENT NO-EVICT ON\r\nCLIENT NO-TOUCH off\r\nCLIENT REPLY ON\r\n"), "+OK\r\n+OK\r\n+OK\r\n");
  EXPECT_EQ(say("CLIENT NO-EVICT maybe\r\n"), "-ERR syntax error\r\n");
  EXPECT_EQ(say("CLIENT REPLY OFF\r\n").substr(0, 26), "-ERR CLIENT REPLY OFF and ");
  EXPECT_EQ(say("CLIENT SETINFO lib-color red\r\n"), "-ERR Unrecognized option 'lib-color'\r\n");
  EXPECT_EQ(say("CLIENT MAINT_NOTIFICATIONS ON\r\n"),
            "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n");
  EXPECT_EQ(say("INFO server\r\n").find("role:"), std::string::npos);
  EXPECT_EQ(say("INFO Replication\r\n"), "$48\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n");
  EXPECT_EQ(say("INFO nothing\r\n"), "$0\r\n\r\n");
}

TEST_F(RespSessionTest, DocumentsTheCommandsThatLimit) {
  EXPECT_EQ(say("COMMAND DOCS gcra nothing\r\n").substr(0, 56),
            "*2\r\n$4\r\ngcra\r\n*10\r\n$7\r\nsummary\r\n$66\r\nCharges a token buc");
  const std::string docs = say("COMMAND DOCS\r\n");
  EXPECT_EQ(docs.substr(0, 5), "*14\r\n");
  weir::resp::ReplyParser parser;
  const auto parsed = parser.parse(docs);
  ASSERT_EQ(parsed.status, weir::resp::Status::done) << parsed.reason;
  EXPECT_EQ(parsed.consumed, docs.size());
  for (std::size_t i = 0; i < parsed.value.items.size(); i += 2) {
    EXPECT_EQ(say("COMMAND INFO " + parsed.value.items[i].text + "\r\n").substr(0, 8), "*1\r\n*6\r\n");
  }
  EXPECT_EQ(say("COMMAND GETKEYS cl.throttle k 1 1 1\r\n"), "*1\r\n$1\r\nk\r\n");
  EXPECT_EQ(say("COMMAND GETKEYS del a b\r\n"), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(say("COMMAND GETKEYS ping\r\n"), "-ERR The command has no key arguments\r\n");
  EXPECT_EQ(say("COMMAND GETKEYS foo\r\n"), "-ERR Invalid command specified\r\n");
  EXPECT_EQ(say("COMMAND GETKEYS gcra k\r\n"), "-ERR Invalid number of arguments specified for command\r\n");
  EXPECT_EQ(say("COMMAND GETKEYS\r\n"), "-ERR wrong number of arguments for 'command|getkeys' command\r\n");
  EXPECT_NE(say("COMMAND LIST\r\n").find("$10\r\nweir.check\r\n"), std::string::npos);
}

// Every edge case of Redis, as bytes.
TEST_F(RespSessionTest, HandlesEdgeCasesAsRedisDoes) {
  struct Row {
    std::string bytes, reply;
    bool closes;
  };
  const std::string protocol = "-ERR Protocol error: ";
  const std::vector<Row> rows = {
      {"\r\n", "", false},
      {"*0\r\n", "", false},
      {"*-1\r\n", "", false},
      {"*x\r\n", protocol + "invalid multibulk length\r\n", true},
      {"*1\r\n:1\r\n", protocol + "expected '$', got ':'\r\n", true},
      {"*1\r\n$-1\r\n", protocol + "invalid bulk length\r\n", true},
      {"ECHO \"a\r\n", protocol + "unbalanced quotes in request\r\n", true},
      {std::string(weir::resp::kLineMax + 1, 'a'), protocol + "too big inline request\r\n", true},
      {"*" + std::string(weir::resp::kLineMax, '1'), protocol + "too big mbulk count string\r\n", true},
      {"*1\r\n$" + std::string(weir::resp::kLineMax, '1'), protocol + "too big bulk count string\r\n", true},
      {"POST / HTTP/1.1\r\n", "", true},
      {"Host: x\r\n", "", true},
      {"FOO bar\r\n", "-ERR unknown command 'FOO', with args beginning with: 'bar' \r\n", false},
      {"ECHO\r\n", "-ERR wrong number of arguments for 'echo' command\r\n", false},
      {"CLIENT FOO\r\n", "-ERR unknown subcommand 'FOO'. Try CLIENT HELP.\r\n", false},
      {"AUTH pw\r\n",
       "-ERR AUTH <password> called without any password configured for the default user. Are you sure your "
       "configuration is correct?\r\n",
       false},
      {"AUTH bob pw\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n", false},
      {"AUTH default pw\r\n", "+OK\r\n", false},
      {"SELECT 99\r\n", "-ERR DB index is out of range\r\n", false},
      {"SELECT a\r\n", "-ERR value is not an integer or out of range\r\n", false},
      {"QUIT\r\n", "+OK\r\n", true},
      {"*1\r\n$0\r\n\r\n", "-ERR unknown command '', with args beginning with: \r\n", false},
  };
  for (const Row& row : rows) {
    session = make_resp_session(service, 77);
    EXPECT_EQ(say(row.bytes), row.reply) << row.bytes.substr(0, 40);
    EXPECT_EQ(progress.close, row.closes) << row.bytes.substr(0, 40);
  }
}

// A command, inline or not, with too few or too many arguments gets an error and nothing else.
TEST_F(RespSessionTest, CountsTheArgumentsOfEveryCommand) {
  struct Row {
    const char* name;
    int least, most;  // of `most`: 0: no maximum, -1: no argument
  };
  const std::vector<Row> rows = {{"auth", 1, 2},      {"client", 1, 0},    {"cluster", 1, 0},    {"config", 1, 0},
                                 {"dbsize", 0, -1},   {"del", 1, 0},       {"echo", 1, 1},       {"gcra", 4, 6},
                                 {"ping", 0, 1},      {"readonly", 0, -1}, {"reset", 0, -1},     {"select", 1, 1},
                                 {"throttle", 4, 5},  {"time", 0, -1},     {"weir.check", 1, 0}, {"weir.limit", 2, 0},
                                 {"weir.reset", 1, 0}};
  for (const auto& [name, least, most] : rows) {
    const std::string error = "-ERR wrong number of arguments for '" + std::string(name) + "' command\r\n";
    if (least > 0) {
      EXPECT_EQ(call(std::vector<std::string_view>(1, name)), error);
    }
    if (most == 0) continue;
    std::vector<std::string_view> args(static_cast<std::size_t>(most < 0 ? 2 : most + 2), "1");
    args[0] = name;
    EXPECT_EQ(call(args), error);
  }
}

}  // namespace
}  // namespace weir::server::resp
