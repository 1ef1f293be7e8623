// What all admin routes share: access control, the author of a change, and error answers. See admin_api.h.
#include "server/admin/admin_api.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/nearest.h"
#include "base/rfc3339.h"
#include "protocol/http1.h"
#include "protocol/json_writer.h"
#include "server/admin/admin_service.h"

namespace weir {
namespace {

constexpr std::string_view kOpenPaths[] = {"/livez", "/readyz"};
constexpr std::string_view kMetricsPath = "/metrics";  // needs no token, but closed to pages of other sites

}  // namespace

std::optional<HttpNext> guard_admin(const HttpCall& call, std::string_view path, HttpService& service, HttpWork& work) {
  HttpAnswer& out = service.answer;
  out.add("Cache-Control", "no-store");
  out.add("X-Content-Type-Options", "nosniff");
  out.add("Content-Security-Policy", "default-src 'none'");
  if (std::ranges::find(kOpenPaths, path) != std::end(kOpenPaths)) return {};
  const bool is_metrics = path == kMetricsPath;
  if (service.admin == nullptr || (service.admin->control == nullptr && !is_metrics)) {
    if (path == "/" || is_metrics) return {};
    write_problem(out, 404, "Not found", "the admin API is not available on this server; try GET / for help");
    return HttpNext::answer;
  }
  AdminAccess access = service.admin->access;
  if (is_metrics) access.token.clear();
  const auto refusal = refuse_admin(access, call);
  if (!refusal) return {};
  write_problem(out, refusal->status, refusal->title, refusal->detail);
  if (refusal->status != 401) return HttpNext::answer;
  service.bounds.refuse(Refused::token);
  service.admin->wrong.note("wrong or missing admin token", call.peer, service.now);
  out.add("WWW-Authenticate", "Bearer realm=\"weir\"");
  work.delay = kWrongSecretDelay;
  return HttpNext::hold;
}

HttpNext refuse_body(HttpService& service, const Error& error) {
  write_problem(service.answer, 400, "Bad request", error.message);
  return HttpNext::answer;
}

HttpNext refuse_change(HttpService& service, const Error& error) {
  HttpAnswer& out = service.answer;
  switch (error.code) {
    case ErrorCode::invalid_argument:
      write_problem(out, 422, "Invalid request", error.message);
      break;
    case ErrorCode::out_of_range:
      write_problem(out, 409, "Conflict", error.message);
      break;
    case ErrorCode::not_found:
      write_problem(out, 404, "Not found", error.message);
      break;
    case ErrorCode::exhausted:
    case ErrorCode::unavailable:
      write_problem(out, 503, "Unavailable", error.message);
      break;
  }
  return HttpNext::answer;
}

Result<Author> author_of(const HttpCall& call, const AdminBody& body) {
  Author author;
  author.from = call.peer;
  author.reason = body.text("reason");
  if (author.reason.size() > kReasonMax) {
    return fail(ErrorCode::out_of_range,
                "\"reason\" has more than " + std::to_string(kReasonMax) + " bytes; shorten it");
  }
  for (const Attribute& field : call.fields) {
    if (!equals_ignoring_case(field.name, "x-weir-who")) continue;
    const bool is_printable = std::ranges::all_of(field.value, [](char c) { return c >= ' ' && c <= '~'; });
    if (field.value.empty() || field.value.size() > kWhoMax || !is_printable) {
      return fail(ErrorCode::invalid_argument,
                  "X-Weir-Who is " + in_quotes(field.value) + "; send a name of 1 to 64 printable ASCII characters");
    }
    author.who = field.value;
  }
  return author;
}

Result<std::optional<Micros>> lasting_of(const AdminBody& body) {
  if (!body.has("for")) return std::nullopt;
  auto lasts = parse_lasting(body.text("for"));
  if (!lasts) return fail(lasts.error().code, "\"for\": " + lasts.error().message);
  return *lasts;
}

Result<std::size_t> count_of(std::string_view name, std::string_view text, std::size_t most) {
  std::size_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error == std::errc{} && end == text.data() + text.size() && n > 0) return std::min(n, most);
  return fail(ErrorCode::invalid_argument,
              std::string(name) + " is " + in_quotes(text) + "; give a whole number of at least 1");
}

HttpNext answer_made(HttpService& service, const Result<Made>& made) {
  if (!made) return refuse_change(service, made.error());
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.number("id", made->id);
  json.texts("changes", made->changes);
  append_reach(json, service, made->id);
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

void append_reach(JsonWriter& json, HttpService& service, std::uint64_t change) {
  const FleetTells& fleet = service.admin->fleet;
  if (!fleet.view) return;
  const bool is_shared = service.admin->control->is_shared(change);
  json.flag("on_all_servers", is_shared);
  if (is_shared) return;
  const std::string why = fleet.view().changes_why;
  json.text("note", "on this server only, until " +
                        (why.empty() ? "Redis is available again" : "the other servers receive it: " + why));
}

std::string time_or_null(Micros time) { return time == Micros{0} ? "null" : '"' + rfc3339(time) + '"'; }

}  // namespace weir
