// Tests forward-auth: the requests of each proxy, their answers, and answers that a leaky bucket delays.
//
// The bytes are those that the proxies were seen to send, or that their source code shows.
#include "server/http/http_routes.h"

#include "server/http/http_session_fixture.h"

namespace weir::server::http {
namespace {

class ForwardAuthSession : public HttpClient {
 protected:
  std::string ask(std::string_view fields = "", std::string_view target = "/auth", std::string_view method = "GET") {
    return send(request(method, target, "", fields));
  }
};

constexpr std::string_view kLogin = R"(
trusted_proxies: [192.0.2.1]
rules:
  - {name: login, match: {path: /api/login, method: POST}, per: ip, limit: 1/minute, algorithm: sliding_log}
)";
constexpr std::string_view kQueue = "rules:\n  - {name: slow, per: ip, limit: 1/s burst 5, algorithm: leaky_bucket}\n";

TEST_F(ForwardAuthSession, AnswersWithAnEmpty200OrAProblem) {
  use_rules(kLogin);
  const std::string asked = "X-Forwarded-Uri: /api/login\r\nX-Forwarded-Method: POST\r\n";
  EXPECT_EQ(ask(asked),
            "HTTP/1.1 200 OK\r\nDate: Sun, 15 Nov 2026 12:56:44 GMT\r\nContent-Length: 0\r\n"
            "X-RateLimit-Limit: 1\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1794747464\r\n"
            "RateLimit-Policy: \"login: 1/minute\";q=1;w=60\r\nRateLimit: \"login: 1/minute\";r=0;t=60\r\n"
            "X-Weir-Status: 200\r\n\r\n");
  const std::string denied = ask(asked);
  EXPECT_EQ(status(denied), 429);
  EXPECT_EQ(field(denied, "Retry-After"), "60");
  EXPECT_EQ(field(denied, "X-Weir-Status"), "429");
  EXPECT_TRUE(has(body(denied), "\"message\":\"Try again in 1 min\"")) << denied;
}

TEST_F(ForwardAuthSession, FindsTheRequestInWhatEachProxySends) {
  use_rules(kLogin);
  const struct {
    const char* proxy;
    std::string bytes;
  } rows[] = {
      {"Caddy",
       "GET /auth?next=1 HTTP/1.1\r\nHost: api.example.com\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n"
       "Accept-Encoding: gzip\r\nX-Forwarded-For: 198.51.100.1\r\nX-Forwarded-Host: api.example.com\r\n"
       "X-Forwarded-Method: POST\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Uri: /api/login?next=1\r\n\r\n"},
      {"Traefik",
       "GET /auth HTTP/1.1\r\nHost: weir:8080\r\nUser-Agent: curl/7.88.1\r\nX-Forwarded-For: 198.51.100.2\r\n"
       "X-Forwarded-Host: api.example.com\r\nX-Forwarded-Method: POST\r\nX-Forwarded-Port: 80\r\n"
       "X-Forwarded-Proto: http\r\nX-Forwarded-Server: edge\r\nX-Forwarded-Uri: /api/login\r\n"
       "X-Real-Ip: 198.51.100.2\r\nAccept-Encoding: gzip\r\n\r\n"},
      {"nginx",
       "GET /auth HTTP/1.1\r\nHost: weir\r\nX-Original-URI: /api/login\r\nX-Original-Method: POST\r\n"
       "X-Forwarded-For: 198.51.100.3\r\nContent-Type: application/json\r\n\r\n"},
      {"ingress-nginx",
       "GET /auth HTTP/1.1\r\nHost: weir\r\nX-Original-URL: https://api.example.com/api/login\r\n"
       "X-Original-Method: POST\r\nX-Forwarded-For: 198.51.100.4\r\n\r\n"},
      {"Envoy",
       "POST /auth/api/login?next=1 HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 0\r\n"
       "X-Forwarded-For: 198.51.100.5\r\n\r\n"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(status(send(row.bytes)), 200) << row.proxy;
    const std::string again = send_slowly(row.bytes);
    EXPECT_EQ(status(again), 429) << row.proxy << again;
    EXPECT_FALSE(progress.close) << row.proxy;
  }
}

TEST_F(ForwardAuthSession, AcceptsAnyMethodAndAnyPathBelow) {
  for (const char* method : {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"}) {
    for (const char* target : {"/auth", "/auth/", "/auth/a/b?c=d", "/auth?x"}) {
      const std::string answer = ask("", target, method);
      EXPECT_EQ(status(answer), 200) << method << target;
      EXPECT_EQ(body(answer), "");
      EXPECT_EQ(field(answer, "X-Weir-Status"), "200");
    }
  }
  EXPECT_EQ(status(ask("", "/authority")), 404);
}

TEST_F(ForwardAuthSession, DeniesWithTheStatusThatNginxUnderstands) {
  use_rules("answers: {deny_status: 403}\nrules:\n  - {name: none, per: ip, limit: 0/second}\n");
  const std::string denied = ask();
  EXPECT_EQ(status(denied), 403);
  EXPECT_EQ(field(denied, "X-Weir-Status"), "429");
  EXPECT_TRUE(has(denied, "\"status\":403")) << denied;
  EXPECT_TRUE(body(ask("", "/auth", "HEAD")).empty());
}

TEST_F(ForwardAuthSession, DoesNotWaitForABodyThatTheProxyDoesNotSend) {
  for (const char* method : {"GET", "HEAD"}) {
    connect();
    const std::string answer =
        send(std::string(method) + " /auth HTTP/1.0\r\nHost: x\r\nContent-Length: 5000000000\r\n\r\n");
    EXPECT_EQ(status(answer), 200) << method;
    EXPECT_EQ(field(answer, "Connection"), "close") << "what follows may be a body, or a smuggled request";
    EXPECT_TRUE(progress.close);
  }
  connect();
  const std::string smuggled = request("POST", "/v1/check", R"({"key":"u","limit":"1/s"})");
  const std::string answer = send(
      "GET /auth HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(smuggled.size()) + "\r\n\r\n" + smuggled);
  EXPECT_EQ(field(answer, "Connection"), "close");
  EXPECT_EQ(limiter.size(), 0u);
  connect();
  EXPECT_FALSE(has(ask("Content-Length: 0\r\n"), "Connection: close"));
  EXPECT_EQ(send("POST /auth HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab"), "") << "a POST has its body";
  EXPECT_EQ(status(send("c")), 200);
}

TEST_F(ForwardAuthSession, TakesTheClientsAddressFromTrustedProxiesOnly) {
  use_rules(kLogin);
  const std::string login = "X-Forwarded-Uri: /api/login\r\nX-Forwarded-Method: POST\r\n";
  connect("203.0.113.9");
  EXPECT_EQ(status(ask(login + "X-Forwarded-For: 198.51.100.1\r\n")), 200);
  EXPECT_EQ(status(ask(login + "X-Forwarded-For: 198.51.100.2\r\n")), 429)
      << "both requests count for the peer's address";
  connect("192.0.2.1");
  EXPECT_EQ(status(ask(login + "X-Forwarded-For: 198.51.100.1\r\n")), 200);
  EXPECT_EQ(status(ask(login + "X-Forwarded-For: 198.51.100.2\r\n")), 200);
  EXPECT_EQ(status(ask(login + "X-Forwarded-For: 198.51.100.2\r\n")), 429);
}

TEST_F(ForwardAuthSession, RefusesContradictoryFields) {
  use_rules(kLogin);
  const std::string answer = ask("X-Forwarded-Uri: /health\r\nX-Original-URI: /api/login\r\n");
  EXPECT_EQ(status(answer), 400);
  EXPECT_TRUE(has(answer, "X-Forwarded-Uri is '/health', but X-Original-URI is '/api/login'")) << answer;
  EXPECT_EQ(status(ask("X-Forwarded-Method: GET\r\nX-Forwarded-Method: POST\r\n")), 400);
  EXPECT_EQ(status(ask("X-Forwarded-Uri: /a\r\nX-Original-URI: /a\r\n")), 200);
}

TEST_F(ForwardAuthSession, CountsByKeysAndHeaders) {
  use_rules(R"(
rules:
  - {name: keys, per: api_key, limit: 1/minute}
  - {name: orgs, per: header:x-org, limit: 1/minute}
)");
  EXPECT_EQ(status(ask("X-API-Key: a\r\n")), 200);
  EXPECT_EQ(status(ask("X-API-Key: b\r\n")), 200);
  EXPECT_EQ(status(ask("x-api-key: a\r\n")), 429);
  EXPECT_EQ(status(ask("X-Org: acme\r\n")), 200);
  EXPECT_EQ(status(ask("X-Org: acme\r\n")), 429);
  EXPECT_EQ(status(ask()), 200);
}

TEST_F(ForwardAuthSession, DelaysAnAnswerUntilItsTimeInTheQueue) {
  use_rules(kQueue);
  EXPECT_EQ(status(ask()), 200);
  EXPECT_EQ(session->due(), kNever);
  EXPECT_EQ(send(request("GET", "/auth") + request("GET", "/livez")), "");
  ASSERT_TRUE(session->is_holding());
  EXPECT_EQ(service.holds, 1u);
  EXPECT_EQ(session->due(), clock->now() + Micros{1'000'000});
  session->wake(clock->now(), player->output);
  EXPECT_EQ(player->take(), "") << "too early";
  clock->advance(Micros{1'000'000});
  session->wake(clock->now(), player->output);
  const std::string answer = player->take();
  EXPECT_EQ(status(answer), 200);
  EXPECT_EQ(field(answer, "X-Weir-Status"), "200");
  EXPECT_EQ(field(answer, "Date"), "Sun, 15 Nov 2026 12:56:45 GMT");
  EXPECT_FALSE(session->is_holding());
  EXPECT_EQ(service.holds, 0u);
  EXPECT_TRUE(has(loop::kIsOnFibers ? answer : send(""), "ok\n"))
      << "then the next request of the pipeline is answered";
}

TEST_F(ForwardAuthSession, ClosesAfterADelayedAnswer) {
  use_rules(kQueue);
  ask();
  EXPECT_EQ(ask("Connection: close\r\n"), "");
  EXPECT_FALSE(progress.close);
  clock->advance(Micros{1'000'000});
  session->wake(clock->now(), player->output);
  EXPECT_EQ(field(player->take(), "Connection"), "close");
  EXPECT_EQ(send(""), "");
  EXPECT_TRUE(progress.close);
}

TEST_F(ForwardAuthSession, RefundsTheRequestOfAClientThatDisconnects) {
  use_rules(kQueue);
  ask();
  for (int i = 0; i < 3; ++i) {
    connect();
    EXPECT_EQ(send_slowly(request("GET", "/auth")), "");
    EXPECT_EQ(session->due(), clock->now() + Micros{1'000'000}) << "the requests before it have left the queue";
    disconnect();
    EXPECT_EQ(service.holds, 0u);
  }
}

TEST_F(ForwardAuthSession, RefundsByTheRulesThatCharged) {
  use_rules(kQueue);
  ask();
  EXPECT_EQ(ask(), "");
  gate->apply(parse_policy("rules:\n  - {name: other, per: ip, limit: 1/hour}\n", "test.yaml").value(), Force::yes)
      .value();
  disconnect();
  gate->apply(parse_policy(kQueue, "test.yaml").value(), Force::yes).value();
  EXPECT_EQ(ask(), "");
  EXPECT_EQ(session->due(), clock->now() + Micros{1'000'000}) << "the request of the disconnected client was refunded";
}

TEST_F(ForwardAuthSession, ReleasesDelayedAnswersWhenTheServerStops) {
  use_rules(kQueue);
  ask();
  EXPECT_EQ(ask(), "");
  session->drain(player->output);
  const std::string answer = player->take();
  EXPECT_EQ(status(answer), 200);
  EXPECT_EQ(field(answer, "Connection"), "close");
  EXPECT_FALSE(session->is_holding());
  EXPECT_EQ(service.holds, 0u);
  send("");
  EXPECT_TRUE(progress.close);
}

TEST_F(ForwardAuthSession, DeniesARequestThatWouldWaitTooLong) {
  use_rules("answers: {hold_max: 1500ms}\n" + std::string(kQueue));
  ask();
  EXPECT_EQ(ask(), "");
  const std::unique_ptr<loop::Session> first = std::move(session);
  connect();
  const std::string denied = ask();
  EXPECT_EQ(status(denied), 429);
  EXPECT_EQ(field(denied, "Retry-After"), "2");
  EXPECT_TRUE(has(denied, "\"violated-policies\":[\"slow: 1/s burst 5\"]")) << denied;
  EXPECT_EQ(field(ask(), "Retry-After"), "2") << "the denied request was refunded";
  EXPECT_EQ(gate->rule_counts()[0].allowed, 2U);
  EXPECT_EQ(gate->rule_counts()[0].denied, 2U);
  const auto top = gate->top_keys(TopBy::denied, "slow", 1);
  ASSERT_EQ(top.size(), 1U);
  EXPECT_EQ(top[0].hits, 4U);
  EXPECT_EQ(top[0].denied, 2U);
}

TEST_F(ForwardAuthSession, DelaysAMaximumOfAnswers) {
  use_rules(kQueue);
  ask();
  service.holds = loop::kHoldsMax;
  EXPECT_EQ(status(ask()), 429);
  EXPECT_EQ(service.holds, loop::kHoldsMax);
  service.holds = 0;
  EXPECT_EQ(ask(), "");
  EXPECT_EQ(session->due(), clock->now() + Micros{1'000'000});
}

TEST_F(ForwardAuthSession, AllowsWithoutRules) {
  EXPECT_EQ(status(ask()), 200);
  EXPECT_EQ(field(ask(), "X-Weir-Status"), "200");
}

}  // namespace
}  // namespace weir::server::http
