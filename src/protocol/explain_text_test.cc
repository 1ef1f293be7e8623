// Tests explanations as text and as JSON.
#include "protocol/explain_text.h"

#include <gtest/gtest.h>

namespace weir::protocol {
namespace {

Explanation denied_login() {
  Explanation out{.allowed = false,
                  .summary = "denied by login: 5/5min",
                  .client_ip = "192.0.2.1",
                  .path = "/api/login",
                  .binding = "login: 5/5min"};
  out.rules.push_back({.rule = "search", .applies = false, .reason = "path is '/api/login', not /api/search"});
  out.rules.push_back({.rule = "login", .applies = true, .reason = "enforced", .key = "ip:192.0.2.1"});
  out.rules.back().limits.push_back({.quota = "5/5min",
                                     .algorithm = "sliding_log",
                                     .cost = 2,
                                     .decision = {false, 5, 1, Micros{1'500'000}, Micros{300'000'000}, Micros{0}},
                                     .worst_case = "never more than 5 permits in any 5min"});
  return out;
}

TEST(ExplainText, ShowsEveryRuleAndMarksTheOneThatBinds) {
  EXPECT_EQ(to_text(denied_login()),
            "denied by login: 5/5min\n"
            "path    /api/login\n"
            "client  192.0.2.1\n"
            "\n"
            "- search  path is '/api/login', not /api/search\n"
            "+ login   enforced, per ip:192.0.2.1\n"
            "    5/5min (sliding_log): 1 of 5 left, costs 2, passes in 1.5 s   <- binding\n"
            "      worst case: never more than 5 permits in any 5min\n");
}

TEST(ExplainText, RoundsALongWaitUp) {
  Explanation out = denied_login();
  const auto says = [&](std::int64_t wait, const std::string& text) {
    out.rules[1].limits[0].decision.retry_after = Micros{wait};
    EXPECT_NE(to_text(out).find(", passes in " + text + "   <- binding\n"), std::string::npos) << to_text(out);
  };
  says(9'000'001, "9.1 s");
  says(34'296'544, "35 s");
  says(89'000'001, "1 min 30 s");
  says(22'320'000'000, "6 h 12 min");
  says(7'199'000'000, "2 h");
}

TEST(ExplainText, ListsTheReadingsOfAPath) {
  Explanation out = denied_login();
  out.readings = {{"/health", "skipped", {}}, {"/api/login", "charged", {"login per ip:192.0.2.1", "all per global"}}};
  EXPECT_NE(to_text(out).find("path    /api/login\n"
                              "reading /health: skipped\n"
                              "reading /api/login: charged: login per ip:192.0.2.1; all per global\n"
                              "client  192.0.2.1\n"),
            std::string::npos)
      << to_text(out);
  EXPECT_NE(to_json(out).find("\"readings\":[\n{\"path\":\"/health\",\"outcome\":\"skipped\",\"charges\":[]},\n"
                              "{\"path\":\"/api/login\",\"outcome\":\"charged\",\"charges\":["
                              "\"login per ip:192.0.2.1\",\"all per global\"]}],\"rules\":["),
            std::string::npos)
      << to_json(out);
}

TEST(ExplainText, IsOneJsonObjectForPrograms) {
  EXPECT_EQ(
      to_json(denied_login()),
      "{\"allowed\":false,\"summary\":\"denied by login: 5/5min\",\"path\":\"/api/login\","
      "\"client_ip\":\"192.0.2.1\",\"binding\":\"login: 5/5min\",\"readings\":[],\"rules\":[\n"
      "{\"rule\":\"search\",\"applies\":false,\"reason\":\"path is '/api/login', not /api/search\",\"key\":\"\","
      "\"limits\":[]},\n"
      "{\"rule\":\"login\",\"applies\":true,\"reason\":\"enforced\",\"key\":\"ip:192.0.2.1\",\"limits\":["
      "{\"limit_text\":\"5/5min\",\"algorithm\":\"sliding_log\",\"worst_case\":\"never more than 5 permits in any "
      "5min\",\"cost\":2,\"allowed\":false,\"limit\":5,\"remaining\":1,\"reset_after\":300,\"retry_after\":1.5,"
      "\"delay\":0}]}]}\n");
}

TEST(ExplainText, SaysWhatAFleetAllowsWithoutRedis) {
  Explanation out = denied_login();
  out.rules[1].limits[0].on_unavailable = "nothing passes (closed)";
  EXPECT_NE(to_text(out).find("\n      Redis unavailable: nothing passes (closed)\n"), std::string::npos);
  EXPECT_NE(to_json(out).find("\"on_backend_error\":\"nothing passes (closed)\","), std::string::npos);
}

TEST(ExplainText, SaysWhatAppliesWhileRedisIsUnavailable) {
  Explanation out = denied_login();
  Decision& decision = out.rules[1].limits[0].decision;
  decision.decided_by = DecidedBy::closed;
  EXPECT_NE(to_text(out).find("(sliding_log): denied while Redis is unavailable (closed)   <- binding"),
            std::string::npos);
  EXPECT_NE(to_json(out).find("\"decided_by\":\"closed\""), std::string::npos);
  decision.decided_by = DecidedBy::local;
  EXPECT_NE(to_text(out).find("1 left in this server's share (limit 5), while Redis is unavailable (local)"),
            std::string::npos);
  decision.decided_by = DecidedBy::open;
  EXPECT_NE(to_text(out).find("1 of 5 left on this server, while Redis is unavailable (open)"), std::string::npos);
}

TEST(ExplainText, SaysNeverAndDelay) {
  Explanation out = denied_login();
  Decision& decision = out.rules[1].limits[0].decision;
  decision.retry_after = kNever;
  EXPECT_NE(to_text(out).find("never passes"), std::string::npos);
  decision = {true, 5, 4, Micros{0}, Micros{0}, Micros{250'000}};
  EXPECT_NE(to_text(out).find("after a delay of 250 ms"), std::string::npos);
}

}  // namespace
}  // namespace weir::protocol
