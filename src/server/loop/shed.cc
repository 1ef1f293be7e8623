// The answers of a server that is overloaded. See shed.h.
#include "server/loop/shed.h"

#include <algorithm>
#include <array>

#include "protocol/forward_auth.h"
#include "protocol/grpc_message.h"
#include "protocol/query.h"
#include "protocol/rls.h"
#include "protocol/rls_json.h"
#include "protocol/throttle.h"
#include "protocol/weir_commands.h"
#include "server/http/http_check.h"

namespace weir {
namespace {

constexpr Micros kRetryAfter{1'000'000};
constexpr std::string_view kRetryAfterSeconds = "1";
constexpr std::string_view kField = "X-Weir-Overload";

const RlsResponse& rls_response(OnOverload what) {
  static const RlsResponse denied{
      .overall_code = RlsCode::over_limit,
      .response_headers = {{"retry-after", kRetryAfterSeconds}, {"x-weir-overload", "denied"}}};
  static const RlsResponse allowed{.response_headers = {{"x-weir-overload", "allowed"}}};
  return what == OnOverload::allow ? allowed : denied;
}

void deny(HttpAnswer& out, int status) {
  out.add("Retry-After", kRetryAfterSeconds);
  out.add(kField, "denied");
  write_problem(out, status, "Overloaded", kOverloaded);
}

void shed_check(HttpService& service) {
  if (service.bounds.on_overload == OnOverload::deny) return deny(service.answer, 503);
  service.answer.add(kField, "allowed");
  service.answer.body.append("{\"allowed\":true,\"reason\":\"overload\",\"limits\":[]}\n");
}

// Proxies pass on the policy's deny status, but would take 503 for an error of this server.
void shed_forward_auth(HttpService& service) {
  HttpAnswer& out = service.answer;
  if (service.bounds.on_overload == OnOverload::deny) {
    deny(out, style_in_force(service).deny_status);
    out.add("X-Weir-Status", "429");
    return;
  }
  out.content_type = {};
  out.add(kField, "allowed");
  out.add("X-Weir-Status", "200");
}

void shed_rls(HttpService& service) {
  const OnOverload what = service.bounds.on_overload;
  service.answer.status = what == OnOverload::deny ? 429 : 200;
  append_rls_json(rls_response(what), service.answer.body);
}

// A request that reserves permits or asks for many answers is never allowed without a decision.
void shed_other(HttpService& service) { deny(service.answer, 503); }

struct Shed {
  std::string_view path;
  void (*answer)(HttpService&);
};
constexpr auto kShed = std::to_array<Shed>({{"/v1/check", shed_check},
                                            {"/json", shed_rls},
                                            {"/v1/checks", shed_other},
                                            {"/v1/reserve", shed_other},
                                            {"/v1/acquire", shed_other}});

}  // namespace

bool shed_http(const HttpCall& call, const Turn& turn, HttpService& service) {
  if (service.face != HttpFace::checks) return false;
  const std::string_view path = split_target(call.target).path;
  const auto* const shed = std::ranges::find(kShed, path, &Shed::path);
  const bool is_auth = is_forward_auth(path);
  const bool is_shed = is_auth || (shed != kShed.end() && call.method == "POST");
  const bool only_looks = call.method == "GET" || call.method == "HEAD";
  if (!is_shed && (!turn.refuses() || only_looks)) return false;
  service.bounds.refuse(Refused::overload);
  service.now = service.limiter.now();
  service.route = is_auth ? kForwardAuthPath : is_shed ? shed->path : std::string_view();
  service.answer.clear();
  if (is_auth) {
    shed_forward_auth(service);
  } else {
    is_shed ? shed->answer(service) : shed_other(service);
  }
  return true;
}

void shed_resp(const Call& call, const RespCommand& command) {
  const DoorBounds& bounds = call.service.bounds;
  bounds.refuse(Refused::overload);
  const bool allowed = bounds.on_overload == OnOverload::allow;
  const Decision decision{.allowed = allowed,
                          .limit = 0,
                          .remaining = 0,
                          .retry_after = allowed ? Micros{0} : kRetryAfter,
                          .reset_after = allowed ? Micros{0} : kRetryAfter};
  if (command.run == run_weir_check || command.run == run_weir_limit) {
    write_overload(allowed, decision.retry_after, call.out);
  } else if ((command.traits & kSheds) == 0) {
    call.out.error("ERR " + std::string(kOverloaded));
  } else if (command.run == run_crab_throttle) {
    call.out.integers(crab_reply(decision));
  } else {
    call.out.integers(cell_reply(decision));
  }
}

void append_shed_rls(OnOverload what, std::string& out) {
  const std::size_t begin = begin_grpc_message(out);
  append_rls_response(rls_response(what), out);
  end_grpc_message(out, begin);
}

}  // namespace weir
