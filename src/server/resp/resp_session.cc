// The RESP session: parses pipelined commands, adds checks to the turn and writes replies. See resp_session.h.
#include "server/resp/resp_session.h"

#include <string>
#include <string_view>
#include <utility>

#include "protocol/throttle.h"
#include "protocol/weir_commands.h"
#include "resp/request.h"
#include "server/resp/resp_commands.h"

namespace weir {
namespace {

// Bounds on what one session adds to a round, so that its answers fit into a connection's output.
constexpr std::size_t kStepsMax = 4096;
constexpr std::size_t kTextsMax = std::size_t{64} << 10;
constexpr std::size_t kQuotasOfDesk = 64;  // compiled limits that a desk caches

std::string_view last_words(GiveUp why) {
  switch (why) {
    case GiveUp::too_slow:
      break;
    case GiveUp::no_room:
      return "ERR all connections together have reached the memory limit; retry shortly";
    case GiveUp::too_crowded:
      return "ERR max number of clients reached";
    case GiveUp::too_busy:
      return "ERR server overloaded; request not evaluated; retry shortly";
  }
  return "ERR the client did not finish the request in time";
}

void write_reply(RespStep::Kind kind, const Decision& decision, resp::Writer& out) {
  switch (kind) {
    case RespStep::Kind::cell:
      return out.integers(cell_reply(decision));
    case RespStep::Kind::crab:
      return out.integers(crab_reply(decision));
    case RespStep::Kind::map:
    case RespStep::Kind::text:
      break;
  }
  write_decision(decision, out);
}

class RespSession final : public Session {
 public:
  RespSession(RespService& service, std::int64_t id, std::string peer)
      : service_(&service), parser_(service.bounds.resp()) {
    client_.id = id;
    client_.peer = std::move(peer);
    client_.is_known = service.password.empty();
    trust();
  }
  RespSession(const RespSession&) = delete;
  RespSession& operator=(const RespSession&) = delete;
  ~RespSession() override { leave(); }

  // An exception may have left a round open; leave() ends it.
  void sit_at(Desk& desk) override {
    leave();
    service_ = &static_cast<RespDesk&>(desk).service;
  }

  Progress consume(std::string_view input, Turn& turn, std::string& output) override {
    Progress progress;
    first_step_ = service_->steps.size();
    first_text_ = service_->texts.size();
    while (!is_holding() && !is_full(output, progress)) {
      const resp::ParsedRequest request = parser_.parse(input.substr(progress.consumed));
      if (request.status == resp::Status::need_more) break;
      const AfterCommand after = answer(request, turn, output);
      if (after == AfterCommand::wait) break;
      progress.consumed += request.consumed;
      if (request.status == resp::Status::done) ++progress.answered;
      progress.close = after == AfterCommand::close;
      if (progress.close) break;
      // The key of an inline request is in the parser's memory, so stop parsing until the turn has used it.
      if (after == AfterCommand::asked && request.is_inline) break;
    }
    past_step_ = service_->steps.size();
    progress.asked = is_waiting_;
    progress.phase = phase_of(input.size() - progress.consumed);
    return progress;
  }

  bool settle(Turn& turn, std::string& output) override {
    resp::Writer out(output, client_.protocol);
    std::size_t text = first_text_;
    for (std::size_t i = first_step_; i < past_step_; ++i) {
      const RespStep step = service_->steps[i];
      if (step.kind == RespStep::Kind::text) {
        output.append(service_->texts, text, step.at - text);
        text = step.at;
      } else if (const auto& decision = turn.answer(step.at); decision) {
        service_->denials.note(turn.now(), turn.asked_for(step.at).key, *decision);
        write_reply(step.kind, *decision, out);
      } else {
        out.error("ERR " + decision.error().message);
      }
    }
    leave();
    return false;
  }

  Micros due() const override { return due_; }
  bool is_holding() const override { return due_ != kNever; }
  void wake(Micros now, std::string& output) override {
    if (now >= due_) release(output);
  }

  void drain(std::string& output) override { release(output); }

  void give_up(GiveUp why, std::string& output) override {
    resp::Writer(output, client_.protocol).error(last_words(why));
  }

