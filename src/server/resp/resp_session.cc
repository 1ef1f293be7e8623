// The RESP session: parses pipelined commands, adds checks to the turn and writes replies. See resp_session.h.
#include "server/resp/resp_session.h"

#include <string>
#include <string_view>
#include <utility>

#include "protocol/throttle.h"
#include "protocol/weir_commands.h"
#include "resp/request.h"
#include "server/resp/resp_call.h"

namespace weir::server::resp {
namespace {

// Bounds on what one session adds to a round, so that its answers fit into a connection's output.
constexpr std::size_t kStepsMax = 4096;
constexpr std::size_t kTextsMax = std::size_t{64} << 10;

std::string last_words(loop::GiveUp why) {
  if (why == loop::GiveUp::too_crowded) return "ERR max number of clients reached";  // as Redis says it
  return "ERR " + std::string(loop::reason_of(why));
}

void write_reply(RespStep::Kind kind, const Decision& decision, weir::resp::Writer& out) {
  switch (kind) {
    case RespStep::Kind::cell:
      return out.integers(protocol::cell_reply(decision));
    case RespStep::Kind::crab:
      return out.integers(protocol::crab_reply(decision));
    case RespStep::Kind::map:
    case RespStep::Kind::text:
      break;
  }
  protocol::write_decision(decision, out);
}

class RespSession final : public loop::Session {
 public:
  RespSession(RespContext& context, std::int64_t id, std::string peer)
      : context_(&context), parser_(context.service.bounds.resp()) {
    client_.id = id;
    client_.peer = std::move(peer);
    client_.is_known = context.service.password.empty();
    trust();
  }
  RespSession(const RespSession&) = delete;
  RespSession& operator=(const RespSession&) = delete;
  ~RespSession() override { leave(); }

  // An exception may have left a round open; leave() ends it.
  void use_context(loop::RequestContext& context) override {
    leave();
    context_ = &static_cast<RespContext&>(context);
  }

  loop::Progress consume(std::string_view input, loop::Turn& turn, std::string& output) override {
    loop::Progress progress;
    first_step_ = context_->steps.size();
    first_text_ = context_->texts.size();
    while (!is_holding() && !is_full(output, progress)) {
      const weir::resp::ParsedRequest request = parser_.parse(input.substr(progress.consumed));
      if (request.status == weir::resp::Status::need_more) break;
      const AfterCommand after = answer(request, turn, output, progress);
      if (after == AfterCommand::wait) break;
      progress.consumed += request.consumed;
      if (request.status == weir::resp::Status::done) ++progress.answered;
      progress.close = after == AfterCommand::close;
      if (progress.close) break;
      // The key of an inline request is in the parser's memory, so stop parsing until the turn has used it.
      if (after == AfterCommand::asked && request.is_inline) break;
    }
    past_step_ = context_->steps.size();
    progress.asked = is_waiting_;
    progress.phase = phase_of(input.size() - progress.consumed);
    return progress;
  }

