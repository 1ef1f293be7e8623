// Tests a server's answers under overload, on each port: sessions get a turn that sheds.
//
// One fixture for each port. On fibers, the same tests run once more.
#include "protocol/rls.h"
#include "server/admin/admin_service.h"
#include "server/grpc/grpc_methods.h"
#include "server/http/http_session_fixture.h"
#include "server/resp/resp_session_fixture.h"

namespace weir::server {
namespace {

// A session whose requests come in a turn that sheds.
template <class Fixture>
class Shed : public Fixture {
 protected:
  Shed() { this->service.bounds.counts = &counts; }

  std::string hear(loop::OnOverload what, std::string_view bytes) {
    this->service.bounds.on_overload = what;
    loop::Turn turn(this->limiter);
    turn.set_shedding(true);
    std::string output;
    this->progress = this->session->consume(bytes, turn, output);
    return output;
  }

  loop::ListenerCounts counts;
};

class ShedHttp : public Shed<http::HttpClient> {
 protected:
  std::string hear(loop::OnOverload what, std::string_view bytes) {
    connect();
    return Shed::hear(what, bytes);
  }
  std::uint64_t shed() const { return counts.count(loop::Refused::overload); }

  const std::string check = request("POST", "/v1/check", R"({"key":"u","limit":"1/day"})");
};

TEST_F(ShedHttp, DeniesACheckWithoutCharging) {
  const std::string answer = hear(loop::OnOverload::deny, check);
  EXPECT_EQ(status(answer), 503);
  EXPECT_EQ(field(answer, "Retry-After"), "1");
  EXPECT_EQ(field(answer, "X-Weir-Overload"), "denied");
  EXPECT_EQ(service.home.route, loop::kIsOnFibers ? "" : "/v1/check") << "the trace has this route";
  EXPECT_TRUE(has(body(answer), "\"title\":\"Overloaded\"")) << answer;
  EXPECT_FALSE(progress.asked);
  EXPECT_EQ(shed(), 1U);
  connect();
  EXPECT_EQ(status(send(check)), 200) << "the first check that is charged";
}

TEST_F(ShedHttp, AllowsACheckIfTheOperatorWantsThat) {
  const std::string answer = hear(loop::OnOverload::allow, check);
  EXPECT_EQ(status(answer), 200);
  EXPECT_EQ(field(answer, "X-Weir-Overload"), "allowed");
  EXPECT_EQ(body(answer), "{\"allowed\":true,\"reason\":\"overload\",\"limits\":[]}\n");
}

TEST_F(ShedHttp, DeniesForwardAuthWithTheStatusOfThePolicy) {
  EXPECT_EQ(status(hear(loop::OnOverload::deny, request("GET", "/auth"))), 429);
  use_rules("answers: {deny_status: 403}\nrules:\n  - {name: all, per: ip, limit: 1/s}\n");
  const std::string denied = hear(loop::OnOverload::deny, request("GET", "/auth"));
  EXPECT_EQ(status(denied), 403);
  EXPECT_EQ(field(denied, "X-Weir-Status"), "429");
  const std::string allowed = hear(loop::OnOverload::allow, request("GET", "/auth"));
  EXPECT_EQ(status(allowed), 200);
  EXPECT_EQ(body(allowed), "");
  EXPECT_EQ(field(allowed, "X-Weir-Status"), "200");
}

TEST_F(ShedHttp, NeverAllowsReservationsPermitsOrBatches) {
  for (const loop::OnOverload what : {loop::OnOverload::deny, loop::OnOverload::allow}) {
    for (const std::string_view path : {"/v1/checks", "/v1/reserve", "/v1/acquire"}) {
      EXPECT_EQ(status(hear(what, request("POST", path, "{}"))), 503) << path;
    }
  }
}

TEST_F(ShedHttp, AnswersEnvoysJsonInItsFormat) {
  const std::string denied = hear(loop::OnOverload::deny, request("POST", "/json", "{}"));
  EXPECT_EQ(status(denied), 429);
  EXPECT_TRUE(has(body(denied), "OVER_LIMIT")) << denied;
  EXPECT_EQ(status(hear(loop::OnOverload::allow, request("POST", "/json", "{}"))), 200);
}

TEST_F(ShedHttp, ShedsDecisionsOnly) {
  EXPECT_EQ(status(hear(loop::OnOverload::deny, request("GET", "/livez"))), 200);
  EXPECT_EQ(status(hear(loop::OnOverload::deny, request("GET", "/v1/check"))), 405);
  EXPECT_EQ(status(hear(loop::OnOverload::deny, request("DELETE", "/v1/keys?key=u"))), 200);
  EXPECT_EQ(status(hear(loop::OnOverload::deny, request("POST", "/v1/release", "{}"))), 400);
  admin::AdminService admin;
  service.api = &admin;
  EXPECT_EQ(status(hear(loop::OnOverload::deny, check)), 404);
  EXPECT_EQ(shed(), 0U);
}

using ShedResp = Shed<resp::RespSessionTest>;

TEST_F(ShedResp, AnswersInTheFormatOfEachCommand) {
  EXPECT_EQ(flat(hear(loop::OnOverload::deny, "CL.THROTTLE u 15 30 60\r\n")), "1 0 0 1 1 ");
  EXPECT_EQ(flat(hear(loop::OnOverload::deny, "GCRA u 15 30 60\r\n")), "1 0 0 1 1 ");
  EXPECT_EQ(flat(hear(loop::OnOverload::deny, "THROTTLE u 15 30 60\r\n")), "0 0 0 1 1 ");
  EXPECT_EQ(flat(hear(loop::OnOverload::allow, "CL.THROTTLE u 15 30 60\r\n")), "0 0 0 -1 0 ");
  EXPECT_EQ(flat(hear(loop::OnOverload::allow, "THROTTLE u 15 30 60\r\n")), "1 0 0 0 0 ");
  EXPECT_EQ(counts.count(loop::Refused::overload), 5U);
  EXPECT_FALSE(progress.asked);
}

TEST_F(ShedResp, GivesTheReasonWhereTheFormatHasOne) {
  for (const std::string_view command : {"WEIR.CHECK user 42\r\n", "WEIR.LIMIT u 5/minute\r\n"}) {
    const std::string denied = flat(hear(loop::OnOverload::deny, command));
    EXPECT_TRUE(denied.starts_with("allowed 0 reason overload ")) << denied;
    EXPECT_TRUE(denied.find("retry_after_ms 1000 ") != denied.npos) << denied;
    const std::string allowed = flat(hear(loop::OnOverload::allow, command));
    EXPECT_TRUE(allowed.starts_with("allowed 1 reason overload ")) << allowed;
  }
}

TEST_F(ShedResp, AnswersOtherCommandsAsUsual) {
  EXPECT_EQ(hear(loop::OnOverload::deny, "PING\r\nDEL u\r\n"), "+PONG\r\n:0\r\n");
  EXPECT_EQ(hear(loop::OnOverload::deny, "CL.THROTTLE u 1 1 60\r\nPING\r\n"),
            "*5\r\n:1\r\n:0\r\n:0\r\n:1\r\n:1\r\n+PONG\r\n");
}

TEST(ShedRls, IsAFramedAnswerWithAnOverloadHeader) {
  std::string denied, allowed;
  grpc::append_overload_answer(loop::OnOverload::deny, denied);
  grpc::append_overload_answer(loop::OnOverload::allow, allowed);
  EXPECT_EQ(denied.substr(5, 2), "\x08\x02") << "overall_code: OVER_LIMIT";
  EXPECT_EQ(allowed.substr(5, 2), "\x08\x01") << "overall_code: OK";
  EXPECT_NE(denied.find("x-weir-overload"), denied.npos);
  EXPECT_NE(denied.find("retry-after"), denied.npos);
  EXPECT_NE(allowed.find("x-weir-overload"), allowed.npos);
}

}  // namespace
}  // namespace weir::server
