// The routes of the HTTP API and the admin API. See http_api.h.
#include "server/http/http_api.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "protocol/forward_auth.h"
#include "protocol/http1.h"
#include "protocol/query.h"
#include "server/admin/admin_api.h"
#include "server/http/forward_auth.h"
#include "server/http/http_check.h"
#include "server/http/http_keys.h"
#include "server/http/http_reserve.h"
#include "server/http/http_rls.h"
#include "server/http/openapi.h"
#include "server/http/site_access.h"

namespace weir {
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

struct Route {
  std::string_view path;
  std::string_view method;  // GET routes also answer HEAD
  std::string_view allow;
  HttpNext (*answer)(const HttpCall&, HttpService&, HttpWork&);
};

HttpNext plain_text(HttpService& service, std::string_view body, std::string_view type = kTextType) {
  service.answer.content_type = type;
  service.answer.body.assign(body);
  return HttpNext::answer;
}

HttpNext welcome(const HttpCall&, HttpService& service, HttpWork&) { return plain_text(service, kWelcome); }
HttpNext livez(const HttpCall&, HttpService& service, HttpWork&) { return plain_text(service, "ok\n"); }
HttpNext readyz(const HttpCall&, HttpService& service, HttpWork&) {
  if (service.stopping == nullptr || !service.stopping->load()) return plain_text(service, "ok\n");
  service.answer.status = 503;
  return plain_text(service, "stopping\n");
}
HttpNext metrics(const HttpCall& call, HttpService& service, HttpWork&) {
  if (service.metrics == nullptr) return plain_text(service, "");
  std::string_view accept;
  for (const Attribute& field : call.fields) {
    if (equals_ignoring_case(field.name, "accept")) accept = field.value;
  }
  const MetricsFormat format = metrics_format(accept);
  return plain_text(service, metrics_page(*service.metrics, format), content_type(format));
}
HttpNext admin_welcome(const HttpCall&, HttpService& service, HttpWork&);
// Answers as Envoy's reference service does.
HttpNext healthcheck(const HttpCall&, HttpService& service, HttpWork&) { return plain_text(service, "OK"); }
HttpNext openapi(const HttpCall&, HttpService& service, HttpWork&) {
  return plain_text(service, openapi_document(), kJsonType);
}

constexpr auto kRoutes = std::to_array<Route>({
    {"/v1/check", "POST", "POST", check_route},
    {"/v1/checks", "POST", "POST", checks_route},
    {"/v1/reserve", "POST", "POST", reserve_route},
    {"/v1/commit", "POST", "POST", commit_route},
    {"/v1/cancel", "POST", "POST", cancel_route},
    {"/v1/acquire", "POST", "POST", acquire_route},
    {"/v1/release", "POST", "POST", release_route},
    {"/v1/keys", "DELETE", "DELETE", reset_key_route},
    {"/json", "POST", "POST", rls_route},
    {"/", "GET", "GET, HEAD", welcome},
    {"/livez", "GET", "GET, HEAD", livez},
    {"/readyz", "GET", "GET, HEAD", readyz},
    {"/healthcheck", "GET", "GET, HEAD", healthcheck},
    {"/openapi.json", "GET", "GET, HEAD", openapi},
});
constexpr auto kAdminRoutes = std::to_array<Route>({
    {"/", "GET", "GET, HEAD", admin_welcome},
    {"/livez", "GET", "GET, HEAD", livez},
    {"/readyz", "GET", "GET, HEAD", readyz},
    {"/metrics", "GET", "GET, HEAD", metrics},
    {"/admin/v1/status", "GET", "GET, HEAD", status_route},
    {"/admin/v1/config", "GET", "GET, HEAD", policy_route},
    {"/admin/v1/config/validate", "POST", "POST", validate_route},
    {"/admin/v1/config/apply", "POST", "POST", apply_route},
    {"/admin/v1/reload", "POST", "POST", reload_route},
    {"/admin/v1/undo", "POST", "POST", undo_route},
    {"/admin/v1/changes", "GET", "GET, HEAD", changes_route},
    {"/admin/v1/rules", "GET", "GET, HEAD", rules_route},
    {"/admin/v1/rules/mode", "POST", "POST", mode_route},
    {"/admin/v1/kill-switch", "POST", "POST", kill_switch_route},
    {"/admin/v1/keys/explain", "POST", "POST", explain_route},
    {"/admin/v1/keys/reset", "POST", "POST", reset_route},
    {"/admin/v1/keys/ban", "POST", "POST", ban_route},
    {"/admin/v1/plans", "GET", "GET, HEAD", plans_route},
    {"/admin/v1/plans/list", "GET", "GET, HEAD", list_plans_route},
    {"/admin/v1/plans/show", "GET", "GET, HEAD", show_plan_route},
    {"/admin/v1/plans/set", "POST", "POST", set_plan_route},
    {"/admin/v1/plans/override", "POST", "POST", override_plan_route},
    {"/admin/v1/plans/remove", "POST", "POST", remove_plan_route},
    {"/admin/v1/nodes", "GET", "GET, HEAD", nodes_route},
    {"/admin/v1/top", "GET", "GET, HEAD", top_route},
    {"/admin/v1/usage", "GET", "GET, HEAD", usage_route},
    {"/admin/v1/log", "GET", "GET, HEAD, PUT", log_route},
    {"/admin/v1/log", "PUT", "GET, HEAD, PUT", set_log_route},
});
constexpr Route kResetRule = {"/v1/keys/{rule}", "DELETE", "DELETE", reset_rule_route};

std::span<const Route> routes_of(HttpFace face) {
  if (face == HttpFace::admin) return kAdminRoutes;
  return kRoutes;
}

HttpNext admin_welcome(const HttpCall&, HttpService& service, HttpWork&) {
  plain_text(service, "This is the admin API of Weir.\n\n");
  for (const Route& route : kAdminRoutes) {
    service.answer.body.append("  ").append(route.method).append(5 - route.method.size(), ' ').append(route.path);
    service.answer.body += '\n';
  }
  return HttpNext::answer;
}

bool takes(const Route& route, std::string_view method) {
  return route.method == method || (method == "HEAD" && route.method == "GET");
}

// The route with this path and method; if there is none, a route with the path.
const Route* find_route(HttpFace face, std::string_view path, std::string_view method) {
  const std::span<const Route> routes = routes_of(face);
  const auto is_it = [&](const Route& route) { return route.path == path && takes(route, method); };
  const auto route = std::ranges::find_if(routes, is_it);
  if (route != routes.end()) return &*route;
  const auto other = std::ranges::find(routes, path, &Route::path);
  if (other != routes.end()) return &*other;
  if (face == HttpFace::admin) return nullptr;
  return path.starts_with("/v1/keys/") ? &kResetRule : nullptr;
}

void write_unknown_path(HttpAnswer& out, HttpFace face, std::string_view path) {
  std::vector<std::string_view> paths;
  for (const Route& route : routes_of(face)) paths.push_back(route.path);
  if (face == HttpFace::checks) paths.push_back(kForwardAuthPath);
  std::string detail = "unknown path " + in_quotes(path, 80) + "; ";
  const std::string_view meant = nearest(path, paths);
  if (face == HttpFace::admin && path.starts_with("/admin/v1/policy")) {
    detail += "/admin/v1/policy is now /admin/v1/config";
  } else if (meant.empty()) {
    detail += face == HttpFace::checks ? "try POST /v1/check, or GET / for help" : "try GET / for help";
  } else {
    detail.append("did you mean ").append(meant).append("?");
  }
  write_problem(out, 404, "Not found", detail);
}

// Whether a route decides, refunds or resets: pages of other sites may not call it.
bool is_guarded(std::string_view path) { return path.starts_with("/v1/") || path == "/json"; }

void write_wrong_method(HttpAnswer& out, const Route& route, std::string_view method) {
  out.add("Allow", route.allow);
  write_problem(out, 405, "Method not allowed",
                "use " + std::string(route.method) + " for " + std::string(route.path) + ", not " + in_quotes(method));
}

}  // namespace

