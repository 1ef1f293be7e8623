// The table of the admin routes, and what they share: access control, bodies, authors, answers. See admin_api.h.
#include "server/admin/admin_api.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/time_text.h"
#include "protocol/http1.h"

namespace weir::server::admin {
namespace {

constexpr std::string_view kOpenPaths[] = {"/livez", "/readyz"};
constexpr std::string_view kMetricsPath = "/metrics";  // needs no token, but closed to pages of other sites

std::optional<http::HttpNext> guard_admin(const http::HttpCall& call, std::string_view path, http::HttpContext& context,
                                          http::HttpWork& work) {
  protocol::HttpAnswer& out = context.answer;
  out.add("Cache-Control", "no-store");
  out.add("X-Content-Type-Options", "nosniff");
  out.add("Content-Security-Policy", "default-src 'none'");
  if (std::ranges::find(kOpenPaths, path) != std::end(kOpenPaths)) return {};
  const bool is_metrics = path == kMetricsPath;
  if (admin_of(context).control == nullptr && !is_metrics) {
    if (path == "/") return {};
    return http::answer_problem(context, 404, "Not found",
                                "the admin API is not available on this server; try GET / for help");
  }
  AdminAccess access = admin_of(context).access;
  if (is_metrics) access.token.clear();
  const auto refusal = refuse_admin(access, call);
  if (!refusal) {
    if (!path.starts_with("/admin/v1/policy")) return {};
    return http::answer_problem(
        context, 404, "Not found",
        "unknown path " + base::in_quotes(path, 80) + "; /admin/v1/policy is now /admin/v1/config");
  }
  const http::HttpNext refused = http::answer_problem(context, refusal->status, refusal->title, refusal->detail);
  if (refusal->status != 401) return refused;
  context.service.bounds.refuse(loop::Refused::token);
  admin_of(context).wrong.note("wrong or missing admin token", call.peer, context.now);
  out.add("WWW-Authenticate", "Bearer realm=\"weir\"");
  work.delay = observe::kWrongSecretDelay;
  return http::HttpNext::hold;
}

http::HttpNext metrics_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  const observe::MetricsSources* const sources = admin_of(context).metrics;
  if (sources == nullptr) return http::answer_text(context, "");
  std::string_view accept;
  for (const Attribute& field : call.fields) {
    if (protocol::equals_ignoring_case(field.name, "accept")) accept = field.value;
  }
  const protocol::MetricsFormat format = protocol::metrics_format(accept);
  return http::answer_text(context, observe::metrics_page(*sources, format), protocol::content_type(format));
}

// The paths that the API has.
http::HttpNext admin_welcome_route(const http::HttpCall&, http::HttpContext& context, http::HttpWork&) {
  http::answer_text(context, "This is the admin API of Weir.\n\n");
  for (const http::HttpRoute& route : admin_of(context).routes) {
    context.answer.body.append("  ").append(route.method).append(5 - route.method.size(), ' ').append(route.path);
    context.answer.body += '\n';
  }
  return http::HttpNext::answer;
}

constexpr std::string_view kGet = "GET, HEAD";
constexpr auto kAdminRoutes = std::to_array<http::HttpRoute>({
    {"/", "GET", kGet, admin_welcome_route},
    {"/livez", "GET", kGet, http::livez_route},
    {"/readyz", "GET", kGet, http::readyz_route},
    {kMetricsPath, "GET", kGet, metrics_route},
    {"/admin/v1/status", "GET", kGet, status_route},
    {"/admin/v1/config", "GET", kGet, policy_route},
    {"/admin/v1/config/validate", "POST", "POST", validate_route},
    {"/admin/v1/config/apply", "POST", "POST", apply_route},
    {"/admin/v1/reload", "POST", "POST", reload_route},
    {"/admin/v1/undo", "POST", "POST", undo_route},
    {"/admin/v1/changes", "GET", kGet, changes_route},
    {"/admin/v1/rules", "GET", kGet, rules_route},
    {"/admin/v1/rules/mode", "POST", "POST", mode_route},
    {"/admin/v1/kill-switch", "POST", "POST", kill_switch_route},
    {"/admin/v1/keys/explain", "POST", "POST", explain_route},
    {"/admin/v1/keys/reset", "POST", "POST", reset_route},
    {"/admin/v1/keys/ban", "POST", "POST", ban_route},
    {"/admin/v1/plans", "GET", kGet, plans_route},
    {"/admin/v1/plans/list", "GET", kGet, list_plans_route},
    {"/admin/v1/plans/show", "GET", kGet, show_plan_route},
    {"/admin/v1/plans/set", "POST", "POST", set_plan_route},
    {"/admin/v1/plans/override", "POST", "POST", override_plan_route},
    {"/admin/v1/plans/remove", "POST", "POST", remove_plan_route},
    {"/admin/v1/nodes", "GET", kGet, nodes_route},
    {"/admin/v1/top", "GET", kGet, top_route},
    {"/admin/v1/usage", "GET", kGet, usage_route},
    {"/admin/v1/log", "GET", "GET, HEAD, PUT", log_route},
    {"/admin/v1/log", "PUT", "GET, HEAD, PUT", set_log_route},
});

}  // namespace

