// HTTP: POST /v1/check with its own limit, /v1/acquire and /v1/release. See listener.h.
//
// Seconds are read digit by digit, to the microsecond, so nothing is lost.
#include <cstdlib>

#include "listener.h"
#include "server/http/http_session.h"
#include "server/loop/session_fixture.h"

namespace weir::test {
namespace {

// What stands behind "name": in a body of ours; each name stands there once before the list of limits.
std::string_view member(std::string_view body, std::string_view name) {
  const std::string quoted = '"' + std::string(name) + "\":";
  const std::size_t at = body.find(quoted);
  if (at == std::string_view::npos) return {};
  body.remove_prefix(at + quoted.size());
  return body.substr(0, body.find_first_of(",}"));
}

std::int64_t number(std::string_view body, std::string_view name) {
  return std::strtoll(std::string(member(body, name)).c_str(), nullptr, 10);
}

// 0.200001 is 200001 us: digit by digit, without floating point.
Micros seconds(std::string_view body, std::string_view name) {
  const std::string_view text = member(body, name);
  if (text == "null") return kNever;
  const std::size_t dot = text.find('.');
  std::string digits(text.substr(0, dot));
  std::string places(dot == std::string_view::npos ? "" : text.substr(dot + 1));
  places.resize(6, '0');
  return Micros{std::strtoll((digits + places).c_str(), nullptr, 10)};
}

class HttpListener final : public Listener {
 public:
  explicit HttpListener(std::shared_ptr<const Clock> clock) : limiter_(options_of(std::move(clock))) {}

  std::string_view name() const override { return "HTTP"; }
  bool has(Algorithm) const override { return true; }

  void change(const Quota& quota) override {
    limit_ = R"("limit":")" + weir::to_string(quota) + '"';
    if (quota.algorithm == Algorithm::concurrency) return;
    limit_ += R"(,"algorithm":")" + std::string(weir::to_string(quota.algorithm)) + '"';
  }
  Result<Decision> check(std::int64_t cost) override {
    return decision(ask("/v1/check", limit_ + R"(,"cost":)" + std::to_string(cost)));
  }
  Result<Decision> acquire(std::string_view id, std::int64_t cost) override {
    return decision(
        ask("/v1/acquire", limit_ + R"(,"id":")" + std::string(id) + R"(","cost":)" + std::to_string(cost)));
  }
  Result<bool> release(std::string_view id) override {
    const std::string body = ask("/v1/release", R"("id":")" + std::string(id) + '"');
    if (member(body, "released").empty()) return fail(ErrorCode::unavailable, body);
    return member(body, "released") == "true";
  }
  Decision as_answered(const Decision& decision, std::int64_t) const override { return decision; }

 private:
  std::string ask(const std::string& path, const std::string& members) {
    const std::string body = R"({"key":"k",)" + members + '}';
    player_.feed("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
                 "\r\n\r\n" + body);
    const std::string answer = player_.take();
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }

  static Result<Decision> decision(const std::string& body) {
    if (member(body, "allowed").empty()) return fail(ErrorCode::unavailable, body);
    return Decision{.allowed = member(body, "allowed") == "true",
                    .limit = number(body, "limit"),
                    .remaining = number(body, "remaining"),
                    .retry_after = seconds(body, "retry_after"),
                    .reset_after = seconds(body, "reset_after"),
                    .delay = seconds(body, "delay")};
  }

  Limiter limiter_;
  server::http::HttpService service_{.limiter = limiter_};
  std::unique_ptr<server::loop::Session> session_ = server::http::make_http_session(service_);
  server::loop::SessionPlayer player_{*session_, limiter_};
  std::string limit_;
};

}  // namespace

std::unique_ptr<Listener> http_listener(std::shared_ptr<const Clock> clock) {
  return std::make_unique<HttpListener>(std::move(clock));
}

}  // namespace weir::test