std::size_t body_max(std::string_view target, const Bounds& bounds) {
  return split_target(target).path == "/v1/checks" ? bounds.checks_body_max() : bounds.body_max;
}

HttpNext answer_call(const HttpCall& call, HttpService& service, HttpWork& work) {
  service.answer.clear();
  service.now = service.limiter.now();
  service.refusal = 400;
  service.route = {};
  const std::string_view path = split_target(call.target).path;
  if (service.face == HttpFace::checks && is_forward_auth(path)) {
    service.route = kForwardAuthPath;
    return forward_auth_route(call, service, work);
  }
  if (service.face == HttpFace::checks && is_guarded(path)) {
    if (const auto refused = refuse_site(service.origins, call)) {
      service.bounds.refuse(Refused::origin);
      write_problem(service.answer, 403, "Forbidden", *refused);
      return HttpNext::answer;
    }
  }
  if (service.face == HttpFace::admin) {
    if (const auto refused = guard_admin(call, path, service, work)) return *refused;
  }
  const Route* const route = find_route(service.face, path, call.method);
  if (route == nullptr) {
    write_unknown_path(service.answer, service.face, path);
    return HttpNext::answer;
  }
  service.route = route->path;
  if (takes(*route, call.method)) return route->answer(call, service, work);
  write_wrong_method(service.answer, *route, call.method);
  return HttpNext::answer;
}

}  // namespace weir
