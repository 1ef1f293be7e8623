// Tests the OpenAPI document, openapi.json: it is served, is valid JSON, and describes every route.
//
// tests/server/schemathesis.sh tests the server against it.
#include "server/http/http_routes.h"

#include "server/http/http_session_fixture.h"

namespace weir::server::http {
namespace {

class OpenApi : public HttpClient {};

TEST_F(OpenApi, IsJson) {
  protocol::JsonTexts texts;
  protocol::JsonReader json(openapi_document(), texts);
  EXPECT_TRUE(json.skip_value()) << json.why() << " at byte " << json.at();
  EXPECT_TRUE(json.at_end());
}

TEST_F(OpenApi, IsServed) {
  const std::string answer = send(request("GET", "/openapi.json"));
  EXPECT_EQ(status(answer), 200);
  EXPECT_EQ(field(answer, "Content-Type"), "application/json");
  EXPECT_EQ(body(answer), openapi_document());
}

TEST_F(OpenApi, DescribesExistingRoutes) {
  protocol::JsonTexts texts;
  protocol::JsonReader json(openapi_document(), texts);
  std::string_view name;
  bool is_first = true;
  std::size_t routes = 0;
  json.take('{');
  while (json.next_member(name, is_first) && name != "paths") json.skip_value();
  ASSERT_EQ(name, "paths");
  json.take('{');
  for (is_first = true; json.next_member(name, is_first); json.skip_value()) {
    EXPECT_NE(status(send(request("PATCH", name))), 404) << name;
    ++routes;
  }
  EXPECT_GE(routes, 14u);
}

}  // namespace
}  // namespace weir::server::http
