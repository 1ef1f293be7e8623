// RESP: WEIR.LIMIT, whose times are milliseconds, rounded up. See listener.h.
//
// The reply is read by hand, as the flat array that RESP2 has for a map.
#include <map>

#include "listener.h"
#include "server/loop/session_fixture.h"
#include "server/resp/resp_session.h"

namespace weir::test {
namespace {

Micros to_millisecond(Micros wait) { return wait == kNever ? wait : Micros{(wait.count() + 999) / 1000 * 1000}; }

// A flat array of names and values, bulks or integers, as RESP2 has it.
std::map<std::string, std::string> read_map(std::string_view reply) {
  std::map<std::string, std::string> values;
  std::string name;
  const auto line = [&] {
    const std::size_t end = reply.find("\r\n");
    const std::string_view text = reply.substr(0, end);
    reply.remove_prefix(end + 2);
    return text;
  };
  for (long left = std::atol(std::string(line().substr(1)).c_str()); left > 0; --left) {
    const std::string_view head = line();
    const std::string value(head.front() == '$' && head != "$-1" ? line() : head.substr(1));
    if (left % 2 == 0) {
      name = value;
    } else {
      values[name] = value;
    }
  }
  return values;
}

class RespListener final : public Listener {
 public:
  explicit RespListener(std::shared_ptr<const Clock> clock) : limiter_(options_of(std::move(clock))) {}

  std::string_view name() const override { return "RESP"; }
  bool has(Algorithm algorithm) const override { return algorithm != Algorithm::concurrency; }

  void change(const Quota& quota) override {
    quota_ = weir::to_string(quota);
    algorithm_ = weir::to_string(quota.algorithm);
  }

  Result<Decision> check(std::int64_t cost) override {
    const std::string text_of_cost = std::to_string(cost);
    std::string command = "*7\r\n";
    for (const std::string_view word :
         {std::string_view("WEIR.LIMIT"), std::string_view("k"), std::string_view(quota_), std::string_view("COST"),
          std::string_view(text_of_cost), std::string_view("ALGORITHM"), std::string_view(algorithm_)}) {
      command += '$' + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
    }
    player_.feed(command);
    const std::string reply = player_.take();
    if (!reply.starts_with('*')) return fail(ErrorCode::unavailable, reply);
    auto values = read_map(reply);
    const auto wait = [&](const char* name) {
      const long long ms = std::stoll(values.at(name));
      return ms < 0 ? kNever : Micros{ms * 1000};
    };
    return Decision{.allowed = values.at("allowed") == "1",
                    .limit = std::stoll(values.at("limit")),
                    .remaining = std::stoll(values.at("remaining")),
                    .retry_after = wait("retry_after_ms"),
                    .reset_after = wait("reset_after_ms"),
                    .delay = wait("delay_ms")};
  }

  Decision as_answered(const Decision& decision, std::int64_t) const override {
    Decision rounded = decision;
    for (Micros Decision::*wait : {&Decision::retry_after, &Decision::reset_after, &Decision::delay}) {
      rounded.*wait = to_millisecond(rounded.*wait);
    }
    return rounded;
  }

 private:
  Limiter limiter_;
  server::resp::RespService service_{.limiter = limiter_};
  std::unique_ptr<server::loop::Session> session_ = server::resp::make_resp_session(service_, 1);
  server::loop::SessionPlayer player_{*session_, limiter_};
  std::string quota_, algorithm_;
};

}  // namespace

std::unique_ptr<Listener> resp_listener(std::shared_ptr<const Clock> clock) {
  return std::make_unique<RespListener>(std::move(clock));
}

}  // namespace weir::test
