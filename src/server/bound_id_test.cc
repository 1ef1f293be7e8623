// Tests bound ids: no two are equal, none is too long, and clients cannot use each other's.
//
// The ids themselves, then those that clients send over HTTP and RESP.
#include "server/loop/bound_id.h"

#include <set>

#include "server/http/http_session_fixture.h"
#include "server/resp/resp_session_fixture.h"

namespace weir::server {
namespace {

TEST(BoundIds, DifferForDifferentRequests) {
  const std::string large(100, 'x');
  std::set<std::string> ids;
  const auto is_new = [&](const std::string& id) { return id.size() <= kRequestIdBytesMax && ids.insert(id).second; };
  for (const std::string& tail : {std::string(), large}) {
    EXPECT_TRUE(is_new(loop::bound_id("1", Request{.user = "a", .path = tail})));
    EXPECT_TRUE(is_new(loop::bound_id("1", Request{.api_key = "a", .path = tail})));
    EXPECT_TRUE(is_new(loop::bound_id("1", Request{.user = "a", .method = "GET", .path = tail})));
    const Attribute entry{"a", "b"};
    EXPECT_TRUE(is_new(loop::bound_id("1", Request{.user = "a", .path = tail, .entries = {&entry, 1}})));
  }
  EXPECT_EQ(loop::bound_id("1", Request{.user = "a", .cost = 1}), loop::bound_id("1", Request{.user = "a", .cost = 2}))
      << "the limiter binds it to the cost";
}

TEST(BoundIds, AreUnchangedIfEmptyOrTooLong) {
  for (const std::string& id : {std::string(), std::string(65, 'i')}) {
    EXPECT_EQ(loop::bound_id(id, Request{.user = "a"}), id);
  }
}

class BoundIdsHttp : public http::HttpClient {};

TEST_F(BoundIdsHttp, DoNotExemptACheckOfAnotherKey) {
  const auto check = [&](const char* key) {
    return status(post("/v1/check", R"({"key":")" + std::string(key) + R"(","limit":"1/hour","id":"7"})"));
  };
  EXPECT_EQ(status(post("/v1/check", R"({"key":"b","limit":"1/hour"})")), 200);
  EXPECT_EQ(check("a"), 200);
  EXPECT_EQ(check("a"), 200) << "sent again";
  EXPECT_EQ(check("b"), 429) << "the id came with another key";
}

TEST_F(BoundIdsHttp, DoNotExemptACheckOfAnotherUser) {
  use_rules("rules:\n  - {name: each, per: user, limit: 1/hour}\n");
  const auto check = [&](const char* user) {
    return status(post("/v1/check", R"({"user":")" + std::string(user) + R"("})", "Idempotency-Key: 7\r\n"));
  };
  EXPECT_EQ(status(post("/v1/check", R"({"user":"b"})")), 200);
  EXPECT_EQ(check("a"), 200);
  EXPECT_EQ(check("a"), 200) << "sent again";
  EXPECT_EQ(check("b"), 429) << "the id came with another user";
}

TEST_F(BoundIdsHttp, DoNotExemptACheckOfAnotherCost) {
  const auto left = [&](int cost, const char* fields = "") {
    return body(
        post("/v1/check", R"({"key":"k","limit":"100/year","id":"7","cost":)" + std::to_string(cost) + "}", fields));
  };
  EXPECT_TRUE(has(left(0), "\"remaining\":100"));
  EXPECT_TRUE(has(left(1), "\"remaining\":99"));
  EXPECT_TRUE(has(left(1), "\"remaining\":99")) << "sent again";
  EXPECT_TRUE(has(left(90), "\"remaining\":9"));
  EXPECT_TRUE(has(left(10), "\"allowed\":false"));
}

class BoundIdsResp : public resp::RespSessionTest {};

TEST_F(BoundIdsResp, DoNotExemptACheckOfAnotherKeyOrUser) {
  gate.apply(parse_policy("rules:\n  - {name: each, per: user, limit: 1/hour}\n", "test.yaml").value()).value();
  const auto is_allowed = [&](const std::vector<std::string_view>& words) {
    const std::string reply = flat(call(words));
    EXPECT_TRUE(reply.starts_with("allowed ")) << reply;
    return reply.starts_with("allowed 1");
  };
  EXPECT_TRUE(is_allowed({"WEIR.LIMIT", "b", "1/hour"}));
  EXPECT_TRUE(is_allowed({"WEIR.LIMIT", "a", "1/hour", "ID", "7"}));
  EXPECT_TRUE(is_allowed({"WEIR.LIMIT", "a", "1/hour", "ID", "7"}));
  EXPECT_FALSE(is_allowed({"WEIR.LIMIT", "b", "1/hour", "ID", "7"}));
  EXPECT_TRUE(is_allowed({"WEIR.CHECK", "user", "b"}));
  EXPECT_TRUE(is_allowed({"WEIR.CHECK", "user", "a", "ID", "7"}));
  EXPECT_TRUE(is_allowed({"WEIR.CHECK", "user", "a", "ID", "7"}));
  EXPECT_FALSE(is_allowed({"WEIR.CHECK", "user", "b", "ID", "7"}));
}

}  // namespace
}  // namespace weir::server
