// Tests that the HTTP port refuses requests of web pages of other sites, and accepts those of clients that are not
// browsers.
#include "server/http/site_access.h"

#include <vector>

#include "server/http/http_session_fixture.h"

namespace weir::server::http {
namespace {

using Fields = std::vector<Attribute>;

bool is_refused(const Fields& fields, const std::vector<std::string>& allowed = {}) {
  return refuse_site(allowed, {"POST", "/v1/check", {}, fields, "127.0.0.1"}).has_value();
}

TEST(SiteAccess, AllowsClientsThatAreNotBrowsers) {
  EXPECT_FALSE(is_refused({}));
  EXPECT_FALSE(is_refused({{"Host", "weir.internal:8080"}, {"Content-Type", "application/x-www-form-urlencoded"}}));
}

TEST(SiteAccess, RefusesRequestsThatABrowserMarksAsCrossSite) {
  const Attribute host{"Host", "localhost:8080"};
  for (const char* site : {"cross-site", "same-site", "", "unheard-of", "Same-Origin"}) {
    EXPECT_TRUE(is_refused({host, {"Sec-Fetch-Site", site}})) << site;
    EXPECT_TRUE(is_refused({host, {"Sec-Fetch-Site", site}, {"Origin", "http://localhost:8080"}})) << site;
  }
  for (const char* origin : {"https://evil.example", "null", "", "http://localhost", "http://localhost:3000",
                             "http://localhost:8080.evil.example", "localhost:8080", "file://"}) {
    EXPECT_TRUE(is_refused({host, {"Origin", origin}})) << origin;
    EXPECT_TRUE(is_refused({host, {"Origin", origin}, {"Sec-Fetch-Site", "same-origin"}})) << origin;
  }
  EXPECT_TRUE(is_refused({host, {"Sec-Fetch-Site", "none"}, {"Sec-Fetch-Site", "none"}})) << "twice";
  EXPECT_TRUE(is_refused({host, {"Origin", "http://localhost:8080"}, {"origin", "http://localhost:8080"}})) << "twice";
}

TEST(SiteAccess, AllowsPagesOfItsOwnOrigin) {
  EXPECT_FALSE(is_refused({{"Host", "localhost:8080"}, {"Origin", "http://localhost:8080"}}));
  EXPECT_FALSE(is_refused({{"Host", "[::1]:8080"}, {"Origin", "https://[::1]:8080"}}));
  EXPECT_FALSE(
      is_refused({{"Host", "10.0.0.7:8080"}, {"Origin", "http://10.0.0.7:8080"}, {"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_FALSE(is_refused({{"Host", "localhost:8080"}, {"Sec-Fetch-Site", "none"}})) << "typed by a person";
}

TEST(SiteAccess, RefusesAReboundName) {
  const Fields rebound = {
      {"Host", "evil.example:8080"}, {"Origin", "http://evil.example:8080"}, {"Sec-Fetch-Site", "same-origin"}};
  EXPECT_TRUE(is_refused(rebound));
  EXPECT_FALSE(is_refused(rebound, {"http://evil.example:8080"})) << "unless the operator allows this origin";
}

TEST(SiteAccess, AllowsListedOrigins) {
  const std::vector<std::string> allowed = {"https://ops.example.com", "http://localhost:3000"};
  const Attribute host{"Host", "weir:8080"}, cross{"Sec-Fetch-Site", "cross-site"};
  EXPECT_FALSE(is_refused({host, cross, {"Origin", "https://ops.example.com"}}, allowed));
  EXPECT_FALSE(is_refused({host, cross, {"Origin", "https://OPS.example.com"}}, allowed));
  EXPECT_FALSE(is_refused({host, {"Origin", "http://localhost:3000"}}, allowed));
  for (const char* origin : {"http://ops.example.com", "https://ops.example.com:8443", "https://example.com", "null",
                             "https://ops.example.com.evil.example"}) {
    EXPECT_TRUE(is_refused({host, cross, {"Origin", origin}}, allowed)) << origin;
  }
  EXPECT_TRUE(is_refused({host, cross}, allowed)) << "without the field Origin";
}

TEST(SiteAccess, ValidatesOrigins) {
  for (const char* right : {"https://ops.example.com", "http://localhost:3000", "http://[::1]:80", "app://x"}) {
    EXPECT_FALSE(refuse_origin(right)) << right;
  }
  for (const char* wrong : {"", "*", "null", "ops.example.com", "https://", "://x", "https://ops.example.com/",
                            "https://*.example.com", "https://a b", "https://me@x"}) {
    const auto error = refuse_origin(wrong);
    ASSERT_TRUE(error) << wrong;
    EXPECT_NE(error->message.find("https://app.example.com"), std::string::npos) << "the error shows a valid origin";
  }
}

class SiteAccessHttp : public HttpClient {
 protected:
  static constexpr const char* kPage = "Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n";
};

TEST_F(SiteAccessHttp, RefusesPagesOnEveryRouteThatChargesOrResets) {
  EXPECT_EQ(status(post("/v1/check", R"({"key":"k","limit":"9/year","cost":3})")), 200);
  const std::string refund = R"({"key":"k","limit":"9/year","cost":-3})";
  for (const char* path : {"/v1/check", "/v1/check?peek", "/v1/checks", "/v1/reserve", "/v1/commit", "/v1/cancel",
                           "/v1/acquire", "/v1/release", "/v1/unheard-of", "/json"}) {
    const std::string answer = post(path, refund, kPage);
    EXPECT_EQ(status(answer), 403) << path;
    EXPECT_TRUE(has(answer, "https://evil.example")) << answer;
    EXPECT_TRUE(has(answer, "--allow-origin")) << answer;
  }
  for (const char* path : {"/v1/keys?key=k", "/v1/keys/rule?user=1"}) {
    EXPECT_EQ(status(send(request("DELETE", path, "", kPage))), 403) << path;
  }
  EXPECT_EQ(status(send(request("OPTIONS", "/v1/check", "", kPage))), 403) << "the preflight request of a browser";
  EXPECT_TRUE(has(post("/v1/check", R"({"key":"k","limit":"9/year","cost":0})"), "\"remaining\":6"));
}

TEST_F(SiteAccessHttp, AllowsTheClientsOfAGateway) {
  use_rules("rules:\n  - {name: each, per: ip, limit: 9/year}\n");
  for (const char* path : {"/auth", "/auth/v1/check"}) {
    const std::string answer = send(
        request("GET", path, "", std::string("X-Forwarded-Uri: /v1/check\r\nX-Forwarded-Method: POST\r\n") + kPage));
    EXPECT_EQ(status(answer), 200) << answer;
  }
  for (const char* path : {"/", "/livez", "/readyz", "/openapi.json"}) {
    EXPECT_EQ(status(send(request("GET", path, "", kPage))), 200) << path;
  }
}

TEST_F(SiteAccessHttp, AllowsListedOrigins) {
  const std::vector<std::string> allowed = {"https://evil.example"};
  service.origins = allowed;
  EXPECT_EQ(status(post("/v1/check", R"({"key":"k","limit":"9/year"})", kPage)), 200);
}

}  // namespace
}  // namespace weir::server::http
