// Tests POST /v1/check: by a limit and by the rules, peeking, ids, and the message for each error.
#include "server/http/http_routes.h"

#include "server/http/http_session_fixture.h"

namespace weir::server::http {
namespace {

class HttpCheck : public HttpClient {
 protected:
  std::string check(std::string_view json, std::string_view query = "", std::string_view fields = "") {
    return post("/v1/check" + std::string(query), json, fields);
  }
};

constexpr std::string_view kTwice = R"({"key":"u","limit":"2/minute","algorithm":"sliding_log"})";
constexpr std::string_view kCheckRules = R"(
rules:
  - {name: steps, per: user, limits: [2/minute, 10/hour], algorithm: sliding_log}
  - {name: mallory, match: {user: mallory}, limit: 0/second}
)";

TEST_F(HttpCheck, LetsTheTurnDecideALimitInTheBody) {
  if (loop::kIsOnFibers) GTEST_SKIP() << "a turn of its own";
  connect();
  loop::Turn turn(limiter);
  std::string output;
  const std::string bytes = request("POST", "/v1/check", kTwice) + request("POST", "/v1/check", kTwice);
  const loop::Progress first = session->consume(bytes, turn, output);
  EXPECT_TRUE(first.asked);
  EXPECT_EQ(first.consumed, bytes.size() / 2) << "the second check waits for the next round";
  EXPECT_EQ(turn.asked(), 1u);
  EXPECT_EQ(output, "");
  turn.decide();
  EXPECT_FALSE(session->settle(turn, output));
  EXPECT_EQ(status(output), 200);
  EXPECT_TRUE(has(output, "\"remaining\":1")) << output;
}

TEST_F(HttpCheck, KeepsTheKeyOfABodyThatCameInPieces) {
  EXPECT_EQ(status(send_slowly(request("POST", "/v1/check", R"({"key":"\u0075","limit":"2/minute"})"))), 200);
  EXPECT_EQ(limiter.peek("u", *compile("2/minute"))->remaining, 1);
}

TEST_F(HttpCheck, PeeksWithoutCharging) {
  for (const char* query : {"?peek", "?peek=", "?peek=true", "?peek=1"}) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(has(check(kTwice, query), "\"allowed\":true,\"limit\":2,\"remaining\":2"));
  }
  EXPECT_EQ(limiter.size(), 0u);
  EXPECT_EQ(status(check(kTwice, "?peek=false")), 200);
  EXPECT_EQ(status(check(kTwice, "?peek=0")), 200);
  EXPECT_EQ(status(check(kTwice, "?peek")), 429) << "a check would get the same answer";
}

TEST_F(HttpCheck, RefusesOtherParameters) {
  for (const char* query : {"?peak", "?peek=maybe", "?peek&x=1", "?%zz"}) {
    EXPECT_EQ(status(check(kTwice, query)), 400) << query;
  }
  EXPECT_TRUE(has(check(kTwice, "?peak"), "unknown parameter 'peak'; the only parameter is peek"));
  EXPECT_EQ(limiter.size(), 0u) << "nothing was charged";
}

TEST_F(HttpCheck, ChargesARequestThatIsSentTwiceOnce) {
  const std::string again = R"({"key":"u","limit":"2/minute","algorithm":"sliding_log","id":"order-7"})";
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(has(check(again), "\"remaining\":1"));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(has(check(kTwice, "", "Idempotency-Key: order-8\r\n"), "\"remaining\":0"));
  EXPECT_EQ(status(check(kTwice)), 429);
}

TEST_F(HttpCheck, RefusesTwoIdsAndInvalidIds) {
  const std::string with_id = R"({"key":"u","limit":"2/minute","id":"a"})";
  EXPECT_TRUE(
      has(check(with_id, "", "Idempotency-Key: b\r\n"), R"(Idempotency-Key is 'b', but \"id\" is 'a'; send only one)"));
  EXPECT_EQ(status(check(with_id, "", "Idempotency-Key: b\r\n")), 409);
  EXPECT_EQ(status(check(with_id, "", "idempotency-key: a\r\n")), 200);
  EXPECT_EQ(status(check(kTwice, "", "Idempotency-Key: " + std::string(65, 'i') + "\r\n")), 400);
  EXPECT_EQ(status(check(kTwice, "", "Idempotency-Key:\r\n")), 400);
  EXPECT_EQ(status(check(kTwice, "", "Idempotency-Key: order 8\r\n")), 400);
  EXPECT_EQ(status(check(kTwice, "", "Idempotency-Key: \xc3\xa4\r\n")), 400);
  EXPECT_EQ(limiter.peek("u", *compile("2/minute"))->remaining, 1) << "only one check was charged";
}