AdminService::AdminService() : http::HttpApi{kAdminRoutes, guard_admin, nullptr, "try GET / for help"} {}

http::HttpNext refuse_body(http::HttpContext& context, const Error& error) {
  return http::answer_problem(context, 400, "Bad request", error.message);
}

http::HttpNext refuse_change(http::HttpContext& context, const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
      return http::answer_problem(context, 422, "Invalid request", error.message);
    case ErrorCode::out_of_range:
      return http::answer_problem(context, 409, "Conflict", error.message);
    case ErrorCode::not_found:
      return http::answer_problem(context, 404, "Not found", error.message);
    case ErrorCode::exhausted:
    case ErrorCode::unavailable:
      break;
  }
  return http::answer_problem(context, 503, "Unavailable", error.message);
}

Result<control::Author> author_of(const http::HttpCall& call, const AdminBody& body) {
  control::Author author;
  author.from = call.peer;
  author.reason = body.text("reason");
  if (author.reason.size() > control::kReasonMax) {
    return fail(ErrorCode::out_of_range,
                "\"reason\" has more than " + std::to_string(control::kReasonMax) + " bytes; shorten it");
  }
  for (const Attribute& field : call.fields) {
    if (!protocol::equals_ignoring_case(field.name, "x-weir-who")) continue;
    const bool is_printable = std::ranges::all_of(field.value, [](char c) { return c >= ' ' && c <= '~'; });
    if (field.value.empty() || field.value.size() > control::kWhoMax || !is_printable) {
      return fail(ErrorCode::invalid_argument, "X-Weir-Who is " + base::in_quotes(field.value) +
                                                   "; send a name of 1 to 64 printable ASCII characters");
    }
    author.who = field.value;
  }
  return author;
}

Result<std::optional<Micros>> lasting_of(const AdminBody& body) {
  if (!body.has("for")) return std::nullopt;
  auto lasts = control::parse_lasting(body.text("for"));
  if (!lasts) return fail(lasts.error().code, "\"for\": " + lasts.error().message);
  return *lasts;
}

Result<bool> take_count(const protocol::Parameter& parameter, std::size_t most, std::size_t& out) {
  const auto n = base::to_number<std::size_t>(parameter.value);
  if (!n || *n == 0) {
    return fail(ErrorCode::invalid_argument,
                parameter.name + " is " + base::in_quotes(parameter.value) + "; give a whole number of at least 1");
  }
  out = std::min(*n, most);
  return true;
}

http::HttpNext answer_made(http::HttpContext& context, const Result<control::Made>& made) {
  if (!made) return refuse_change(context, made.error());
  return answer_object(context, [&](protocol::JsonWriter& json) {
    json.number("id", made->id);
    json.texts("changes", made->changes);
    append_reach(json, context, made->id);
  });
}

void append_reach(protocol::JsonWriter& json, http::HttpContext& context, std::uint64_t change) {
  const observe::FleetReports& fleet = admin_of(context).fleet;
  if (!fleet.view) return;
  const bool is_shared = control_of(context).is_shared(change);
  json.flag("on_all_servers", is_shared);
  if (is_shared) return;
  const std::string why = fleet.view().changes_error;
  json.text("note", "on this server only, until " +
                        (why.empty() ? "Redis is available again" : "the other servers receive it: " + why));
}

std::string time_or_null(Micros time) { return time == Micros{0} ? "null" : '"' + base::rfc3339(time) + '"'; }

}  // namespace weir::server::admin
