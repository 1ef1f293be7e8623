// Tests the limiting commands over time: the vectors of redis-cell, and each command's replies and errors.
#include <string>
#include <string_view>
#include <vector>

#include "server/resp/resp_session_fixture.h"

namespace weir::server::resp {
namespace {

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

TEST_F(RespSessionTest, GivesTheRepliesInTheDocumentationOfRedisCell) {
  EXPECT_EQ(throttle(0, "user123 15 30 60"), "0 16 15 -1 2 ");
  EXPECT_EQ(throttle(0, "k 0 1 2"), "0 1 0 -1 2 ");
  EXPECT_EQ(throttle(0, "k 0 1 2"), "1 1 0 2 2 ");
  EXPECT_EQ(throttle(0, "u 1 30 60"), "0 2 1 -1 2 ");
  EXPECT_EQ(throttle(0, "u 1 30 60"), "0 2 0 -1 4 ");
  EXPECT_EQ(throttle(0, "u 1 30 60"), "1 2 0 2 4 ");
}

TEST_F(RespSessionTest, RefusesANegativeQuantityThoughTheBucketIsKnown) {
  EXPECT_EQ(throttle(0, "k 4 1 1 3"), "0 5 2 -1 3 ");
  for (const char* refund : {"k 4 1 1 -2", "k 4 1 1 -9007199254740992"}) {
    EXPECT_TRUE(throttle(0, refund).starts_with("ERR Cell error: Negative quantities are not supported")) << refund;
  }
  EXPECT_TRUE(flat(call({"THROTTLE", "k", "5", "1", "1", "-2"})).starts_with("ERR negative quantity: -2"));
  EXPECT_TRUE(flat(call({"GCRA", "k", "4", "1", "1", "TOKENS", "-2"})).starts_with("ERR value is out of range"));
  EXPECT_EQ(throttle(0, "k 4 1 1 0"), "0 5 2 -1 3 ") << "nothing of that had an effect";
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

TEST_F(RespSessionTest, RefusesALimitThatIsTooLongToBeOne) {
  const std::string quota(100'000, '1');
  EXPECT_EQ(call({"WEIR.LIMIT", "k", quota}), "-ERR the limit has 100000 bytes; at most 256 are allowed\r\n");
  EXPECT_EQ(service.home.limits.size(), 0u);
}

TEST_F(RespSessionTest, ThrottlesAsThrottlecrabDoes) {
  const auto crab = [&](std::int64_t ms) {
    at(ms);
    return flat(call({"THROTTLE", "k", "3", "10", "60"}));
  };
  EXPECT_EQ(crab(0), "1 3 2 6 0 ");
  EXPECT_EQ(crab(0), "1 3 1 12 0 ");
  EXPECT_EQ(crab(0), "1 3 0 18 0 ");
  EXPECT_EQ(crab(0), "0 3 0 18 6 ");
  EXPECT_EQ(crab(5'999), "0 3 0 13 1 ");
  EXPECT_EQ(crab(6'000), "1 3 0 18 0 ");
  EXPECT_EQ(flat(call({"THROTTLE", "k", "3", "10", "60", "4"})), "0 3 0 18 -1 ");
  EXPECT_EQ(call({"throttle", "k", "3", "10"}), "-ERR wrong number of arguments for 'throttle' command\r\n");
  EXPECT_EQ(call({"throttle", "k", "3", "x", "1"}), "-ERR invalid count_per_period: 'x' is not a whole number\r\n");
}

TEST_F(RespSessionTest, HasTheGcraOfRedis) {
  const auto gcra = [&](std::int64_t ms, std::vector<std::string_view> more) {
    at(ms);
    std::vector<std::string_view> args = {"GCRA", "k", "4", "1", "0.5"};
    args.insert(args.end(), more.begin(), more.end());
    return flat(call(args));
  };
  EXPECT_EQ(gcra(0, {"TOKENS", "6"}), "1 5 5 -1 0 ");
  EXPECT_EQ(gcra(0, {}), "0 5 4 -1 1 ");
  EXPECT_EQ(gcra(0, {"tokens", "4"}), "0 5 0 -1 3 ");
  EXPECT_EQ(gcra(0, {}), "1 5 0 1 3 ");
  EXPECT_EQ(gcra(499, {}), "1 5 0 1 3 ");
  EXPECT_EQ(gcra(500, {}), "0 5 0 -1 3 ");
  EXPECT_EQ(gcra(500, {"TOKENS", "0"}), "0 5 0 -1 3 ");
  EXPECT_EQ(gcra(500, {"TOKENS"}), "ERR Missing TOKENS value");
  EXPECT_EQ(gcra(500, {"TOKENS", "1", "1"}), "ERR wrong number of arguments for 'gcra' command");
  EXPECT_EQ(call({"GCRA", "k", "4", "1"}), "-ERR wrong number of arguments for 'gcra' command\r\n");
}

TEST_F(RespSessionTest, KeepsTheLimitsOfItsCommandsApart) {
  EXPECT_EQ(flat(call({"CL.THROTTLE", "a", "4", "1", "60"})), "0 5 4 -1 60 ");
  EXPECT_EQ(flat(call({"THROTTLE", "b", "4", "1", "60"})), "1 4 3 60 0 ");
  EXPECT_EQ(flat(call({"GCRA", "c", "4", "1", "60"})), "0 5 4 -1 60 ");
  EXPECT_EQ(flat(call({"GCRA", "d", "4", "1", "0.5"})), "0 5 4 -1 1 ");
  EXPECT_EQ(flat(call({"CL.THROTTLE", "d", "4", "1", "0.5"})), "ERR Cell error: Couldn't parse as integer: 0.5");
  EXPECT_EQ(flat(call({"CL.THROTTLE", "a", "4", "1", "60", "x"})), "ERR Cell error: Couldn't parse as integer: x");
  EXPECT_EQ(flat(call({"CL.THROTTLE", "a", "4", "1", "60", "1", "1"})).substr(0, 22), "ERR Cell error: Usage:");
  EXPECT_EQ(flat(call({"CL.THROTTLE", "", "4", "1", "60"})).substr(0, 20), "ERR the key is empty");
  // The bytes equal those of `4 1 60` if the argument boundaries are ignored.
  EXPECT_EQ(flat(call({"CL.THROTTLE", "e", "4\r\n$1\r\n1", "60", "1"})).substr(0, 37),
            "ERR Cell error: Couldn't parse as int");
}

TEST_F(RespSessionTest, ChecksAKeyAgainstALimit) {
  const std::string allowed =
      "allowed 1 reason within rule  limit 2 remaining 1 retry_after_ms 0 reset_after_ms 1000 delay_ms 0 ";
  EXPECT_EQ(flat(call({"WEIR.LIMIT", "k", "2/s", "ALGORITHM", "sliding_log"})), allowed);
  EXPECT_EQ(flat(call({"weir.limit", "k", "2/s", "cost", "2", "algorithm", "sliding_log"})),
            "allowed 0 reason limited rule  limit 2 remaining 1 retry_after_ms 1000 reset_after_ms 1000 delay_ms 0 ");
  EXPECT_EQ(flat(call({"WEIR.LIMIT", "k", "2/s", "ALGORITHM", "sliding_log", "PEEK"})), allowed);
  EXPECT_EQ(flat(call({"WEIR.LIMIT", "k", "2/s", "ALGORITHM", "sliding_log", "PEEK"})), allowed);
  EXPECT_EQ(flat(call({"WEIR.LIMIT", "new", "10/s burst 50"})).substr(0, 45),
            "allowed 1 reason within rule  limit 50 remain");
  EXPECT_EQ(flat(call({"WEIR.LIMIT", "new", "10/s burst 50"})).find("remaining 48 "), 39u);
  EXPECT_EQ(call({"WEIR.LIMIT", "k"}), "-ERR wrong number of arguments for 'weir.limit' command\r\n");
  EXPECT_EQ(call({"WEIR.LIMIT", "k", "20 concurrent"}).substr(0, 24), "-ERR a concurrency limit");
  EXPECT_EQ(call({"WEIR.LIMIT", "k", "2/fortnight"}).substr(0, 5), "-ERR ");
  EXPECT_EQ(call({"WEIR.LIMIT", "", "2/s"}).substr(0, 21), "-ERR the key is empty");
  EXPECT_EQ(flat(call({"WEIR.LIMIT", "day", "2/calendar_day UTC"})).substr(0, 37),
            "allowed 1 reason within rule  limit 2");
}

TEST_F(RespSessionTest, ChargesTheSameIdOnce) {
  const std::vector<std::string_view> once = {"WEIR.LIMIT", "k", "1/day", "ID", "order-7"};
  const std::string first = call(once);
  EXPECT_EQ(flat(first).substr(0, 9), "allowed 1");
  EXPECT_EQ(flat(call(once)).substr(0, 9), "allowed 1");
  EXPECT_EQ(flat(call({"WEIR.LIMIT", "k", "1/day", "ID", "order-8"})).substr(0, 9), "allowed 0");
  EXPECT_EQ(call({"WEIR.LIMIT", "k", "1/day", "ID", std::string(65, 'x')}).substr(0, 5), "-ERR ");
}

TEST_F(RespSessionTest, ChecksByTheRules) {
  ASSERT_TRUE(gate.apply(*parse_policy("rules:\n- {name: steps, per: user, limit: 2/minute}\n", "weir.yaml")));
  EXPECT_EQ(flat(call({"WEIR.CHECK", "user", "42", "path", "/a"})).substr(0, 60),
            "allowed 1 reason within rule steps limit 2 remaining 1 retry");
  EXPECT_EQ(flat(call({"WEIR.CHECK", "user", "42", "PEEK"})).substr(0, 54),
            "allowed 1 reason within rule steps limit 2 remaining 1");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(flat(call({"WEIR.CHECK", "user", "42", "ID", "a"})).substr(0, 54),
              "allowed 1 reason within rule steps limit 2 remaining 0");
  }
  EXPECT_EQ(flat(call({"WEIR.CHECK", "user", "42"})).substr(0, 55),
            "allowed 0 reason limited rule steps limit 2 remaining 0");
  EXPECT_EQ(flat(call({"WEIR.CHECK", "ip", "192.0.2.1"})).substr(0, 24), "allowed 1 reason no_rule");
  EXPECT_EQ(call({"WEIR.CHECK", "usr", "42"}), "-ERR unknown field 'usr'; did you mean user?\r\n");
  EXPECT_EQ(call({"WEIR.CHECK"}), "-ERR wrong number of arguments for 'weir.check' command\r\n");
  EXPECT_EQ(call({"WEIR.RESET", "steps", "user", "42"}), ":1\r\n");
  EXPECT_EQ(call({"WEIR.RESET", "steps", "user", "42"}), ":0\r\n");
  EXPECT_EQ(call({"WEIR.RESET", "steps", "user", "42", "PEEK"}).substr(0, 21), "-ERR WEIR.RESET takes");
  EXPECT_EQ(call({"WEIR.RESET", "nosuch", "user", "42"}).substr(0, 5), "-ERR ");
  EXPECT_EQ(flat(call({"WEIR.CHECK", "user", "42"})).substr(0, 9), "allowed 1");
}

TEST_F(RespSessionTest, SaysThatThereAreNoRules) {
  service.gate = nullptr;
  EXPECT_EQ(call({"WEIR.CHECK", "user", "42"}).substr(0, 26), "-ERR there are no rules: s");
  EXPECT_EQ(call({"WEIR.RESET", "steps", "user", "42"}).substr(0, 26), "-ERR there are no rules: s");
}

TEST_F(RespSessionTest, ResetsKeys) {
  EXPECT_EQ(throttle(0, "a 0 1 60"), "0 1 0 -1 60 ");
  EXPECT_EQ(throttle(0, "b 0 1 60"), "0 1 0 -1 60 ");
  EXPECT_EQ(say("DBSIZE\r\n"), ":2\r\n");
  EXPECT_EQ(call({"DEL", "a", "b", "c", "a"}), ":2\r\n");
  EXPECT_EQ(call({"WEIR.RESET", "a"}), ":0\r\n");
  EXPECT_EQ(throttle(0, "a 0 1 60"), "0 1 0 -1 60 ");
  EXPECT_EQ(call({"WEIR.RESET", "a"}), ":1\r\n");
  EXPECT_EQ(call({"DEL"}), "-ERR wrong number of arguments for 'del' command\r\n");
  EXPECT_EQ(call({"DEL", ""}).substr(0, 21), "-ERR the key is empty");
}

TEST_F(RespSessionTest, DeniesNewKeysRatherThanResetUsedOnes) {
  std::string last;
  for (int i = 0; i < 3000; ++i) last = throttle(0, "key" + std::to_string(i) + " 0 1 60");
  EXPECT_TRUE(last.starts_with("1 ")) << last;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(throttle(0, "key" + std::to_string(i) + " 0 1 60").starts_with("1 ")) << i;
  EXPECT_EQ(say("PING\r\n"), "+PONG\r\n");
}

}  // namespace
}  // namespace weir::server::resp
