// Tests POST /v1/checks: one answer each, in order, whatever is among them; nothing is charged for an invalid body.
#include "server/http/http_routes.h"

#include "server/http/http_session_fixture.h"

namespace weir::server::http {
namespace {

class HttpChecks : public HttpClient {
 protected:
  std::string checks(std::string_view json) { return post("/v1/checks", json); }
};

TEST_F(HttpChecks, AreAnsweredInOrder) {
  use_rules("rules:\n  - {name: each, per: user, limit: 1/minute, algorithm: sliding_log}\n");
  const std::string answer =
      checks(R"({"checks":[{"key":"a","limit":"5/minute"},{"user":"42"},{"key":"a","limit":"5/minute","cost":4},)"
             R"({"user":"42"},{"key":"a","limit":"5/minute"},{"key":"b","limit":"5/minuet"},{"nonsense":[1]},)"
             R"({"key":"c","limit":"5/minute","id":"1"},{"key":"c","limit":"5/minute","id":"1"}]})");
  EXPECT_EQ(status(answer), 200);
  EXPECT_EQ(field(answer, "Content-Type"), "application/json");
  const std::string text = body(answer);
  const char* const expected[] = {
      R"({"answers":[{"allowed":true,"limit":5,"remaining":4,)",
      R"({"allowed":true,"limit":1,"remaining":0,"reset_after":60,"retry_after":0,"delay":0,"rule":"each",)",
      R"({"allowed":true,"limit":5,"remaining":0,)",
      R"({"allowed":false,"limit":1,"remaining":0,"reset_after":60,"retry_after":60,"delay":0,"rule":"each",)",
      R"({"allowed":false,"limit":5,"remaining":0,)",
      R"({"error":"Bad check","detail":"\"limit\": column 3)",
      R"({"error":"Bad check","detail":"unknown member 'nonsense')",
      R"({"allowed":true,"limit":5,"remaining":4,)",
      R"({"allowed":true,"limit":5,"remaining":4,)",
  };
  std::size_t at = 0;
  for (const char* part : expected) {
    const std::size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << "\n is not after byte " << at << " of\n" << text;
    at = found + 1;
  }
  EXPECT_TRUE(text.ends_with("}]}\n"));
}

TEST_F(HttpChecks, AreDecidedInOrderWithAndWithoutIds) {
  use_rules("rules:\n  - {name: each, per: user, limit: 1/minute}\n");
  const std::string plain = R"({"key":"o","limit":"1/hour"})", once = R"({"key":"o","limit":"1/hour","id":"x1"})";
  const auto allowed = [&](const std::string& list) {
    std::string outcomes;
    const std::string text = body(checks("[" + list + "]"));
    const std::string_view part = "{\"allowed\":";
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
      outcomes += text[at + part.size()];
    limiter.reset("o").value();
    return outcomes;
  };
  EXPECT_EQ(allowed(once + "," + plain), "tf");
  EXPECT_EQ(allowed(plain + "," + R"({"key":"o","limit":"1/hour","id":"x2"})" + "," + plain), "tff");
  const std::string two = R"({"key":"o","limit":"2/hour"})";
  EXPECT_EQ(allowed(two + R"(,{"key":"o","limit":"2/hour","id":"x3"},)" + two), "ttf");
  EXPECT_EQ(allowed(plain + R"(,{"wrong":1},)" + plain + R"(,{"user":"1"},)" + R"({"key":"p","limit":"1/hour"})"),
            "tftt");
}

TEST_F(HttpChecks, RefuseAnIdempotencyKeyForAll) {
  const std::string answer = post("/v1/checks", R"([{"key":"a","limit":"5/minute"}])", "Idempotency-Key: 7\r\n");
  EXPECT_EQ(status(answer), 400);
  EXPECT_TRUE(has(answer, R"(give each check its own \"id\")")) << answer;
  EXPECT_EQ(limiter.size(), 0u);
}

constexpr std::string_view kEach = "rules:\n  - {name: each, per: user, limit: 3/hour, algorithm: sliding_log}\n";

// Checks of user 1 by the rules, and an invalid one at the end.
std::string many_checks(std::size_t count) {
  std::string list = "[";
  for (std::size_t i = 1; i < count; ++i) list += R"({"user":"1"},)";
  return list + R"({"wrong":"\u0041"}])";
}

TEST_F(HttpChecks, AreAnsweredInPiecesIfTheyTakeLong) {
  use_rules(kEach);
  EXPECT_TRUE(has(checks(many_checks(kChecksAtOnce + 1)), "200 OK")) << "few enough for one piece";
  const std::string list = many_checks(loop::kChecksMax);
  const std::string bytes = request("POST", "/v1/checks", list) + request("GET", "/livez");
  EXPECT_EQ(send(bytes), "");
  int pieces = 0;
  while (session->is_holding()) {
    ASSERT_EQ(session->due(), Micros{0});
    ASSERT_GE(session->held(), list.size());
    ASSERT_EQ(player->output, "");
    session->wake(clock->now(), player->output);
    ASSERT_LT(++pieces, 100);
  }
  EXPECT_GE(pieces, 20);
  EXPECT_EQ(session->due(), kNever);
  std::string all = player->take();
  for (int i = 0; i < 2; ++i) all += send("");  // on fibers it first reports that it is full
  EXPECT_EQ(session->held(), 0u);
  const std::string answer = all.substr(0, all.rfind("HTTP/1.1 "));
  EXPECT_EQ(status(answer), 200);
  EXPECT_EQ(field(answer, "Content-Length"), std::to_string(body(answer).size()));
  EXPECT_TRUE(answer.ends_with("\"}]}\n")) << answer.substr(answer.size() - 100);
  EXPECT_TRUE(has(answer, "{\"answers\":[{\"allowed\":")) << answer.substr(0, 500);
  EXPECT_EQ(count(answer, "{\"allowed"), loop::kChecksMax - 1);
  EXPECT_TRUE(all.ends_with("ok\n")) << "then the next request of the pipeline is answered";
}

TEST_F(HttpChecks, AreFinishedAtOnceWhenTheServerStops) {
  use_rules(kEach);
  EXPECT_EQ(checks(many_checks(3000)), "");
  session->wake(clock->now(), player->output);
  session->drain(player->output);
  EXPECT_FALSE(session->is_holding());
  const std::string answer = player->take();
  EXPECT_EQ(status(answer), 200);
  EXPECT_EQ(field(answer, "Connection"), "close");
  send("");
  EXPECT_TRUE(progress.close);
}

TEST_F(HttpChecks, EndWhenTheClientDisconnects) {
  use_rules(kEach);
  EXPECT_EQ(checks(many_checks(3000)), "");
  disconnect();
  EXPECT_EQ(limiter.size(), 0u) << "nothing was decided yet";
  EXPECT_EQ(checks(many_checks(3000)), "");
  session->wake(clock->now(), player->output);
  session->give_up(loop::GiveUp::no_memory, player->output);
  EXPECT_FALSE(session->is_holding());
  EXPECT_EQ(status(player->take()), 503);
  EXPECT_EQ(service.holds, 0u);
}

TEST_F(HttpChecks, MayBeABareArrayAndEmpty) {
  EXPECT_TRUE(has(checks(R"([{"key":"a","limit":"5/minute"}])"), R"({"answers":[{"allowed":true,)"));
  EXPECT_EQ(body(checks("[]")), "{\"answers\":[]}\n");
}

TEST_F(HttpChecks, ChargeNothingIfTheBodyIsInvalid) {
  use_rules("rules:\n  - {name: each, per: user, limit: 1/minute}\n");
  for (const char* tail : {",", "", ",{]", "]}", ",{\"key\":\"\xff\"}]", "] x"}) {
    const std::string answer = checks(R"([{"key":"a","limit":"5/minute"},{"user":"42"})" + std::string(tail));
    EXPECT_EQ(status(answer), 400) << tail << answer;
  }
  EXPECT_EQ(limiter.size(), 0u);
}

TEST_F(HttpChecks, AreTenThousandAtMost) {
  std::string list = "[";
  for (std::size_t i = 0; i < loop::kChecksMax; ++i) list += R"({"key":"a","limit":"5/minute"},)";
  const std::string more = list + R"({"key":"a","limit":"5/minute"}])";
  list.back() = ']';
  const std::string answer = checks(list);
  EXPECT_EQ(status(answer), 200);
  EXPECT_EQ(count(answer, "allowed"), loop::kChecksMax);
  limiter.reset("a").value();
  const std::string refused = checks(more);
  EXPECT_EQ(status(refused), 413);
  EXPECT_TRUE(has(refused, "more than 10000 checks")) << refused;
  EXPECT_EQ(limiter.size(), 0u);
}

TEST_F(HttpChecks, MayHaveMoreLimitsThanTheCache) {
  std::string list = "[";
  for (int i = 1; i <= 3000; ++i)
    list += R"({"key":"a)" + std::to_string(i % 10) + R"(","limit":")" + std::to_string(i) + R"(/minute"},)";
  list.back() = ']';
  const std::string answer = checks(list);
  EXPECT_EQ(status(answer), 200);
  EXPECT_TRUE(has(answer, "\"limit\":1,") && has(answer, "\"limit\":3000,"));
  checks("[]");
  EXPECT_LE(service.home.limits.size(), loop::LimitCache::kSlots);
}

TEST_F(HttpChecks, MayHaveALargerBodyThanOthers) {
  const std::string key(3000, 'k');
  std::string list = "[";
  for (int i = 0; i < 1000; ++i) list += R"({"key":")" + key + R"(","limit":"5000/minute"},)";
  list.back() = ']';
  ASSERT_GT(list.size(), loop::Bounds{}.body_max);
  EXPECT_EQ(status(checks(list)), 200);
  EXPECT_EQ(status(post("/v1/check", list)), 413);
}

}  // namespace
}  // namespace weir::server::http
