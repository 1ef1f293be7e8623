// Tests POST /json, the rate limit service over plain HTTP.
//
// Answers must be those of envoyproxy/ratelimit; what cannot be parsed gets a text.
#include "server/http/http_routes.h"

#include "server/http/http_session_fixture.h"

namespace weir::server::http {
namespace {

class HttpRls : public HttpClient {};

constexpr std::string_view kAsk = R"({"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"u"}]}]})";

TEST_F(HttpRls, AnswersLikeTheReferenceService) {
  use_rules("rules: [{name: users, per: user, limit: 1/minute, algorithm: fixed_window}]");
  const std::string passed = post("/json", kAsk), denied = post("/json", kAsk);
  EXPECT_EQ(status(passed), 200);
  EXPECT_EQ(field(passed, "Content-Type"), "application/json");
  EXPECT_TRUE(has(passed, R"({"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":1,)"));
  EXPECT_EQ(status(denied), 429);
  EXPECT_TRUE(has(denied, R"({"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{)"));
  EXPECT_TRUE(has(denied, R"("unit":"MINUTE")")) << denied;
}

TEST_F(HttpRls, AllowsWithoutRules) {
  EXPECT_EQ(body(post("/json", kAsk)), R"({"overallCode":"OK","statuses":[{"code":"OK"}]})");
}

TEST_F(HttpRls, RefusesInvalidRequests) {
  EXPECT_EQ(body(post("/json", "{}")), "rate limit domain must not be empty\n");
  for (const char* wrong : {"{", "[]", R"({"x":1})", R"({"domain":"d"})"}) {
    EXPECT_EQ(status(post("/json", wrong)), 400) << wrong;
  }
}

}  // namespace
}  // namespace weir::server::http
