// Answers HTTP calls under overload, without a decision. See http_routes.h and overload.h.
//
// Nothing is charged, and no rule is evaluated. Every answer has X-Weir-Overload, as a header field or, for /json, in
// the body. Answers with a reason have the reason `overload`. Each answer is counted. Tested by
// overload_answers_test.cc.
#include "server/http/http_routes.h"

#include <algorithm>
#include <array>

#include "protocol/forward_auth.h"
#include "protocol/query.h"
#include "server/loop/overload.h"

namespace weir::server::http {
namespace {

constexpr std::string_view kField = "X-Weir-Overload";

void deny(protocol::HttpAnswer& out, int status) {
  out.add("Retry-After", loop::kOverloadRetrySeconds);
  out.add(kField, "denied");
  protocol::write_problem(out, status, "Overloaded", loop::kOverloaded);
}

void shed_single(HttpContext& context) {
  if (context.service.bounds.on_overload == loop::OnOverload::deny) return deny(context.answer, 503);
  context.answer.add(kField, "allowed");
  context.answer.body.append("{\"allowed\":true,\"reason\":\"overload\",\"limits\":[]}\n");
}

// Proxies pass on the policy's deny status, but would take 503 for an error of this server.
void shed_forward_auth(HttpContext& context) {
  protocol::HttpAnswer& out = context.answer;
  if (context.service.bounds.on_overload == loop::OnOverload::deny) {
    deny(out, style_in_force(context).deny_status);
    out.add("X-Weir-Status", "429");
    return;
  }
  out.content_type = {};
  out.add(kField, "allowed");
  out.add("X-Weir-Status", "200");
}

void shed_rls(HttpContext& context) {
  const loop::OnOverload what = context.service.bounds.on_overload;
  context.answer.status = what == loop::OnOverload::deny ? 429 : 200;
  protocol::append_rls_json(rls::rls_overload_response(what), context.answer.body);
}

// A request that reserves permits or asks for many answers is never allowed without a decision.
void shed_other(HttpContext& context) { deny(context.answer, 503); }

struct Shed {
  std::string_view path;
  void (*answer)(HttpContext&);
};
constexpr auto kShed = std::to_array<Shed>({{"/v1/check", shed_single},
                                            {"/json", shed_rls},
                                            {"/v1/checks", shed_other},
                                            {"/v1/reserve", shed_other},
                                            {"/v1/acquire", shed_other}});

}  // namespace

bool shed_check(const HttpCall& call, const loop::Turn& turn, HttpContext& context) {
  const std::string_view path = protocol::split_target(call.target).path;
  const auto* const shed = std::ranges::find(kShed, path, &Shed::path);
  const bool is_auth = protocol::is_forward_auth(path);
  const bool is_shed = is_auth || (shed != kShed.end() && call.method == "POST");
  const bool only_looks = call.method == "GET" || call.method == "HEAD";
  if (!is_shed && (!turn.refuses() || only_looks)) return false;
  context.service.bounds.refuse(loop::Refused::overload);
  context.now = context.service.limiter.now();
  context.route = is_auth ? protocol::kForwardAuthPath : is_shed ? shed->path : std::string_view();
  context.answer.clear();
  if (is_auth) {
    shed_forward_auth(context);
  } else {
    is_shed ? shed->answer(context) : shed_other(context);
  }
  return true;
}

}  // namespace weir::server::http