  bool settle(loop::Turn& turn, std::string& output) override {
    weir::resp::Writer out(output, client_.protocol);
    std::size_t text = first_text_;
    for (std::size_t i = first_step_; i < past_step_; ++i) {
      const RespStep step = context_->steps[i];
      if (step.kind == RespStep::Kind::text) {
        output.append(context_->texts, text, step.at - text);
        text = step.at;
      } else if (const auto& decision = turn.answer(step.at); decision) {
        context_->service.denials.note(turn.now(), turn.asked_for(step.at).key, *decision);
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

  void give_up(loop::GiveUp why, std::string& output) override {
    weir::resp::Writer(output, client_.protocol).error(last_words(why));
  }

  // A request is parsed in place, in the connection's buffer.
  std::size_t held() const override {
    std::size_t bytes = held_.size();
    if (client_.transaction != nullptr) bytes += client_.transaction->held();
    if (in_turn_ != nullptr) bytes += in_turn_->held();
    return bytes;
  }

 private:
  // Input no larger than a header has the header's time-out.
  loop::Phase phase_of(std::size_t rest) const {
    if (rest == 0) return loop::Phase::idle;
    return rest <= context_->service.bounds.http.header_max ? loop::Phase::header : loop::Phase::body;
  }

  bool is_full(const std::string& output, loop::Progress& progress) const {
    if (is_waiting_) {
      return context_->steps.size() - first_step_ >= kStepsMax || context_->texts.size() - first_text_ >= kTextsMax;
    }
    progress.full = output.size() >= context_->service.bounds.output_max;
    return progress.full;
  }

  AfterCommand answer(const weir::resp::ParsedRequest& request, loop::Turn& turn, std::string& output,
                      loop::Progress& progress) {
    if (request.status == weir::resp::Status::bad) return refuse(request, output);
    if (request.args.empty()) return AfterCommand::go_on;
    if (!is_in_exec()) {
      const AfterCommand after = run(take_command, request.args, request.is_inline, turn, output);
      if (after != AfterCommand::run_queue) return after;
    }
    return run_queue(turn, output, progress);
  }

  // EXEC is consumed when all of its commands have run. If it must wait, the next call continues with the next command.
  bool is_in_exec() const { return client_.transaction != nullptr && client_.transaction->is_running(); }

  AfterCommand run_queue(loop::Turn& turn, std::string& output, loop::Progress& progress) {
    for (RespTransaction& queue = *client_.transaction; queue.has_next(); queue.pass()) {
      if (is_full(output, progress)) return AfterCommand::wait;
      if (run(run_command, queue.next(), false, turn, output) == AfterCommand::wait) return AfterCommand::wait;
    }
    in_turn_ = std::move(client_.transaction);
    if (!is_waiting_) in_turn_.reset();
    return AfterCommand::go_on;
  }

  AfterCommand run(AfterCommand (*command)(const Call&), std::span<const std::string_view> args, bool is_inline,
                   loop::Turn& turn, std::string& output) {
    const std::size_t before = output.size();
    weir::resp::Writer out(is_waiting_ ? context_->texts : output, client_.protocol);
    const AfterCommand after = command({.args = args,
                                        .is_inline = is_inline,
                                        .is_waiting = is_waiting_,
                                        .service = context_->service,
                                        .context = *context_,
                                        .turn = turn,
                                        .client = client_,
                                        .out = out});
    if (after == AfterCommand::asked) {
      enter();
    } else if (after == AfterCommand::hold) {
      held_ = output.substr(before);
      output.resize(before);
      due_ = turn.now() + observe::kWrongSecretDelay;
    } else if (after != AfterCommand::wait) {
      if (is_waiting_)
        context_->steps.push_back({static_cast<std::uint32_t>(context_->texts.size()), RespStep::Kind::text});
      trust();
    }
    return after;
  }

  AfterCommand refuse(const weir::resp::ParsedRequest& request, std::string& output) {
    if (is_waiting_) return AfterCommand::wait;  // the next call ends the same way
    context_->service.bounds.refuse(request.is_too_large ? loop::Refused::body : loop::Refused::malformed);
    weir::resp::Writer(output, client_.protocol).error("ERR " + std::string(request.reason));
    return AfterCommand::close;
  }

  void release(std::string& output) {
    output += std::exchange(held_, {});
    due_ = kNever;
  }

  void trust() { parser_.set_trust(client_.is_known ? weir::resp::Trust::known : weir::resp::Trust::stranger); }

  void enter() {
    if (is_waiting_) return;
    is_waiting_ = true;
    ++context_->sessions;
  }
  void leave() {
    if (!is_waiting_) return;
    is_waiting_ = false;
    in_turn_.reset();
    if (--context_->sessions == 0) context_->end_round();
  }

  RespContext* context_;  // of the loop, or of its current fiber
  RespClient client_;
  weir::resp::RequestParser parser_;
  std::size_t first_step_ = 0, past_step_ = 0, first_text_ = 0;  // this session's part of the round
  bool is_waiting_ = false;                                      // for the turn
  Micros due_ = kNever;                                          // of a delayed reply
  std::string held_;
  std::unique_ptr<RespTransaction> in_turn_;  // has run; the turn reads its keys
};

}  // namespace

std::unique_ptr<loop::Session> make_resp_session(RespService& service, std::int64_t id, std::string peer) {
  return std::make_unique<RespSession>(service.home, id, std::move(peer));
}

std::unique_ptr<loop::Session> make_resp_session(loop::ContextPool& pool, std::int64_t id, std::string peer) {
  auto& home = static_cast<RespContext&>(pool.home());
  return loop::make_fiber_session(pool, std::make_unique<RespSession>(home, id, std::move(peer)));
}

RespContext::RespContext(RespService& with, Caching caching)
    : loop::RequestContext(with.limiter, with.counting),
      service(with),
      limits(caching == Caching::all ? loop::LimitCache::kSlots : loop::LimitCache::kSlotsOfMany) {}

void RespContext::write_last_words(loop::GiveUp why, std::string& output) {
  weir::resp::Writer(output, weir::resp::Protocol::resp2).error(last_words(why));
}

}  // namespace weir::server::resp
