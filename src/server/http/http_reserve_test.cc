// Tests reservations and permits in flight over HTTP.
#include "server/http/http_routes.h"

#include "server/http/http_session_fixture.h"

namespace weir::server::http {
namespace {

class HttpReserve : public HttpClient {
 protected:
  // The text value of a member of a body.
  static std::string member(std::string_view text, std::string_view name) {
    const std::string begin = "\"" + std::string(name) + "\":\"";
    const std::size_t at = text.find(begin);
    if (at == text.npos) return "absent";
    const std::size_t from = at + begin.size();
    return std::string(text.substr(from, text.find('"', from) - from));
  }
  std::string body_of_release(const std::string& id) {
    return body(post("/v1/release", R"({"key":"jobs","id":")" + id + "\"}"));
  }
  std::int64_t remaining(std::string_view key) { return limiter.peek(key, *compile("10/minute"))->remaining; }
};

TEST_F(HttpReserve, CommitsTheActualCost) {
  const std::string reserved = post("/v1/reserve", R"({"key":"u","limit":"10/minute","cost":8})");
  EXPECT_EQ(status(reserved), 200);
  EXPECT_EQ(remaining("u"), 2);
  const std::string id = member(reserved, "reservation");
  ASSERT_GE(id.size(), 16u) << reserved;
  const std::string commit = R"({"id":")" + id + R"(","key":"u","limit":"10/minute","cost":3})";
  EXPECT_EQ(status(post("/v1/commit", commit)), 200);
  EXPECT_EQ(remaining("u"), 7);
  const std::string again = post("/v1/commit", commit);
  EXPECT_EQ(status(again), 404) << again;
  EXPECT_TRUE(has(again, "already settled"));
}

TEST_F(HttpReserve, CancelsByAnIdFromTheCaller) {
  const std::string order = R"({"id":"order-7","key":"u","limit":"10/minute","cost":8})";
  EXPECT_EQ(member(post("/v1/reserve", order), "reservation"), "order-7");
  const std::string twice = post("/v1/reserve", order);
  EXPECT_EQ(status(twice), 409) << twice;
  EXPECT_TRUE(has(twice, "settle it, or use another id"));
  EXPECT_EQ(status(post("/v1/cancel", order)), 200);
  EXPECT_EQ(remaining("u"), 10);
  EXPECT_EQ(status(post("/v1/cancel", order)), 404);
}

TEST_F(HttpReserve, DeniesWithoutAReservation) {
  const std::string denied = post("/v1/reserve", R"({"key":"u","limit":"10/minute","cost":11})");
  EXPECT_EQ(status(denied), 429);
  EXPECT_EQ(member(denied, "reservation"), "absent");
}

TEST_F(HttpReserve, ReservesByTheRules) {
  EXPECT_EQ(status(post("/v1/reserve", R"({"user":"42"})")), 400);
  EXPECT_EQ(status(post("/v1/commit", R"({"id":"7","user":"42"})")), 400);
  use_rules("rules:\n  - {name: tokens, per: user, limit: 100/minute}\n");
  const std::string reserved = post("/v1/reserve", R"({"user":"42","cost":60})");
  EXPECT_EQ(status(reserved), 200) << reserved;
  EXPECT_TRUE(has(reserved, "\"remaining\":40")) << reserved;
  const std::string id = member(reserved, "reservation");
  const std::string committed = post("/v1/commit", R"({"id":")" + id + R"(","user":"42","cost":10})");
  EXPECT_EQ(status(committed), 200) << committed;
  EXPECT_TRUE(has(post("/v1/check?peek", R"({"user":"42"})"), "\"remaining\":90"));
  const std::string second = member(post("/v1/reserve", R"({"user":"42","cost":50})"), "reservation");
  EXPECT_EQ(status(post("/v1/cancel", R"({"id":")" + second + R"(","user":"42"})")), 200);
  EXPECT_TRUE(has(post("/v1/check?peek", R"({"user":"42"})"), "\"remaining\":90"));
  EXPECT_EQ(status(post("/v1/cancel", R"({"id":")" + second + R"(","user":"42"})")), 404);
}

TEST_F(HttpReserve, AcquiresAndReleases) {
  const std::string wanted = R"({"key":"jobs","limit":"2 concurrent"})";
  const std::string first = post("/v1/acquire", wanted);
  EXPECT_EQ(status(first), 200);
  const std::string id = member(first, "id");
  EXPECT_EQ(id.size(), 32u) << first;
  EXPECT_EQ(field(first, "RateLimit-Policy"), "\"default\";q=2;qu=\"concurrent-requests\"");
  const std::string second = post("/v1/acquire", R"({"key":"jobs","limit":"2 concurrent","id":"mine"})");
  EXPECT_EQ(member(second, "id"), "mine");
  EXPECT_NE(member(second, "id"), id);
  const std::string third = post("/v1/acquire", wanted);
  EXPECT_EQ(status(third), 429);
  EXPECT_EQ(member(third, "id"), "absent");
  EXPECT_EQ(body_of_release(id), "{\"released\":true}\n");
  EXPECT_EQ(body_of_release(id), "{\"released\":false}\n");
  EXPECT_EQ(status(post("/v1/acquire", wanted)), 200);
}

TEST_F(HttpReserve, ReportsWhatIsWrong) {
  EXPECT_TRUE(has(post("/v1/acquire", R"({"key":"jobs","limit":"2/minute"})"), "20 concurrent"));
  EXPECT_TRUE(has(post("/v1/reserve", R"({"key":"jobs","limit":"2 concurrent"})"), "/v1/acquire"));
  for (const char* path : {"/v1/reserve", "/v1/commit", "/v1/cancel"}) {
    EXPECT_TRUE(
        has(post(path, R"({"id":"7","key":"jobs","limit":"2/minute","cost":-1})"), "it must be 0 to 1099511627776"));
    EXPECT_EQ(status(post(path, R"({"id":"7","key":"jobs","limit":"2/minute","cost":1099511627777})")), 400);
  }
  EXPECT_TRUE(has(post("/v1/release", R"({"key":"jobs"})"), "\\\"id\\\" is missing"));
  EXPECT_TRUE(has(post("/v1/commit", R"({"key":"jobs","limit":"2/minute"})"), "\\\"id\\\" is missing"));
  EXPECT_TRUE(has(post("/v1/commit", R"({"reservation":"7","key":"jobs","limit":"2/minute"})"), "write \\\"id\\\""));
  for (const char* path : {"/v1/reserve", "/v1/commit", "/v1/cancel", "/v1/acquire", "/v1/release"}) {
    for (const char* bad :
         {"", "[]", "{", "7", R"({"x":1})", R"({"key":7,"id":"1"})", R"({"key":"","id":"1","limit":"1/s"})"}) {
      EXPECT_EQ(status(send(request("POST", path, bad))), 400) << path << bad;
    }
    EXPECT_EQ(field(send(request("GET", path)), "Allow"), "POST");
  }
  EXPECT_EQ(limiter.size(), 0u);
}

}  // namespace
}  // namespace weir::server::http
