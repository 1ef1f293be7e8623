// Tests the arguments of WEIR.CHECK and WEIR.LIMIT, each of their errors, and the reply in both protocols.
#include "protocol/weir_commands.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::protocol {
namespace {

using Words = std::vector<std::string_view>;

std::string field_error(const Words& words) {
  const auto check = parse_fields(words);
  return check ? "no error" : check.error().message;
}
std::string limit_error(const Words& words) {
  const auto check = parse_limit_check(words);
  return check ? "no error" : check.error().message;
}

TEST(WeirCheck, ReadsEveryField) {
  const auto check = parse_fields(
      Words{"user",         "42",  "API_KEY",      "k", "ip",   "192.0.2.1", "tenant", "acme", "plan",         "free",
            "method",       "GET", "host",         "h", "path", "/a?b",      "cost",   "-3",   "header:X-Org", "o",
            "header:x-org", "p",   "entry:remote", "r", "ID",   "peek"});
  ASSERT_TRUE(check) << check.error().message;
  const Request& request = check->request;
  EXPECT_EQ(request.user, "42");
  EXPECT_EQ(request.api_key, "k");
  EXPECT_EQ(request.ip, "192.0.2.1");
  EXPECT_EQ(request.tenant, "acme");
  EXPECT_EQ(request.plan, "free");
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.host, "h");
  EXPECT_EQ(request.path, "/a?b");
  EXPECT_EQ(request.cost, -3);
  ASSERT_EQ(request.headers.size(), 2u);
  EXPECT_EQ(request.headers[0].name, "X-Org");
  EXPECT_EQ(request.headers[1].value, "p");
  ASSERT_EQ(request.entries.size(), 1u);
  EXPECT_EQ(request.entries[0].name, "remote");
  EXPECT_EQ(check->id, "peek");  // a value, not the option
  EXPECT_FALSE(check->is_peek);
  EXPECT_TRUE(parse_fields(Words{"user", "1", "peek"})->is_peek);
}

