// Tests resets over HTTP: what they reset, and the messages for wrong requests.
#include "server/http/http_routes.h"

#include "server/http/http_session_fixture.h"

namespace weir::server::http {
namespace {

class HttpKeys : public HttpClient {
 protected:
  std::string remove(std::string_view target) { return send(request("DELETE", target)); }
};

constexpr std::string_view kKeyRules = R"(
rules:
  - {name: login, per: ip, limit: 1/hour}
  - {name: two/words, match: {header: {x-org: '*'}}, per: [header:x-org, entry:job], limit: 1/hour}
)";

TEST_F(HttpKeys, ResetsAKeyUnderEveryAlgorithm) {
  post("/v1/check", R"({"key":"user:4 2","limit":"1/hour"})");
  post("/v1/check", R"({"key":"user:4 2","limit":"1/hour","algorithm":"sliding_log"})");
  EXPECT_EQ(body(remove("/v1/keys?key=user:4%202")), "{\"reset\":true}\n");
  EXPECT_EQ(body(remove("/v1/keys?key=user%3a4%202")), "{\"reset\":false}\n");
  EXPECT_EQ(limiter.size(), 0u);
}

TEST_F(HttpKeys, ResetsTheCountOfARule) {
  use_rules(kKeyRules);
  for (const char* ip : {"192.0.2.1", "192.0.2.2"}) post("/v1/check", R"({"ip":")" + std::string(ip) + "\"}");
  EXPECT_EQ(body(remove("/v1/keys/login?ip=192.0.2.1")), "{\"reset\":true}\n");
  EXPECT_EQ(body(remove("/v1/keys/login?ip=192.0.2.1")), "{\"reset\":false}\n");
  EXPECT_EQ(status(post("/v1/check", R"({"ip":"192.0.2.1"})")), 200);
  EXPECT_EQ(status(post("/v1/check", R"({"ip":"192.0.2.2"})")), 429);
}

TEST_F(HttpKeys, AcceptsHeadersAndEntries) {
  use_rules(kKeyRules);
  const std::string check = R"({"headers":{"x-org":"a&b"},"entries":{"job":"7"}})";
  EXPECT_EQ(status(post("/v1/check", check)), 200);
  EXPECT_EQ(status(post("/v1/check", check)), 429);
  const std::string reset = remove("/v1/keys/two%2Fwords?header.x-org=a%26b&entry.job=7");
  EXPECT_EQ(body(reset), "{\"reset\":true}\n") << reset;
  EXPECT_EQ(status(post("/v1/check", check)), 200);
}

TEST_F(HttpKeys, ReportsWhatIsWrong) {
  EXPECT_EQ(status(remove("/v1/keys/login?ip=192.0.2.1")), 404) << "there are no rules";
  use_rules(kKeyRules);
  const std::string unknown = remove("/v1/keys/logn?ip=192.0.2.1");
  EXPECT_EQ(status(unknown), 404);
  EXPECT_TRUE(has(unknown, "did you mean") && has(unknown, "login")) << unknown;
  EXPECT_TRUE(has(remove("/v1/keys/login?usr=1"), "did you mean user?"));
  for (const char* target :
       {"/v1/keys", "/v1/keys?kye=1", "/v1/keys?key=", "/v1/keys?key=a&key=b", "/v1/keys/", "/v1/keys/%zz",
        "/v1/keys/login?ip=%2", "/v1/keys/login?header.=1", "/v1/keys/login?ip=1.2.3.4&ip=1.2.3.5"}) {
    const std::string answer = remove(target);
    EXPECT_EQ(status(answer), 400) << target << answer;
    EXPECT_EQ(field(answer, "Content-Type"), "application/problem+json");
  }
  const std::string lacking = remove("/v1/keys/login?user=42");
  EXPECT_EQ(status(lacking), 409);
  EXPECT_TRUE(has(lacking, "counts by ip, which this request lacks")) << lacking;
  EXPECT_EQ(field(send(request("GET", "/v1/keys/login")), "Allow"), "DELETE");
}

}  // namespace
}  // namespace weir::server::http
