// Tests of transactions: what is queued, what EXEC runs and charges, errors and bounds.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/resp/resp_session_fixture.h"

namespace weir::server::resp {
namespace {

using RespTransactionTest = RespSessionTest;

TEST_F(RespTransactionTest, ExecRunsWhatWasQueuedInOrder) {
  EXPECT_EQ(say("MULTI\r\n"), "+OK\r\n");
  EXPECT_EQ(say("CL.THROTTLE user:1 4 1 3600\r\n"), "+QUEUED\r\n");
  EXPECT_EQ(say("PING\r\n"), "+QUEUED\r\n");
  EXPECT_EQ(call({"CL.THROTTLE", "user:1", "4", "1", "3600", "2"}), "+QUEUED\r\n");
  EXPECT_EQ(limiter.size(), 0u) << "nothing is charged before EXEC";
  EXPECT_EQ(say("EXEC\r\n"),
            "*3\r\n"
            "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:3600\r\n"
            "+PONG\r\n"
            "*5\r\n:0\r\n:5\r\n:2\r\n:-1\r\n:10800\r\n");
  EXPECT_EQ(say("EXEC\r\n"), "-ERR EXEC without MULTI\r\n");
}

// As redis-py's default pipeline sends it: all in one write, and the next transaction behind it.
TEST_F(RespTransactionTest, AWholeTransactionMayComeInOneWriteOrInPieces) {
  const std::string once =
      "MULTI\r\nCL.THROTTLE k 9 1 3600\r\nCL.THROTTLE k 9 1 3600\r\nEXEC\r\nCL.THROTTLE k 9 1 3600\r\n";
  const std::string input = once + once;
  std::string first;
  for (std::size_t i = 0; i < 2; ++i) {
    first += "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n";
    for (std::size_t j = 1; j <= 3; ++j) {
      const std::size_t used = 3 * i + j;
      first +=
          "*5\r\n:0\r\n:10\r\n:" + std::to_string(10 - used) + "\r\n:-1\r\n:" + std::to_string(3600 * used) + "\r\n";
    }
  }
  EXPECT_EQ(say(input), first);
  limiter.reset("k").value();
  loop::SessionPlayer player(*session, limiter);
  for (const char c : input) player.feed(std::string_view(&c, 1));
  EXPECT_EQ(player.take(), first);
}

// DEL waits for the checks before it, and so does the check by an id.
TEST_F(RespTransactionTest, EachCommandSeesTheOnesBeforeIt) {
  say("MULTI\r\nWEIR.LIMIT k 5/year\r\nDEL k\r\nWEIR.LIMIT k 5/year\r\nDEL k absent\r\n");
  const std::string reply = say("EXEC\r\n");
  EXPECT_EQ(reply.substr(0, 4), "*4\r\n");
  EXPECT_NE(reply.find(":1\r\n"), reply.npos);
  EXPECT_TRUE(reply.ends_with(":1\r\n")) << reply;
  std::size_t fresh = 0;
  for (std::size_t at = reply.find("remaining"); at != reply.npos; at = reply.find("remaining", at + 1)) {
    fresh += reply.substr(at, 15).starts_with("remaining\r\n:4\r\n") ? 1u : 0u;
  }
  EXPECT_EQ(fresh, 2u) << reply;
}

TEST_F(RespTransactionTest, AnErrorWhileQueueingChargesNothing) {
  const std::string long_key(5000, 'k');
  const std::vector<std::vector<std::string_view>> wrong = {
      {"SET", "a", "b"}, {"PING", "a", "b"}, {"GCRA", "k"}, {"AUTH", "secret"},
      {"HELLO", "3"},    {"EXEC", "now"},    {"WATCH"},     {"GCRA", long_key, "1", "1", "1"}};
  for (const auto& command : wrong) {
    EXPECT_EQ(say("MULTI\r\nCL.THROTTLE k 4 1 3600\r\n"), "+OK\r\n+QUEUED\r\n");
    EXPECT_EQ(call(command).substr(0, 5), "-ERR ") << command[0];
    EXPECT_EQ(say("PING\r\n"), "+QUEUED\r\n");
    EXPECT_EQ(say("EXEC\r\n"), "-EXECABORT Transaction discarded because of previous errors.\r\n") << command[0];
    EXPECT_EQ(say("PING\r\n"), "+PONG\r\n") << command[0];
  }
  EXPECT_EQ(limiter.size(), 0u);
}

// As in Redis: EXEC is no rollback. The error of one command leaves the others as they are.
TEST_F(RespTransactionTest, AnErrorWhileRunningIsOneOfTheReplies) {
  EXPECT_EQ(say("MULTI\r\nCL.THROTTLE k 4 1 3600\r\nCL.THROTTLE k a b c\r\nPING\r\nEXEC\r\n"),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:3600\r\n"
            "-ERR Cell error: Couldn't parse as integer: a\r\n+PONG\r\n");
  EXPECT_EQ(throttle(0, "k 4 1 3600"), "0 5 3 -1 7200 ");
}

TEST_F(RespTransactionTest, DiscardAndResetForgetTheQueue) {
  EXPECT_EQ(say("DISCARD\r\n"), "-ERR DISCARD without MULTI\r\n");
  EXPECT_EQ(say("MULTI\r\nCL.THROTTLE k 4 1 3600\r\nDISCARD\r\nPING\r\n"), "+OK\r\n+QUEUED\r\n+OK\r\n+PONG\r\n");
  EXPECT_EQ(say("MULTI\r\nCL.THROTTLE k 4 1 3600\r\nRESET\r\nPING\r\n"), "+OK\r\n+QUEUED\r\n+RESET\r\n+PONG\r\n");
  EXPECT_EQ(say("MULTI\r\nCL.THROTTLE k 4 1 3600\r\nQUIT\r\n"), "+OK\r\n+QUEUED\r\n+OK\r\n");
  EXPECT_TRUE(progress.close);
  EXPECT_EQ(limiter.size(), 0u);
}

TEST_F(RespTransactionTest, MultiDoesNotNestAndWatchAlwaysSucceeds) {
  EXPECT_EQ(say("WATCH a b\r\nMULTI\r\n"), "+OK\r\n+OK\r\n");
  EXPECT_EQ(say("MULTI\r\n"), "-ERR MULTI calls can not be nested\r\n");
  EXPECT_EQ(say("WATCH a\r\n"), "-ERR WATCH inside MULTI is not allowed\r\n");
  EXPECT_EQ(say("UNWATCH\r\nEXEC\r\n"), "+QUEUED\r\n*1\r\n+OK\r\n") << "these two errors leave the transaction alone";
  EXPECT_EQ(say("MULTI\r\nEXEC\r\nUNWATCH\r\n"), "+OK\r\n*0\r\n+OK\r\n");
}

TEST_F(RespTransactionTest, TheQueueIsBounded) {
  service.bounds.checks_max = 3;
  service.bounds.body_max = 100;
  session = make_resp_session(service, 1);
  EXPECT_EQ(say("MULTI\r\nPING\r\nPING\r\nPING\r\n"), "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
  EXPECT_EQ(say("PING\r\n"), "-ERR a transaction has at most 3 commands and 400 bytes\r\n");
  EXPECT_EQ(say("EXEC\r\n").substr(0, 10), "-EXECABORT");
  service.bounds.checks_max = 1000;
  session = make_resp_session(service, 1);
  const std::string text(90, 'x');
  EXPECT_EQ(say("MULTI\r\n"), "+OK\r\n");
  std::string last;
  for (int i = 0; i < 4; ++i) last = call({"ECHO", text});
  EXPECT_EQ(last, "-ERR a transaction has at most 1000 commands and 400 bytes\r\n");
  EXPECT_LT(session->held(), 400u) << "a queue that will not run is dropped";
  EXPECT_EQ(say("EXEC\r\n").substr(0, 10), "-EXECABORT");
}

// More commands than one round takes, and more output than a connection takes at once.
TEST_F(RespTransactionTest, ALongTransactionRunsToItsEnd) {
  EXPECT_EQ(say("MULTI\r\n"), "+OK\r\n");
  std::string queue, queued;
  for (int i = 0; i < 9'999; ++i) {
    queue += "CL.THROTTLE k 9999 1 3600\r\n";
    queued += "+QUEUED\r\n";
  }
  EXPECT_EQ(say(queue + "PING\r\n"), queued + "+QUEUED\r\n");
  const std::string reply = say("EXEC\r\n");
  EXPECT_EQ(reply.substr(0, 8), "*10000\r\n");
  EXPECT_TRUE(reply.ends_with(":10000\r\n:1\r\n:-1\r\n:35996400\r\n+PONG\r\n")) << reply.substr(reply.size() - 60);
  EXPECT_EQ(say("PING\r\n"), "+PONG\r\n");
}

TEST_F(RespTransactionTest, AFullOutputPausesIt) {
  service.bounds.output_max = 1000;
  session = make_resp_session(service, 1);
  const std::string text(400, 'x');
  std::string output = say("MULTI\r\n");
  for (int i = 0; i < 9; ++i) output += call({"ECHO", text});
  output += say("EXEC\r\n");
  for (int i = 0; i < 20 && progress.full; ++i) output += say(left);
  std::string expected = "+OK\r\n";
  for (int i = 0; i < 9; ++i) expected += "+QUEUED\r\n";
  expected += "*9\r\n";
  for (int i = 0; i < 9; ++i) expected += "$400\r\n" + text + "\r\n";
  EXPECT_EQ(output, expected);
}

TEST_F(RespTransactionTest, RepliesHaveTheClientsProtocol) {
  say("HELLO 3\r\n");
  EXPECT_TRUE(say("MULTI\r\nWEIR.LIMIT k 5/year\r\nEXEC\r\n").starts_with("+OK\r\n+QUEUED\r\n*1\r\n%"));
  EXPECT_TRUE(say("MULTI\r\nCLIENT GETNAME\r\nEXEC\r\n").ends_with("*1\r\n_\r\n"));
}

// What clients send while they connect: rueidis and the statistics of redis-cli.
TEST_F(RespTransactionTest, ClientsConnectWithTheirDefaults) {
  EXPECT_EQ(say("CLIENT TRACKING ON OPTIN\r\n"), "+OK\r\n");
  EXPECT_EQ(say("CLIENT TRACKING off\r\n"), "+OK\r\n");
  EXPECT_EQ(say("CLIENT TRACKING maybe\r\n"), "-ERR syntax error\r\n");
  EXPECT_EQ(say("CLIENT CACHING YES\r\n"), "+OK\r\n");
  EXPECT_EQ(say("CLIENT CACHING 1\r\n"), "-ERR syntax error\r\n");
  EXPECT_EQ(say("CONFIG GET databases\r\n"), "*2\r\n$9\r\ndatabases\r\n$1\r\n1\r\n");
}

}  // namespace
}  // namespace weir::server::resp