TEST(WeirCheck, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(field_error({"usr", "1"}), "unknown field 'usr'; did you mean user?");
  EXPECT_EQ(field_error({"user", "1", "color", "red"}),
            "unknown field 'color'; known are user api_key ip tenant plan method host path cost peek header:NAME "
            "entry:NAME id");
  EXPECT_EQ(field_error({"user"}), "'user' has no value after it");
  EXPECT_EQ(field_error({"cost"}), "'cost' has no value after it");
  EXPECT_EQ(field_error({"header:a"}), "'header:a' has no value after it");
  EXPECT_EQ(field_error({"id"}), "'id' has no value after it");
  EXPECT_EQ(field_error({"usr"}), "unknown field 'usr'; did you mean user?");
  EXPECT_EQ(field_error({"header:", "1"}).substr(0, 23), "unknown field 'header:'");
  for (const char* word : {"user", "cost", "id"}) {
    EXPECT_EQ(field_error({word, "1", word, "1"}), "'" + std::string(word) + "' is given twice; give it once");
  }
  EXPECT_EQ(field_error({"peek", "PEEK"}), "'PEEK' is given twice; give it once");
  EXPECT_EQ(field_error({"cost", "1.5"}), "a cost must be a whole number such as 1, found '1.5'");
  EXPECT_NE(field_error({"cost", "9007199254740993"}).find("-2^53 to 2^53"), std::string::npos);
  EXPECT_EQ(field_error({"peek", "id", "x"}).substr(0, 20), "PEEK charges nothing");
  EXPECT_LT(field_error({std::string(100'000, 'x'), "1"}).size(), 250u);
}

TEST(WeirLimit, ReadsItsOptionsInAnyOrder) {
  const auto check = parse_limit_check(Words{"k", "10/s", "id", "x", "ALGORITHM", "sliding_log", "Cost", "4"});
  ASSERT_TRUE(check) << check.error().message;
  EXPECT_EQ(check->key, "k");
  EXPECT_EQ(check->quota, "10/s");
  EXPECT_EQ(check->algorithm, Algorithm::sliding_log);
  EXPECT_EQ(check->cost, 4);
  EXPECT_EQ(check->id, "x");
  EXPECT_TRUE(parse_limit_check(Words{"k", "10/s", "PEEK"})->is_peek);
}

TEST(WeirLimit, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(limit_error({"k", "10/s", "coste", "1"}), "unknown option 'coste'; did you mean cost?");
  EXPECT_EQ(limit_error({"k", "10/s", "x"}), "unknown option 'x'; known are cost algorithm id peek");
  EXPECT_EQ(limit_error({"k", "10/s", "cost"}), "'cost' has no value after it");
  EXPECT_EQ(limit_error({"k", "10/s", "cost", "x"}), "a cost must be a whole number such as 1, found 'x'");
  EXPECT_NE(limit_error({"k", "10/s", "algorithm", "tokenbucket"}).find("token_bucket"), std::string::npos);
  for (const char* word : {"id", "cost"}) {
    EXPECT_EQ(limit_error({"k", "10/s", word, "1", word, "1"}),
              "'" + std::string(word) + "' is given twice; give it once");
  }
  EXPECT_EQ(limit_error({"k", "1/s", "algorithm", "sliding_log", "algorithm", "sliding_log"}),
            "'algorithm' is given twice; give it once");
  EXPECT_EQ(limit_error({"k", "1/s", "peek", "id", "x"}).substr(0, 20), "PEEK charges nothing");
}

std::string written(resp::Protocol protocol, const Decision& decision) {
  std::string out;
  resp::Writer writer(out, protocol);
  write_decision(decision, writer);
  return out;
}

TEST(WeirAnswer, IsAMapOfMilliseconds) {
  const Decision denied{false, 5, 0, Micros{1}, Micros{2'000'001}, Micros{0}};
  const std::string pairs =
      "$7\r\nallowed\r\n:0\r\n$6\r\nreason\r\n$7\r\nlimited\r\n$4\r\nrule\r\n$-1\r\n$5\r\nlimit\r\n:5\r\n"
      "$9\r\nremaining\r\n:0\r\n$14\r\nretry_after_ms\r\n:1\r\n$14\r\nreset_after_ms\r\n:2001\r\n$8\r\ndelay_ms\r\n:"
      "0\r\n";
  EXPECT_EQ(written(resp::Protocol::resp2, denied), "*16\r\n" + pairs);
  std::string pairs3 = pairs;
  pairs3.replace(pairs3.find("$-1"), 3, "_");
  EXPECT_EQ(written(resp::Protocol::resp3, denied), "%8\r\n" + pairs3);
  const std::string never = written(resp::Protocol::resp2, {false, 5, 5, kNever, Micros{0}, Micros{0}});
  EXPECT_NE(never.find("retry_after_ms\r\n:-1\r\n"), std::string::npos);
  EXPECT_NE(
      written(resp::Protocol::resp2, {true, 5, 4, Micros{0}, Micros{0}, Micros{1'500}}).find("delay_ms\r\n:2\r\n"),
      std::string::npos);
}

TEST(WeirAnswer, SaysInAFleetHowTheDecisionWasMade) {
  Decision decision{true, 5, 4, Micros{0}, Micros{0}, Micros{0}, DecidedBy::cached};
  EXPECT_TRUE(written(resp::Protocol::resp2, decision).starts_with("*18\r\n"));
  EXPECT_TRUE(written(resp::Protocol::resp2, decision)
                  .ends_with("$8\r\ndelay_ms\r\n:0\r\n$10\r\ndecided_by\r\n$6\r\ncached\r\n"));
  decision.decided_by = DecidedBy::local;
  EXPECT_TRUE(written(resp::Protocol::resp3, decision).starts_with("%9\r\n"));
  EXPECT_TRUE(written(resp::Protocol::resp3, decision).ends_with("$10\r\ndecided_by\r\n$5\r\nlocal\r\n"));
}

TEST(WeirAnswer, HasNoNumbersIfNoLimitDecided) {
  Answer answer;
  answer.allowed = true;
  std::string out;
  resp::Writer writer(out);
  write_answer(answer, writer);
  EXPECT_NE(out.find("reason\r\n$7\r\nno_rule\r\n"), std::string::npos);
  EXPECT_NE(out.find("limit\r\n$-1\r\n$9\r\nremaining\r\n$-1\r\n"), std::string::npos);
  answer = {};
  answer.why = Why::missing;
  answer.rule = "orgs";
  answer.retry_after = kNever;
  out.clear();
  write_answer(answer, writer);
  EXPECT_NE(out.find("allowed\r\n:0\r\n$6\r\nreason\r\n$7\r\nmissing\r\n$4\r\nrule\r\n$4\r\norgs\r\n"),
            std::string::npos);
  EXPECT_NE(out.find("retry_after_ms\r\n:-1\r\n"), std::string::npos);
}

}  // namespace
}  // namespace weir::protocol
