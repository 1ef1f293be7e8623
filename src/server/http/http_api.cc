// From a call to its answer: finds the route, and has the table of the HTTP port. See http_routes.h.
//
// No sockets, no HTTP parsing. Every error is a problem document that says how to fix the request. Tested by
// http_session_test.cc.
#include "server/http/http_routes.h"

#include "base/nearest.h"
#include "protocol/forward_auth.h"
#include "protocol/query.h"
#include "server/http/site_access.h"

namespace weir::server::http {
namespace {

constexpr std::string_view kWelcome =
    "This is Weir, a rate limiter. It decides whether a request may pass.\n"
    "\n"
    "  curl -i $URL/v1/check -d '{\"key\":\"user:42\",\"limit\":\"100/minute\"}'\n"
    "  curl -i $URL/v1/check -d '{\"key\":\"job:7\",\"limit\":\"10/s burst 50\",\"cost\":5}'\n"
    "  curl -i $URL/v1/check -d '{\"user\":\"42\",\"path\":\"/api/search\",\"ip\":\"192.0.2.1\"}'   by the rules\n"
    "  curl -i $URL/auth -H 'X-Forwarded-Uri: /api/search'                                    as a proxy does\n"
    "\n"
    "200: allowed. 429: denied, retry later. GET /openapi.json describes all calls.\n"
    "GET /livez answers ok while the server runs. Redis clients use another port: CL.THROTTLE user:42 15 30 60\n";

HttpNext welcome_route(const HttpCall&, HttpContext& context, HttpWork&) { return answer_text(context, kWelcome); }
// Answers as Envoy's reference service does.
HttpNext healthcheck_route(const HttpCall&, HttpContext& context, HttpWork&) { return answer_text(context, "OK"); }
HttpNext openapi_route(const HttpCall&, HttpContext& context, HttpWork&) {
  return answer_text(context, openapi_document(), protocol::kJsonType);
}

HttpNext refuse_rls(protocol::HttpAnswer& out, std::string_view why) {
  out.status = 400;
  out.content_type = protocol::kTextType;
  out.body.append(why).append("\n");
  return HttpNext::answer;
}

// POST /json: the rate limit service over plain HTTP. Answers as envoyproxy/ratelimit does: 200 if the request passes
// and 429 if not, each with a RateLimitResponse in protobuf's JSON. What cannot be parsed or charged gets a text.
HttpNext rls_route(const HttpCall& call, HttpContext& context, HttpWork&) {
  protocol::HttpAnswer& out = context.answer;
  if (auto read = protocol::read_rls_json(call.body, context.rls_json); !read)
    return refuse_rls(out, read.error().message);
  context.rls.denials = context.denials;
  context.rls.envoy = context.service.envoy;
  const auto decided = context.rls.decide(context.rls_json.request, context.service.gate);
  if (!decided) return refuse_rls(out, decided.error().message);
  const protocol::RlsResponse& response = **decided;
  out.status = response.overall_code == protocol::RlsCode::over_limit ? 429 : 200;
  out.content_type = protocol::kJsonType;
  protocol::append_rls_json(response, out.body);
  return HttpNext::answer;
}

constexpr auto kCheckRoutes = std::to_array<HttpRoute>({
    {"/v1/check", "POST", "POST", check_route},
    {"/v1/checks", "POST", "POST", checks_route},
    {"/v1/reserve", "POST", "POST", reserve_route},
    {"/v1/commit", "POST", "POST", commit_route},
    {"/v1/cancel", "POST", "POST", cancel_route},
    {"/v1/acquire", "POST", "POST", acquire_route},
    {"/v1/release", "POST", "POST", release_route},
    {"/v1/keys", "DELETE", "DELETE", reset_key_route},
    {"/json", "POST", "POST", rls_route},
    {"/", "GET", "GET, HEAD", welcome_route},
    {"/livez", "GET", "GET, HEAD", livez_route},
    {"/readyz", "GET", "GET, HEAD", readyz_route},
    {"/healthcheck", "GET", "GET, HEAD", healthcheck_route},
    {"/openapi.json", "GET", "GET, HEAD", openapi_route},
    // guard_checks() answers all calls whose path begins like this.
    {protocol::kForwardAuthPath, "GET", "GET, HEAD", forward_auth_route},
    {"/v1/keys/{rule}", "DELETE", "DELETE", reset_rule_route},
});

std::optional<HttpNext> guard_checks(const HttpCall& call, std::string_view path, HttpContext& context,
                                     HttpWork& work) {
  if (protocol::is_forward_auth(path)) {
    context.route = protocol::kForwardAuthPath;
    return forward_auth_route(call, context, work);
  }
  // Pages of other sites may not call a route that decides, refunds or resets.
  if (!path.starts_with("/v1/") && path != "/json") return {};
  const auto refused = refuse_site(context.service.origins, call);
  if (!refused) return {};
  context.service.bounds.refuse(loop::Refused::origin);
  return answer_problem(context, 403, "Forbidden", *refused);
}

bool takes(const HttpRoute& route, std::string_view method) {
  return route.method == method || (method == "HEAD" && route.method == "GET");
}

bool has_rest(const HttpRoute& route) { return route.path.ends_with('}'); }

// The route with this path and method; if there is none, a route with the path.
const HttpRoute* find_route(std::span<const HttpRoute> routes, std::string_view path, std::string_view method) {
  const auto is_it = [&](const HttpRoute& route) { return route.path == path && takes(route, method); };
  auto route = std::ranges::find_if(routes, is_it);
  if (route == routes.end()) route = std::ranges::find(routes, path, &HttpRoute::path);
  if (route == routes.end()) {
    route = std::ranges::find_if(routes, [&](const HttpRoute& one) {
      return has_rest(one) && path.starts_with(one.path.substr(0, one.path.find('{')));
    });
  }
  return route == routes.end() ? nullptr : &*route;
}

HttpNext refuse_path(HttpContext& context, const HttpApi& api, std::string_view path) {
  std::vector<std::string_view> paths;
  for (const HttpRoute& route : api.routes) {
    if (!has_rest(route)) paths.push_back(route.path);
  }
  std::string detail = "unknown path " + base::in_quotes(path, 80) + "; ";
  if (const std::string_view meant = base::nearest(path, paths); meant.empty()) {
    detail += api.help;
  } else {
    detail.append("did you mean ").append(meant).append("?");
  }
  return answer_problem(context, 404, "Not found", detail);
}

HttpNext refuse_method(HttpContext& context, const HttpRoute& route, std::string_view method) {
  context.answer.add("Allow", route.allow);
  return answer_problem(
      context, 405, "Method not allowed",
      "use " + std::string(route.method) + " for " + std::string(route.path) + ", not " + base::in_quotes(method));
}

}  // namespace

std::size_t body_max(std::string_view target, const loop::Bounds& bounds) {
  return protocol::split_target(target).path == "/v1/checks" ? bounds.checks_body_max() : bounds.body_max;
}

HttpApi& check_api() {
  static constinit HttpApi api{kCheckRoutes, guard_checks, shed_check, "try POST /v1/check, or GET / for help"};
  return api;
}

HttpNext answer_text(HttpContext& context, std::string_view body, std::string_view type) {
  context.answer.content_type = type;
  context.answer.body.assign(body);
  return HttpNext::answer;
}

HttpNext livez_route(const HttpCall&, HttpContext& context, HttpWork&) { return answer_text(context, "ok\n"); }
HttpNext readyz_route(const HttpCall&, HttpContext& context, HttpWork&) {
  if (context.service.stopping == nullptr || !context.service.stopping->load()) return answer_text(context, "ok\n");
  context.answer.status = 503;
  return answer_text(context, "stopping\n");
}

HttpNext answer_call(const HttpCall& call, HttpContext& context, HttpWork& work) {
  context.answer.clear();
  context.now = context.service.limiter.now();
  context.refusal = 400;
  context.route = {};
  const HttpApi& api = *context.service.api;
  const std::string_view path = protocol::split_target(call.target).path;
  if (api.guard != nullptr) {
    if (const auto answered = api.guard(call, path, context, work)) return *answered;
  }
  const HttpRoute* const route = find_route(api.routes, path, call.method);
  if (route == nullptr) return refuse_path(context, api, path);
  context.route = route->path;
  if (takes(*route, call.method)) return route->answer(call, context, work);
  return refuse_method(context, *route, call.method);
}

}  // namespace weir::server::http
