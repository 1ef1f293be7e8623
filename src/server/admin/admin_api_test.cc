// Tests the admin routes without a socket: bodies, error messages, and hostile names.
#include "server/admin/admin_api.h"

#include "server/http/http_session_fixture.h"

namespace weir::server::admin {
namespace {

struct AdminApi : http::HttpClient {
  void SetUp() override {
    service.api = &admin;
    admin.control = &control;
    gate = std::make_unique<Gate>(limiter);
  }
  std::string call(std::string_view target, std::string_view body, std::string_view fields = "") {
    return send("POST " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
                std::string(fields) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                std::string(body));
  }
  std::string get(std::string_view target) {
    return send("GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  static bool is_json(const std::string& text) {
    protocol::JsonTexts texts;
    protocol::JsonReader json(text, texts);
    return json.skip_value() && json.at_end();
  }

  Gate own_gate{limiter};
  control::Control control{limiter, own_gate, {}};
  AdminService admin;
};

TEST_F(AdminApi, EveryAnswerHasSecurityHeaders) {
  for (const char* path : {"/", "/livez", "/admin/v1/status", "/nowhere"}) {
    const std::string answer = get(path);
    EXPECT_EQ(field(answer, "Cache-Control"), "no-store") << path;
    EXPECT_EQ(field(answer, "X-Content-Type-Options"), "nosniff") << path;
    EXPECT_EQ(field(answer, "Content-Security-Policy"), "default-src 'none'") << path;
  }
  EXPECT_TRUE(has(get("/"), "POST /admin/v1/undo"));
  EXPECT_TRUE(is_json(body(get("/admin/v1/status"))));
}

TEST_F(AdminApi, ReportsWhatIsWrongWithABody) {
  EXPECT_EQ(status(call("/admin/v1/kill-switch", "{")), 400);
  EXPECT_TRUE(has(call("/admin/v1/kill-switch", "{}"), "\\\"on\\\" is missing"));
  EXPECT_TRUE(has(call("/admin/v1/kill-switch", R"({"on":1})"), "\\\"on\\\" must be true or false"));
  EXPECT_TRUE(has(call("/admin/v1/kill-switch", R"({"on":true,"on":true})"), "is given twice"));
  EXPECT_TRUE(has(call("/admin/v1/kill-switch", R"({"on":true,"resaon":"x"})"), "did you mean \\\"reason\\\"?"));
  EXPECT_TRUE(has(call("/admin/v1/kill-switch", R"({"on":true,"for":"soon"})"), "write it like 10min"));
  EXPECT_TRUE(has(call("/admin/v1/kill-switch", "[]"), "must be a JSON object"));
  EXPECT_TRUE(has(call("/admin/v1/kill-switch", "{} {}"), "unexpected text after the JSON object"));
  EXPECT_EQ(status(call("/admin/v1/kill-switch", R"({"on":true})", "X-Weir-Who: \xFF\r\n")), 400);
  EXPECT_EQ(status(call("/admin/v1/kill-switch", R"({"on":true})")), 409) << "there are no rules here";
  EXPECT_EQ(status(call("/admin/v1/undo", "{\"id\":-1}")), 400);
  EXPECT_EQ(status(call("/admin/v1/undo", "{\"id\":99}")), 404);
  EXPECT_EQ(status(call("/admin/v1/undo", "")), 404);
  EXPECT_EQ(status(call("/admin/v1/keys/ban", R"({"for":"1h","key":"a","limit":"1/s"})")), 400);
  EXPECT_EQ(status(call("/admin/v1/keys/ban", R"({"for":"1h"})")), 400);
  EXPECT_TRUE(has(call("/admin/v1/keys/ban", R"({"for":"1h","user":"m","cost":2})"), "leave it out"));
  EXPECT_EQ(status(call("/admin/v1/reload", R"({"reason":"x"})")), 400) << "the journal has no entry for a reload";
  EXPECT_EQ(status(call("/admin/v1/keys/explain", R"({"usr":"1"})")), 400);
  EXPECT_EQ(status(get("/admin/v1/changes?n=0")), 400);
  EXPECT_EQ(status(get("/admin/v1/top?by=luck")), 400);
  EXPECT_EQ(status(get("/admin/v1/usage?top=0")), 400);
  EXPECT_EQ(status(get("/admin/v1/usage?since=monday")), 400);
  EXPECT_EQ(status(get("/admin/v1/usage")), 404) << "this server does not count usage";
  EXPECT_EQ(status(get("/admin/v1/kill-switch")), 405);
  EXPECT_EQ(field(call("/admin/v1/log", "{}"), "Allow"), "GET, HEAD, PUT");
}

TEST_F(AdminApi, ReportsUsageBySubject) {
  Gate counting(limiter, {.usage = {.subjects = 10}});
  ASSERT_TRUE(counting.apply(*parse_policy("rules: [{name: r, per: user, limit: 9/day}]", "t")));
  control::UsageControl usage(limiter, counting, {});
  admin.usage = &usage;
  ASSERT_TRUE(counting.check({.user = "<b>\"\n", .cost = 7}));
  const std::string of_all = body(get("/admin/v1/usage"));
  EXPECT_TRUE(is_json(of_all)) << of_all;
  EXPECT_TRUE(has(of_all, R"("used":7,"error":0,"denied":0)")) << of_all;
  EXPECT_TRUE(has(body(get("/admin/v1/usage?subject=user:%3Cb%3E%22%0A")), R"("used":7)"));
  EXPECT_TRUE(has(body(get("/admin/v1/usage?subject=user:1")), R"("rows":[])"));
  EXPECT_EQ(status(get("/admin/v1/usage?subject=1")), 400);
  EXPECT_EQ(status(get("/admin/v1/usage?from=2026-02-30")), 400);
}

TEST_F(AdminApi, DelaysAndCountsCallsWithoutTheToken) {
  admin.access.token = "0123456789abcdef";
  loop::ListenerCounts listener;
  service.bounds.counts = &listener;
  EXPECT_EQ(get("/admin/v1/status"), "") << "the answer is delayed";
  EXPECT_TRUE(session->is_holding());
  clock->advance(Micros{300'000});
  std::string out;
  session->wake(limiter.now(), out);
  EXPECT_EQ(status(out), 401);
  EXPECT_EQ(field(out, "WWW-Authenticate"), "Bearer realm=\"weir\"");
  EXPECT_EQ(listener.count(loop::Refused::token), 1U);
  EXPECT_EQ(status(get("/livez")), 200);
}

TEST_F(AdminApi, AnswersHostileNamesWithJson) {
  for (const std::string& odd : std::vector<std::string>{"<img src=x onerror=alert(1)>", "\\\"", "\\u0000\\u001b[31m",
                                                         "\xFF\xFE", "\\ud800", "'); DROP"}) {
    for (const char* path : {"/admin/v1/rules/mode", "/admin/v1/keys/reset", "/admin/v1/keys/ban"}) {
      const std::string answer =
          call(path, R"({"rule":")" + odd + R"(","mode":"off","for":"1h","user":")" + odd + "\"}");
      EXPECT_GE(status(answer), 400) << odd;
      EXPECT_TRUE(is_json(body(answer))) << answer;
      EXPECT_TRUE(field(answer, "Content-Type").starts_with("application/")) << answer;
    }
  }
}

}  // namespace
}  // namespace weir::server::admin
