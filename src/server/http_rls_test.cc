// POST /json answers as envoyproxy/ratelimit does.
#include "server/http_rls.h"

#include "server/http_client.h"

namespace weir {
namespace {

class HttpRls : public HttpClient {};

constexpr std::string_view kAsked = R"({"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"42"}]}]})";

TEST_F(HttpRls, AllowsThenDenies) {
  use_rules(
      "rules:\n  - {name: each, match: {entry: {domain: edge}}, per: user, limit: 1/minute, algorithm: "
      "fixed_window}\n");
  const std::string first = post("/json", kAsked);
  EXPECT_EQ(status(first), 200) << first;
  EXPECT_EQ(field(first, "Content-Type"), "application/json");
  EXPECT_TRUE(has(body(first), "\"overallCode\":\"OK\"")) << first;
  const std::string second = send_slowly(request("POST", "/json", kAsked));
  EXPECT_EQ(status(second), 429) << second;
  EXPECT_TRUE(has(body(second), "\"overallCode\":\"OVER_LIMIT\"")) << second;
}

TEST_F(HttpRls, TellsWhatIsWrong) {
  for (const char* bad : {"", "{", "[]", "{}", R"({"domain":"edge"})", R"({"domain":"","descriptors":[]})",
                          R"({"domain":"edge","descriptors":[{"entries":[{"kye":"user"}]}]})"}) {
    const std::string answer = send(request("POST", "/json", bad));
    EXPECT_EQ(status(answer), 400) << bad << answer;
    EXPECT_EQ(field(answer, "Content-Type"), "application/problem+json");
  }
  EXPECT_EQ(field(send(request("GET", "/json")), "Allow"), "POST");
  EXPECT_EQ(limiter.size(), 0u);
}

}  // namespace
}  // namespace weir
