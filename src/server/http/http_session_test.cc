// Tests an HTTP connection without a socket: checks, routes, pipelines, bounds, garbage.
#include "server/http/http_session.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "server/http/http_session_fixture.h"

namespace weir::server::http {
namespace {

class HttpSessionTest : public HttpClient {
 protected:
  HttpSessionTest() { session = make_http_session(service); }

  // All rounds of a loop for this input.
  loop::Progress consume(std::string_view input, std::string& output) {
    loop::Turn turn(limiter);
    loop::Progress all;
    while (true) {
      const loop::Progress round = session->consume(input.substr(all.consumed), turn, output);
      all.consumed += round.consumed;
      all.answered += round.answered;
      all.phase = round.phase;
      all.full = round.full;
      all.close = round.close;
      if (!round.asked) return all;
      turn.decide();
      all.close = session->settle(turn, output);
      turn.clear();
      if (all.close) return all;
    }
  }
  std::string say(std::string_view bytes) {
    std::string output;
    progress = consume(bytes, output);
    return output;
  }
  std::string get(std::string_view path) { return say(request("GET", path)); }
  static std::string check(std::string_view body, std::string_view fields = "") {
    return request("POST", "/v1/check", body, fields);
  }
  static std::string status_line(std::string_view answer) { return std::string(answer.substr(0, answer.find("\r\n"))); }
};

constexpr std::string_view kOnce = R"({"key":"u","limit":"1/minute","algorithm":"sliding_log"})";

TEST_F(HttpSessionTest, AllowsThenDenies) {
  const std::string first = say(check(kOnce));
  EXPECT_EQ(first,
            "HTTP/1.1 200 OK\r\nDate: Sun, 15 Nov 2026 12:56:44 GMT\r\nContent-Type: application/json\r\n"
            "Content-Length: 84\r\nX-RateLimit-Limit: 1\r\nX-RateLimit-Remaining: 0\r\n"
            "X-RateLimit-Reset: 1794747464\r\nRateLimit-Policy: \"default\";q=1;w=60\r\n"
            "RateLimit: \"default\";r=0;t=60\r\n\r\n"
            "{\"allowed\":true,\"limit\":1,\"remaining\":0,\"reset_after\":60,\"retry_after\":0,\"delay\":0}\n");
  clock->advance(Micros{48'000'001});
  const std::string second = say(check(kOnce));
  EXPECT_EQ(status_line(second), "HTTP/1.1 429 Too Many Requests");
  EXPECT_TRUE(has(second, "\r\nRetry-After: 12\r\n")) << second;
  EXPECT_TRUE(has(second, "\"message\":\"Try again in 12 s\"")) << second;
  EXPECT_TRUE(has(second, "\"retry_after\":11.999999")) << second;
  EXPECT_FALSE(progress.close);
}

TEST_F(HttpSessionTest, CompilesALimitOnce) {
  const std::string berlin = check(R"({"key":"u","limit":"2/calendar_day Europe/Berlin"})");
  EXPECT_EQ(status_line(say(berlin)), "HTTP/1.1 200 OK");
  EXPECT_EQ(status_line(say(berlin)), "HTTP/1.1 200 OK");
  EXPECT_EQ(status_line(say(berlin)), "HTTP/1.1 429 Too Many Requests");
  say(check(kOnce));
  EXPECT_TRUE(loop::kIsOnFibers || service.home.limits.size() == 2u);
  for (int i = 0; i < 2; ++i) {
    const std::string unknown = say(check(R"({"key":"u","limit":"2/calendar_day Europe/Berln"})"));
    EXPECT_TRUE(has(unknown, "Europe/Berlin")) << unknown;
  }
  EXPECT_TRUE(loop::kIsOnFibers || service.home.limits.size() == 3u);
  for (std::size_t i = 0; i < loop::LimitCache::kSlots + 10; ++i) {
    say(check(R"({"key":"u","limit":")" + std::to_string(i) + R"(/calendar_day"})"));
    ASSERT_LE(service.home.limits.size(), loop::LimitCache::kSlots);
  }
}

TEST_F(HttpSessionTest, DoesNotCacheThatAZoneWasUnreadable) {
  const std::string berlin = check(R"({"key":"u","limit":"2/calendar_day Europe/Berlin"})");
  const char* set = std::getenv("TZDIR");
  const std::string before = set != nullptr ? set : "";
  setenv("TZDIR", "/nonexistent", 1);
  EXPECT_EQ(status_line(say(berlin)), "HTTP/1.1 503 Service Unavailable");
  EXPECT_EQ(service.home.limits.size(), 0u);
  if (before.empty()) {
    unsetenv("TZDIR");
  } else {
    setenv("TZDIR", before.c_str(), 1);
  }
  EXPECT_EQ(status_line(say(berlin)), "HTTP/1.1 200 OK");
}

TEST_F(HttpSessionTest, ReadsARequestHoweverItIsSplit) {
  const std::string bytes = check(R"({"key":"u","limit":"1000/minute","cost":0})", "Expect: nothing\r\n");
  const std::string whole = say(bytes);
  ASSERT_EQ(status_line(whole), "HTTP/1.1 200 OK");
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    std::string output;
    const loop::Progress first = consume(std::string_view(bytes).substr(0, cut), output);
    EXPECT_EQ(output, "");
    EXPECT_NE(first.phase, loop::Phase::idle) << cut;
    const loop::Progress second = consume(std::string_view(bytes).substr(first.consumed), output);
    ASSERT_EQ(output, whole) << "cut at " << cut;
    ASSERT_EQ(first.consumed + second.consumed, bytes.size());
    EXPECT_EQ(second.phase, loop::Phase::idle);
  }
  std::string output, pending;
  for (const char c : bytes) {
    pending.push_back(c);
    pending.erase(0, consume(pending, output).consumed);
  }
  EXPECT_EQ(output, whole);
}

TEST_F(HttpSessionTest, AnswersAPipelineInOrder) {
  const std::string answers = say(check(kOnce) + "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" + check(kOnce) + "GET /");
  const auto first = answers.find("HTTP/1.1 200 OK"), live = answers.find("ok\n"),
             second = answers.find("HTTP/1.1 429");
  EXPECT_LT(first, live);
  EXPECT_LT(live, second);
  EXPECT_NE(second, std::string::npos);
  EXPECT_EQ(progress.answered, 3u);
  EXPECT_EQ(progress.phase, loop::Phase::header);
}

TEST_F(HttpSessionTest, ReadsChunkedBodies) {
  const std::string answer =
      say("POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
          "8\r\n{\"key\":\"\r\n19\r\nu\",\"limit\":\"1/min\",\"cost\"\r\n3\r\n:1}\r\n0\r\n\r\n");
  EXPECT_EQ(status_line(answer), "HTTP/1.1 200 OK") << answer;
}

TEST_F(HttpSessionTest, SkipsEmptyLinesBeforeARequest) {
  const std::string live = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(status_line(say("\r\n\r\n" + live)), "HTTP/1.1 200 OK");
  EXPECT_EQ(count(say(check(kOnce) + "\r\n" + live), "HTTP/1.1 200 OK"), 2u);
  EXPECT_EQ(say("\r\n"), "");
  EXPECT_EQ(progress.consumed, 2u);
  EXPECT_EQ(progress.phase, loop::Phase::idle);
  EXPECT_EQ(say("\r"), "");
  EXPECT_EQ(status_line(say((loop::kIsOnFibers ? "\n" : "\r\n") + live)), "HTTP/1.1 200 OK");
}

TEST_F(HttpSessionTest, AcceptsAUrlAsTarget) {
  EXPECT_TRUE(has(get("http://x/livez"), "\r\n\r\nok\n"));
  EXPECT_TRUE(has(get("HTTP://x:8080/livez?a=/"), "\r\n\r\nok\n"));
  EXPECT_TRUE(has(get("http://x"), "/v1/check"));
  EXPECT_TRUE(has(get("http://x?a"), "/v1/check"));
  EXPECT_EQ(status_line(get("//livez")), "HTTP/1.1 404 Not Found");
}

TEST_F(HttpSessionTest, ServesItsRoutes) {
  EXPECT_TRUE(has(get("/"), "/v1/check"));
  EXPECT_TRUE(has(get("/livez"), "\r\n\r\nok\n"));
  EXPECT_TRUE(has(get("/livez?probe=1"), "\r\n\r\nok\n"));
  const std::string head = say("HEAD /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(has(head, "Content-Length: 3\r\n"));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  const std::string missing = get("/v1/chekc");
  EXPECT_EQ(status_line(missing), "HTTP/1.1 404 Not Found");
  EXPECT_TRUE(has(missing, "application/problem+json"));
  EXPECT_TRUE(has(missing, "did you mean /v1/check?")) << missing;
  EXPECT_EQ(status_line(get("/favicon.ico")), "HTTP/1.1 404 Not Found");
}

TEST_F(HttpSessionTest, ListsTheAllowedMethods) {
  const std::string wrong = get("/v1/check");
  EXPECT_EQ(status_line(wrong), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_TRUE(has(wrong, "\r\nAllow: POST\r\n"));
  EXPECT_TRUE(has(say("DELETE / HTTP/1.1\r\nHost: x\r\n\r\n"), "\r\nAllow: GET, HEAD\r\n"));
}

TEST_F(HttpSessionTest, AnswersAnInvalidCheckAndStaysOpen) {
  const std::string answer = say(check(R"({"key":"u","limit":"100/minuet"})"));
  EXPECT_EQ(status_line(answer), "HTTP/1.1 400 Bad Request");
  EXPECT_TRUE(has(answer, "application/problem+json"));
  EXPECT_TRUE(has(answer, "100/minute")) << answer;
  EXPECT_FALSE(progress.close);
  const std::string zone = say(check(R"({"key":"u","limit":"1/calendar_day Europe/Berlni"})"));
  EXPECT_EQ(status_line(zone), "HTTP/1.1 400 Bad Request");
  EXPECT_TRUE(has(zone, R"(\"limit\": column 16: unknown time zone 'Europe/Berlni')")) << zone;
}

TEST_F(HttpSessionTest, ReportsThatTheTableIsFull) {
  std::string last;
  for (int i = 0; i < 3000 && !last.starts_with("HTTP/1.1 429"); ++i) {  // permits in flight are never evicted
    std::string request = check("{\"key\":\"k" + std::to_string(i) + "\",\"limit\":\"1 concurrent\",\"id\":\"a\"}");
    last = say(request.replace(request.find("check"), 5, "acquire"));
  }
  EXPECT_EQ(status_line(last), "HTTP/1.1 429 Too Many Requests");
  EXPECT_TRUE(has(last, "Retry-After: 1\r\n"));
  EXPECT_TRUE(has(last, R"("decided_by":"no_room")")) << last;
  EXPECT_TRUE(has(last, R"("title":"Out of capacity")")) << last;
}

TEST_F(HttpSessionTest, SendsContinueOnce) {
  const std::string bytes = check(kOnce, "Expect: 100-continue\r\n");
  const std::size_t head = bytes.find("\r\n\r\n") + 4;
  EXPECT_EQ(say(bytes.substr(0, head)), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(progress.phase, loop::Phase::body);
  EXPECT_EQ(say(bytes.substr(head, 5)), "");
  EXPECT_EQ(status_line(say(bytes.substr(head + 5))), "HTTP/1.1 200 OK");
  EXPECT_EQ(count(say(bytes), "HTTP/1.1"), 1u);  // the body is complete: no 100 Continue
}

TEST_F(HttpSessionTest, LimitsTheSizeOfHeaderAndBody) {
  std::string answer =
      say("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(protocol::kHttpHeaderMax, 'x') + "\r\n\r\n");
  EXPECT_EQ(status_line(answer), "HTTP/1.1 431 Request Header Fields Too Large") << answer;
  EXPECT_TRUE(progress.close);
  session = make_http_session(service);
  answer = say("POST /v1/check HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1048577\r\n\r\n");
  EXPECT_EQ(status_line(answer), "HTTP/1.1 413 Payload Too Large") << answer;
  EXPECT_TRUE(progress.close);
  session = make_http_session(service);
  answer = say("POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n" +
               std::string(0x200000, 'x'));
  EXPECT_EQ(status_line(answer), "HTTP/1.1 413 Payload Too Large");
}

TEST_F(HttpSessionTest, LimitsAHeaderThatArrivesLineByLine) {
  std::string pending, output;
  std::size_t sent = 0;
  for (int line = 0; output.empty() && line < 10'000; ++line) {
    const std::string next = line == 0 ? "GET / HTTP/1.1\r\n" : "X-Field: value\r\n";
    sent += next.size();
    pending += next;
    progress = consume(pending, output);
    pending.erase(0, progress.consumed);
  }
  EXPECT_EQ(status_line(output), "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_LT(sent, protocol::kHttpHeaderMax + 100);
}

TEST_F(HttpSessionTest, LimitsChunkExtensionsAndTrailers) {
  const std::string head = "POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* begun : {"1;a=", "0\r\nX-T: ", "0\r\nX-T: y\r\nX-U: "}) {
    session = make_http_session(service);
    std::string pending = head + begun, output;
    std::size_t most = 0;
    for (int piece = 0; output.empty() && piece < 1000; ++piece) {
      progress = consume(pending, output);
      pending.erase(0, progress.consumed);
      most = std::max(most, pending.size());
      pending.append(1000, 'y');
    }
    EXPECT_EQ(status_line(output), "HTTP/1.1 431 Request Header Fields Too Large") << begun;
    EXPECT_TRUE(progress.close);
    EXPECT_LT(most, protocol::kHttpHeaderMax + 1100) << begun;
  }
}

TEST_F(HttpSessionTest, AcceptsExtensionsAndTrailersWithinTheLimit) {
  const std::string bytes =
      "POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n1b;a=" + std::string(4000, 'y') +
      "\r\n{\"key\":\"u\",\"limit\":\"9/day\"}\r\n0\r\nX-T: " + std::string(4000, 'y') + "\r\n\r\n";
  EXPECT_EQ(status_line(say(bytes)), "HTTP/1.1 200 OK");
  std::string pending, output;
  for (const char c : bytes) {
    pending.push_back(c);
    pending.erase(0, consume(pending, output).consumed);
  }
  EXPECT_EQ(status_line(output), "HTTP/1.1 200 OK") << output;
}

TEST_F(HttpSessionTest, ClosesOnRequest) {
  EXPECT_TRUE(has(say("GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), "\r\nConnection: close\r\n"));
  EXPECT_TRUE(progress.close);
  EXPECT_TRUE(has(say("GET /livez HTTP/1.0\r\n\r\n"), "\r\nConnection: close\r\n"));
  EXPECT_TRUE(progress.close);
  EXPECT_TRUE(has(say("GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), "\r\nConnection: keep-alive\r\n"));
  EXPECT_FALSE(progress.close);
  std::string nothing;
  session->drain(nothing);
  EXPECT_EQ(nothing, "");
  EXPECT_TRUE(has(get("/livez"), "\r\nConnection: close\r\n"));
  EXPECT_TRUE(progress.close);
}

TEST_F(HttpSessionTest, TellsClientsOfOtherProtocolsWhatThisPortSpeaks) {
  using Stranger = std::pair<std::string, const char*>;
  for (const auto& [bytes, answered] :
       {Stranger{std::string("\x16\x03\x01\x02\x00\x01", 6), "TLS"}, Stranger{"*1\r\n$4\r\nPING\r\n", "RESP"},
        Stranger{"PING\r\n", "RESP"}, Stranger{"HELLO 3\r\n", "RESP"},
        Stranger{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2"}, Stranger{std::string("\0\0\0", 3), "not HTTP"},
        Stranger{"GET\r\n\r\n", "not HTTP"}, Stranger{"GET / HTTP/9.9\r\n\r\n", "not HTTP"}}) {
    session = make_http_session(service);
    const std::string answer = say(bytes);
    EXPECT_EQ(status_line(answer), "HTTP/1.1 400 Bad Request") << bytes;
    EXPECT_TRUE(has(answer, answered)) << answer;
    EXPECT_TRUE(progress.close);
  }
}

TEST_F(HttpSessionTest, RefusesRequestsThatTwoServersCouldReadDifferently) {
  for (const char* fields :
       {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: -1\r\n", "Content-Length: 1x\r\n"}) {
    session = make_http_session(service);
    EXPECT_EQ(status_line(say("POST /v1/check HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n")),
              "HTTP/1.1 400 Bad Request")
        << fields;
    EXPECT_TRUE(progress.close);
  }
  session = make_http_session(service);
  EXPECT_TRUE(has(say("GET / HTTP/1.1\r\n\r\n"), "Host header"));
  EXPECT_TRUE(progress.close);
}

TEST_F(HttpSessionTest, AcceptsNoTransferCodingButChunked) {
  using Row = std::pair<const char*, const char*>;
  const char* const bad = "HTTP/1.1 400 Bad Request";
  for (const auto& [fields, answered] :
       {Row{"Transfer-Encoding: identity\r\n", bad}, Row{"Transfer-Encoding: gzip\r\n", bad},
        Row{"Transfer-Encoding: xchunked\r\n", bad}, Row{"Transfer-Encoding: chunked, gzip\r\n", bad},
        Row{"Transfer-Encoding: chunked, chunked\r\n", bad}, Row{"Transfer-Encoding: \r\n", bad},
        Row{"Transfer-Encoding: chunked;x=1\r\n", bad},
        Row{"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", bad},
        Row{"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", bad},
        Row{"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", bad},
        Row{"Transfer-Encoding: identity\r\nContent-Length: 3\r\n", bad},
        Row{"Content-Length: 3\r\nTransfer-Encoding: identity\r\n", bad},
        Row{"Transfer-Encoding: gzip, chunked\r\n", "HTTP/1.1 501 Not Implemented"}}) {
    session = make_http_session(service);
    const std::string answer = say("POST /livez HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n" + std::string(fields) +
                                   "\r\n0\r\n\r\n" + check(kOnce));
    EXPECT_EQ(status_line(answer), answered) << fields << answer;
    EXPECT_EQ(count(answer, "HTTP/1.1 "), 1u) << "what follows may be a smuggled request: " << answer;
    EXPECT_TRUE(progress.close) << fields;
  }
  session = make_http_session(service);
  const std::string older = say("POST /livez HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(status_line(older), bad);
  EXPECT_TRUE(progress.close);
}

TEST_F(HttpSessionTest, PausesWhenItsOutputIsFull) {
  std::string bytes;
  for (int i = 0; i < 4000; ++i) bytes += "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  std::string output;
  std::size_t answered = 0, consumed = 0;
  do {
    output.clear();
    progress = consume(std::string_view(bytes).substr(consumed), output);
    EXPECT_LT(output.size(), loop::kOutputMax + 2000);
    answered += progress.answered;
    consumed += progress.consumed;
  } while (progress.full);
  EXPECT_EQ(answered, 4000u);
}

TEST_F(HttpSessionTest, WritesWhyItGivesUp) {
  const auto last_words = [this](loop::GiveUp why) {
    std::string output;
    session->give_up(why, output);
    return output;
  };
  say("GET / HT");
  EXPECT_EQ(status_line(last_words(loop::GiveUp::too_slow)), "HTTP/1.1 408 Request Timeout");
  for (const loop::GiveUp why : {loop::GiveUp::no_memory, loop::GiveUp::too_crowded}) {
    const std::string answer = last_words(why);
    EXPECT_EQ(status_line(answer), "HTTP/1.1 503 Service Unavailable");
    for (const char* part :
         {"application/problem+json", "Retry-After: 1\r\n", "Connection: close\r\n", "retry shortly"}) {
      EXPECT_TRUE(has(answer, part)) << answer;
    }
  }
}

TEST_F(HttpSessionTest, RefusesAHeaderWithTooManyFields) {
  std::string fields;
  for (std::size_t i = 0; i < protocol::kHttpFieldsMax + 1; ++i) fields += "a:\r\n";
  const std::string answer = say("GET /livez HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
  EXPECT_TRUE(status_line(answer).starts_with("HTTP/1.1 431")) << answer;
  EXPECT_TRUE(progress.close);
}

TEST_F(HttpSessionTest, ReportsHowMuchOfAnUnfinishedBodyItHolds) {
  EXPECT_LT(session->held(), 100u);
  say("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{");
  EXPECT_LT(session->held(), 2'000u) << "an announced body takes no memory before it arrives";
  session = make_http_session(service);
  const std::string bytes = check(std::string(500'000, 'x'));
  say(bytes.substr(0, 400'000));
  EXPECT_GE(session->held(), 399'000u);
  std::string last_words;
  session->give_up(loop::GiveUp::no_memory, last_words);
  EXPECT_LT(session->held(), 100u);
  session = make_http_session(service);
  say(bytes);
  EXPECT_LT(session->held(), 100u);
}

TEST_F(HttpSessionTest, ClosesConnectionsWhileTheProcessLeaves) {
  std::atomic<bool> stopping{false}, leaving{false};
  service.stopping = &stopping;
  service.leaving = &leaving;
  EXPECT_FALSE(has(get("/readyz"), "Connection: close"));
  leaving = true;  // a successor serves
  EXPECT_EQ(status_line(get("/readyz")), "HTTP/1.1 200 OK");
  EXPECT_TRUE(progress.close);
  session = make_http_session(service);
  stopping = true;
  const std::string answer = get("/readyz");
  EXPECT_EQ(status_line(answer), "HTTP/1.1 503 Service Unavailable");
  EXPECT_TRUE(has(answer, "Connection: close"));
  session = make_http_session(service);
  EXPECT_EQ(status_line(say(check(kOnce))), "HTTP/1.1 200 OK");
  EXPECT_TRUE(progress.close);
}

}  // namespace
}  // namespace weir::server::http