  // A request is parsed in place, in the connection's buffer.
  std::size_t held() const override { return held_.size(); }

 private:
  // Input no larger than a header has the header's time-out.
  Phase phase_of(std::size_t rest) const {
    if (rest == 0) return Phase::idle;
    return rest <= service_->bounds.http.header_max ? Phase::header : Phase::body;
  }

  bool is_full(const std::string& output, Progress& progress) const {
    if (is_waiting_) {
      return service_->steps.size() - first_step_ >= kStepsMax || service_->texts.size() - first_text_ >= kTextsMax;
    }
    progress.full = output.size() >= service_->bounds.output_max;
    return progress.full;
  }

  AfterCommand answer(const resp::ParsedRequest& request, Turn& turn, std::string& output) {
    if (request.status == resp::Status::bad) return refuse(request, output);
    if (request.args.empty()) return AfterCommand::go_on;
    const std::size_t before = output.size();
    resp::Writer out(is_waiting_ ? service_->texts : output, client_.protocol);
    const AfterCommand after = run_command({.args = request.args,
                                            .is_inline = request.is_inline,
                                            .is_waiting = is_waiting_,
                                            .service = *service_,
                                            .turn = turn,
                                            .client = client_,
                                            .out = out});
    if (after == AfterCommand::asked) {
      enter();
    } else if (after == AfterCommand::hold) {
      held_ = output.substr(before);
      output.resize(before);
      due_ = turn.now() + kWrongSecretDelay;
    } else if (after != AfterCommand::wait) {
      if (is_waiting_)
        service_->steps.push_back({static_cast<std::uint32_t>(service_->texts.size()), RespStep::Kind::text});
      trust();
    }
    return after;
  }

  AfterCommand refuse(const resp::ParsedRequest& request, std::string& output) {
    if (is_waiting_) return AfterCommand::wait;  // the next call ends the same way
    service_->bounds.refuse(request.is_too_large ? Refused::body : Refused::malformed);
    resp::Writer(output, client_.protocol).error("ERR " + std::string(request.reason));
    return AfterCommand::close;
  }

  void release(std::string& output) {
    output += std::exchange(held_, {});
    due_ = kNever;
  }

  void trust() { parser_.set_trust(client_.is_known ? resp::Trust::known : resp::Trust::stranger); }

  void enter() {
    if (is_waiting_) return;
    is_waiting_ = true;
    ++service_->sessions;
  }
  void leave() {
    if (!is_waiting_) return;
    is_waiting_ = false;
    if (--service_->sessions == 0) service_->end_round();
  }

  RespService* service_;  // of the loop, or of its current desk
  RespClient client_;
  resp::RequestParser parser_;
  std::size_t first_step_ = 0, past_step_ = 0, first_text_ = 0;  // this session's part of the round
  bool is_waiting_ = false;                                      // for the turn
  Micros due_ = kNever;                                          // of a delayed reply
  std::string held_;
};

}  // namespace

std::unique_ptr<Session> make_resp_session(RespService& service, std::int64_t id, std::string peer) {
  return std::make_unique<RespSession>(service, id, std::move(peer));
}

std::unique_ptr<Session> make_resp_session(Desks& desks, std::int64_t id, std::string peer) {
  RespService& home = static_cast<RespDesk&>(desks.home()).service;
  return make_fiber_session(desks, make_resp_session(home, id, std::move(peer)));
}

RespDesk::RespDesk(RespService& first)
    : Desk(first.limiter, first.counting),
      service{.limiter = first.limiter, .version = first.version, .password = first.password} {
  service.first = &first;
  service.quotas.set_most(kQuotasOfDesk);
  service.limits.remember_nothing();
  RespDesk::renew();
}

void RespDesk::renew() {
  service.gate = service.first->gate;
  service.counting = service.first->counting;
  service.bounds = service.first->bounds;
  service.denials = service.first->denials;
}

void RespDesk::write_last_words(GiveUp why, std::string& output) {
  resp::Writer(output, resp::Protocol::resp2).error(last_words(why));
}

}  // namespace weir
