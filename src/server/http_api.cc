// The routes of the HTTP port. See http_api.h.
#include "server/http_api.h"

#include <algorithm>
#include <array>
#include <vector>

#include "nearest.h"
#include "protocol/check_json.h"
#include "protocol/problem.h"

namespace weir {
namespace {

constexpr std::string_view kWelcome =
    "This is weir, a rate limiter. It answers one question: may this request pass?\n"
    "\n"
    "  curl -i $URL/v1/check -d '{\"key\":\"user:42\",\"limit\":\"100/minute\"}'\n"
    "  curl -i $URL/v1/check -d '{\"key\":\"job:7\",\"limit\":\"10/s burst 50\",\"cost\":5}'\n"
    "  curl -i $URL/v1/check -d '{\"user\":\"42\",\"path\":\"/api/search\",\"ip\":\"192.0.2.1\"}'   by the rules\n"
    "\n"
    "200 means yes, 429 means not now. GET /livez says whether the server is up.\n"
    "Redis clients use the other port: CL.THROTTLE user:42 15 30 60\n";

struct Route {
  std::string_view path;
  std::string_view method;  // GET routes answer HEAD too
  std::string_view allow;
  HttpAnswer (*answer)(const HttpCall&, HttpService&);
};

HttpAnswer text(std::string_view body) { return {200, kTextType, {}, std::string(body)}; }

HttpAnswer welcome(const HttpCall&, HttpService&) { return text(kWelcome); }
HttpAnswer livez(const HttpCall&, HttpService&) { return text("ok\n"); }

HttpAnswer refused(const Error& error) {
  std::string detail = error.message;
  switch (error.code) {
    case ErrorCode::exhausted: {
      HttpAnswer answer = problem_answer(503, "Out of room", std::move(detail));
      answer.headers.push_back({"Retry-After", "1"});
      return answer;
    }
    case ErrorCode::unavailable:
      return problem_answer(503, "Unavailable", std::move(detail));
    case ErrorCode::invalid_argument:
    case ErrorCode::out_of_range:
    case ErrorCode::not_found:
      break;
  }
  return problem_answer(400, "Bad check", std::move(detail));
}

HttpAnswer check_by_rules(const RuleCheck& check, HttpService& service) {
  if (service.gate == nullptr) {
    return refused({ErrorCode::invalid_argument,
                    "there are no rules to decide by: start the server with --config weir.yaml, or give \"key\" and "
                    "\"limit\"",
                    0});
  }
  std::vector<Attribute> attributes;
  const Micros now = service.limiter.now();
  const auto answer = service.gate->check(check.request(attributes));
  if (!answer) return refused(answer.error());
  return check_answer(*answer, now);
}

HttpAnswer check(const HttpCall& call, HttpService& service) {
  const auto body = parse_check(call.body);
  if (!body) return refused(body.error());
  if (!body->charge) return check_by_rules(body->by_rules, service);
  const CheckRequest& request = *body->charge;
  const auto limit = service.calendar_limits.compile(request.quota, request.limit);
  if (!limit) return refused({limit.error().code, "\"limit\": " + limit.error().message, 0});
  const Micros now = service.limiter.now();
  const auto decision = service.limiter.check(request.key, *limit, request.cost);
  if (!decision) return refused(decision.error());
  return check_answer(*limit, request.cost, *decision, now);
}

constexpr std::array<Route, 3> kRoutes = {{
    {"/v1/check", "POST", "POST", check},
    {"/", "GET", "GET, HEAD", welcome},
    {"/livez", "GET", "GET, HEAD", livez},
}};

// A proxy may send the whole address, http://host/path, of which the host is its own affair.
std::string_view path_of(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (lower(target.substr(0, kScheme.size())) == kScheme) {
    const std::size_t begin = target.find_first_of("/?", kScheme.size());
    if (begin == std::string_view::npos || target[begin] == '?') return "/";
    target.remove_prefix(begin);
  }
  return target.substr(0, target.find('?'));
}

HttpAnswer unknown_path(std::string_view path) {
  std::array<std::string_view, kRoutes.size()> paths;
  std::ranges::transform(kRoutes, paths.begin(), &Route::path);
  std::string detail = "there is nothing at " + in_quotes(path, 80) + "; ";
  const std::string_view meant = nearest(path, paths);
  if (meant.empty()) {
    detail += "try POST /v1/check, or GET / for help";
  } else {
    detail.append("did you mean ").append(meant).append("?");
  }
  return problem_answer(404, "Not found", std::move(detail));
}

}  // namespace

HttpAnswer problem_answer(int status, std::string_view title, std::string detail) {
  return {status, kProblemType, {}, problem_body({status, title, std::move(detail)})};
}

HttpAnswer answer_call(const HttpCall& call, HttpService& service) {
  const std::string_view path = path_of(call.target);
  const auto* route = std::ranges::find(kRoutes, path, &Route::path);
  if (route == kRoutes.end()) return unknown_path(path);
  const bool is_head = call.method == "HEAD" && route->method == "GET";
  if (call.method == route->method || is_head) return route->answer(call, service);
  HttpAnswer answer = problem_answer(
      405, "Method not allowed",
      "use " + std::string(route->method) + " for " + std::string(route->path) + ", not " + in_quotes(call.method));
  answer.headers.push_back({"Allow", std::string(route->allow)});
  return answer;
}

}  // namespace weir
