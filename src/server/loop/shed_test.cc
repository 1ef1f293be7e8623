// Tests a server's answers under overload, on each port: sessions get a turn that sheds.
#include "server/loop/shed.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/rls.h"
#include "server/http/http_client.h"
#include "server/resp/resp_session_fixture.h"

namespace weir {
namespace {

class ShedHttp : public HttpClient {
 protected:
  ShedHttp() { service.bounds.counts = &counts; }

  std::string hear(OnOverload what, std::string_view bytes) {
    service.bounds.on_overload = what;
    connect();
    Turn turn(limiter);
    turn.set_shedding(true);
    std::string output;
    progress = session->consume(bytes, turn, output);
    return output;
  }
  std::uint64_t shed() const { return counts.refused[static_cast<std::size_t>(Refused::overload)].get(); }

  DoorCounts counts;
  const std::string check = request("POST", "/v1/check", R"({"key":"u","limit":"1/day"})");
};

TEST_F(ShedHttp, DeniesACheckWithoutCharging) {
  const std::string answer = hear(OnOverload::deny, check);
  EXPECT_EQ(status(answer), 503);
  EXPECT_EQ(field(answer, "Retry-After"), "1");
  EXPECT_EQ(field(answer, "X-Weir-Overload"), "denied");
  EXPECT_EQ(service.route, kIsOnFibers ? "" : "/v1/check") << "by which it is traced";
  EXPECT_TRUE(has(body(answer), "\"title\":\"Overloaded\"")) << answer;
  EXPECT_FALSE(progress.asked);
  EXPECT_EQ(shed(), 1U);
  connect();
  EXPECT_EQ(status(send(check)), 200) << "the first that is charged";
}

TEST_F(ShedHttp, AllowsACheckIfThatIsWanted) {
  const std::string answer = hear(OnOverload::allow, check);
  EXPECT_EQ(status(answer), 200);
  EXPECT_EQ(field(answer, "X-Weir-Overload"), "allowed");
  EXPECT_EQ(body(answer), "{\"allowed\":true,\"reason\":\"overload\",\"limits\":[]}\n");
}

TEST_F(ShedHttp, DeniesForwardAuthAsThePolicyDoes) {
  EXPECT_EQ(status(hear(OnOverload::deny, request("GET", "/auth"))), 429);
  use_rules("answers: {deny_status: 403}\nrules:\n  - {name: all, per: ip, limit: 1/s}\n");
  const std::string denied = hear(OnOverload::deny, request("GET", "/auth"));
  EXPECT_EQ(status(denied), 403);
  EXPECT_EQ(field(denied, "X-Weir-Status"), "429");
  const std::string allowed = hear(OnOverload::allow, request("GET", "/auth"));
  EXPECT_EQ(status(allowed), 200);
  EXPECT_EQ(body(allowed), "");
  EXPECT_EQ(field(allowed, "X-Weir-Status"), "200");
}

TEST_F(ShedHttp, LetsNobodyTakeUnseenWhatMustBeGivenBack) {
  for (const OnOverload what : {OnOverload::deny, OnOverload::allow}) {
    for (const std::string_view path : {"/v1/checks", "/v1/reserve", "/v1/acquire"}) {
      EXPECT_EQ(status(hear(what, request("POST", path, "{}"))), 503) << path;
    }
  }
}

TEST_F(ShedHttp, AnswersEnvoysJsonInItsOwnWords) {
  const std::string denied = hear(OnOverload::deny, request("POST", "/json", "{}"));
  EXPECT_EQ(status(denied), 429);
  EXPECT_TRUE(has(body(denied), "OVER_LIMIT")) << denied;
  EXPECT_EQ(status(hear(OnOverload::allow, request("POST", "/json", "{}"))), 200);
}

TEST_F(ShedHttp, ShedsNothingThatIsNoDecision) {
  EXPECT_EQ(status(hear(OnOverload::deny, request("GET", "/livez"))), 200);
  EXPECT_EQ(status(hear(OnOverload::deny, request("GET", "/v1/check"))), 405);
  EXPECT_EQ(status(hear(OnOverload::deny, request("DELETE", "/v1/keys?key=u"))), 200);
  EXPECT_EQ(status(hear(OnOverload::deny, request("POST", "/v1/release", "{}"))), 400);
  service.face = HttpFace::admin;
  EXPECT_EQ(status(hear(OnOverload::deny, check)), 404);
  EXPECT_EQ(shed(), 0U);
}

class ShedResp : public RespSessionTest {
 protected:
  std::string hear(OnOverload what, std::string_view bytes) {
    service.bounds.on_overload = what;
    service.bounds.counts = &counts;
    Turn turn(limiter);
    turn.set_shedding(true);
    std::string output;
    progress = session->consume(bytes, turn, output);
    return output;
  }

  DoorCounts counts;
};

TEST_F(ShedResp, AnswersInTheShapeOfEachCommand) {
  EXPECT_EQ(flat(hear(OnOverload::deny, "CL.THROTTLE u 15 30 60\r\n")), "1 0 0 1 1 ");
  EXPECT_EQ(flat(hear(OnOverload::deny, "GCRA u 15 30 60\r\n")), "1 0 0 1 1 ");
  EXPECT_EQ(flat(hear(OnOverload::deny, "THROTTLE u 15 30 60\r\n")), "0 0 0 1 1 ");
  EXPECT_EQ(flat(hear(OnOverload::allow, "CL.THROTTLE u 15 30 60\r\n")), "0 0 0 -1 0 ");
  EXPECT_EQ(flat(hear(OnOverload::allow, "THROTTLE u 15 30 60\r\n")), "1 0 0 0 0 ");
  EXPECT_EQ(counts.refused[static_cast<std::size_t>(Refused::overload)].get(), 5U);
  EXPECT_FALSE(progress.asked);
}

TEST_F(ShedResp, SaysWhyWhereThereIsRoomForIt) {
  for (const std::string_view command : {"WEIR.CHECK user 42\r\n", "WEIR.LIMIT u 5/minute\r\n"}) {
    const std::string denied = flat(hear(OnOverload::deny, command));
    EXPECT_TRUE(denied.starts_with("allowed 0 reason overload ")) << denied;
    EXPECT_TRUE(denied.find("retry_after_ms 1000 ") != denied.npos) << denied;
    const std::string allowed = flat(hear(OnOverload::allow, command));
    EXPECT_TRUE(allowed.starts_with("allowed 1 reason overload ")) << allowed;
  }
}

TEST_F(ShedResp, AnswersTheRestAsEver) {
  EXPECT_EQ(hear(OnOverload::deny, "PING\r\nDEL u\r\n"), "+PONG\r\n:0\r\n");
  EXPECT_EQ(hear(OnOverload::deny, "CL.THROTTLE u 1 1 60\r\nPING\r\n"),
            "*5\r\n:1\r\n:0\r\n:0\r\n:1\r\n:1\r\n+PONG\r\n");
}

TEST(ShedRls, IsAFramedAnswerThatSaysSo) {
  std::string denied, allowed;
  append_shed_rls(OnOverload::deny, denied);
  append_shed_rls(OnOverload::allow, allowed);
  EXPECT_EQ(denied.substr(5, 2), "\x08\x02") << "overall_code: OVER_LIMIT";
  EXPECT_EQ(allowed.substr(5, 2), "\x08\x01") << "overall_code: OK";
  EXPECT_NE(denied.find("x-weir-overload"), denied.npos);
  EXPECT_NE(denied.find("retry-after"), denied.npos);
  EXPECT_NE(allowed.find("x-weir-overload"), allowed.npos);
}

}  // namespace
}  // namespace weir