TEST_F(HttpCheck, ReportsWhatIsWrongWithALimit) {
  EXPECT_TRUE(has(check(R"({"key":"u","limit":"100/minuet"})"), R"(\"limit\": column 5)"));
  EXPECT_TRUE(has(check(R"({"key":"u","limit":"100/minuet"})"), "100/minute"));
  EXPECT_EQ(status(check(R"({"key":"u","limit":"1/s burst 5","algorithm":"fixed_window"})")), 400);
  const std::string concurrent = check(R"({"key":"u","limit":"20 concurrent"})");
  EXPECT_TRUE(has(concurrent, "/v1/acquire") && has(concurrent, "100/minute")) << concurrent;
}

TEST_F(HttpCheck, CachesALimitByItsAlgorithmToo) {
  EXPECT_TRUE(has(check(R"({"key":"a","limit":"10/s","algorithm":"fixed_window"})"), "\"limit\":10"));
  EXPECT_TRUE(has(check(R"({"key":"b","limit":"10/s"})"), "\"limit\":10"));
  EXPECT_TRUE(loop::kIsOnFibers || service.home.limits.size() == 2u);
  EXPECT_EQ(limiter.peek("a", *compile("10/s", Algorithm::fixed_window))->remaining, 9);
  EXPECT_EQ(limiter.peek("b", *compile("10/s"))->remaining, 9);
}

TEST_F(HttpCheck, DecidesByTheRules) {
  use_rules(kCheckRules);
  const std::string first = check(R"({"user":"42"})");
  EXPECT_EQ(status(first), 200);
  EXPECT_EQ(field(first, "RateLimit"), "\"steps: 2/minute\";r=1;t=60");
  EXPECT_TRUE(has(body(first), "\"rule\":\"steps\",\"limit_text\":\"2/minute\"")) << first;
  EXPECT_EQ(status(check(R"({"user":"42"})")), 200);
  const std::string third = check(R"({"user":"42"})");
  EXPECT_EQ(status(third), 429);
  EXPECT_EQ(field(third, "Content-Type"), "application/problem+json");
  EXPECT_EQ(field(third, "Retry-After"), "60");
  EXPECT_TRUE(has(body(third), "\"violated-policies\":[\"steps: 2/minute\"]")) << third;
  EXPECT_EQ(status(check(R"({"user":"43"})")), 200);
  EXPECT_TRUE(has(check(R"({"user":"mallory"})"), "\"message\":\"This request can never be allowed: the limit is 0"));
}

TEST_F(HttpCheck, PeeksAndRepeatsByTheRules) {
  use_rules(kCheckRules);
  EXPECT_EQ(status(check(R"({"user":"42"})", "?peek")), 200);
  EXPECT_EQ(limiter.size(), 0u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status(check(R"({"user":"42","id":"7"})")), 200);
  EXPECT_TRUE(has(check(R"({"user":"42"})"), "\"remaining\":0"));
  EXPECT_EQ(status(check(R"({"user":"42"})", "?peek")), 429);
}

TEST_F(HttpCheck, AnswersInTheStyleOfThePolicy) {
  use_rules("answers: {headers: [draft-06]}\nrules:\n  - {name: a, per: user, limit: 1/minute}\n");
  const std::string first = check(R"({"user":"42"})");
  EXPECT_EQ(field(first, "RateLimit-Limit"), "1");
  EXPECT_EQ(field(first, "RateLimit-Policy"), "1;w=60");
  EXPECT_EQ(field(first, "X-RateLimit-Limit"), "absent");
  EXPECT_EQ(field(check(R"({"user":"42"})"), "Retry-After"), "absent");
  const std::string inline_answer = check(kTwice);
  EXPECT_TRUE(has(inline_answer, "RateLimit-Limit: 2\r\n"))
      << "a limit in the body gets the same style: " << inline_answer;
  EXPECT_FALSE(has(inline_answer, "X-RateLimit-Limit")) << inline_answer;
}

TEST_F(HttpCheck, ReportsThatThereAreNoRules) {
  const std::string answer = check(R"({"user":"42"})");
  EXPECT_EQ(status(answer), 400);
  EXPECT_TRUE(has(answer, "--config weir.yaml")) << answer;
}

class LongLimits : public HttpClient {};

TEST_F(LongLimits, AreRefusedByRoutes) {
  const std::string check = R"({"key":"u","limit":")" + std::string(5000, '1') + R"("})";
  const std::string reason = "the limit has 5000 bytes; at most 256 are allowed";
  EXPECT_EQ(status(post("/v1/check", check)), 400);
  EXPECT_TRUE(has(post("/v1/check", check), reason));
  EXPECT_TRUE(has(post("/v1/checks", "[" + check + "]"), reason));
  EXPECT_EQ(service.home.limits.size(), 0u);
}

}  // namespace
}  // namespace weir::server::http
