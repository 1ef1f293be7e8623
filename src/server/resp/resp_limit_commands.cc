// The limiting commands: CL.THROTTLE, THROTTLE, GCRA, WEIR.CHECK, WEIR.LIMIT, WEIR.RESET, DEL. See resp_call.h.
//
// Commands with their own limit join the turn and are answered when it is decided. The others are decided at once; if
// this client has checks in the turn, they wait for it.
#include <optional>
#include <string>
#include <utility>

#include "protocol/throttle.h"
#include "protocol/weir_commands.h"
#include "server/loop/bound_id.h"
#include "server/loop/overload.h"
#include "server/resp/resp_call.h"

namespace weir::server::resp {
namespace {

using Args = std::span<const std::string_view>;

// The `kind` of a limit in LimitCache; WEIR.LIMIT has those of texts.
enum LimitKind : std::uint8_t { kCell = loop::LimitCache::kTexts + 1, kCrab, kGcra };

AfterCommand reply_error(const Call& call, const Error& error) {
  call.out.error("ERR " + error.message);
  return AfterCommand::go_on;
}

inline AfterCommand ask(const Call& call, RespStep::Kind kind, const Charge& charge) {
  call.context.steps.push_back({static_cast<std::uint32_t>(call.turn.ask(charge)), kind});
  return AfterCommand::asked;
}

// The three bucket commands differ in how they are parsed and in their replies.
struct Bucket {
  LimitKind kind;
  RespStep::Kind reply;
  Result<protocol::Throttle> (*parse)(Args);
  std::optional<std::int64_t> (*cost)(Args);  // nothing: parse() must decide
};

std::optional<std::int64_t> cost_behind(Args args) {
  if (args.size() == 4) return 1;
  return args.size() == 5 ? protocol::parse_quantity(args[4]) : std::nullopt;
}
std::optional<std::int64_t> cost_of_tokens(Args args) {
  return args.size() == 4 ? std::optional<std::int64_t>(1) : std::nullopt;
}

constexpr Bucket kCellBucket{kCell, RespStep::Kind::cell, protocol::parse_cell_throttle, cost_behind};
constexpr Bucket kCrabBucket{kCrab, RespStep::Kind::crab, protocol::parse_crab_throttle, cost_behind};
constexpr Bucket kGcraBucket{kGcra, RespStep::Kind::cell, protocol::parse_gcra, cost_of_tokens};

// The bytes of the three numbers in the input, with the lengths between them. Numbers that were once valid contain no
// line end, so the same bytes always mean the same numbers.
std::string_view bytes_of_numbers(const Call& call, Args args) {
  if (call.is_inline || args.size() < 4) return {};
  const char* const end = args[3].data() + args[3].size();
  return {args[1].data(), static_cast<std::size_t>(end - args[1].data())};
}

// A template, so that each command's bucket is known at compile time.
template <const Bucket& bucket>
AfterCommand run_bucket(const Call& call) {
  const Args args = call.args.subspan(1);
  const std::string_view bytes = bytes_of_numbers(call, args);
  if (const Limit* known = call.context.limits.find(bucket.kind, bytes)) {
    const auto cost = bucket.cost(args);
    if (cost) return ask(call, bucket.reply, {.key = args[0], .limit = known, .cost = *cost});
  }
  const auto throttle = bucket.parse(args);
  auto limit = throttle.and_then([](const protocol::Throttle& right) { return compile(right.quota); });
  if (!limit) return reply_error(call, limit.error());
  const Result<Limit>& kept = call.context.limits.keep(bucket.kind, bytes, std::move(limit));
  return ask(call, bucket.reply, {.key = throttle->key, .limit = &*kept, .cost = throttle->cost});
}

bool is_rate(const Limit& limit) { return limit.algorithm != Algorithm::concurrency; }

// Calls check_once() or preview(), which a turn does not offer.
void reply_at_once(const Call& call, const protocol::LimitCheck& check, const Charge& charge) {
  Limiter& limiter = call.service.limiter;
  if (check.is_peek) {
    const auto decision = limiter.preview(charge.key, *charge.limit, charge.cost);
    if (!decision) return void(reply_error(call, decision.error()));
    return protocol::write_decision(*decision, call.out);
  }
  const auto verdict = limiter.check_once(*check.id, {&charge, 1});
  if (!verdict) return void(reply_error(call, verdict.error()));
  const Result<Decision> decision = verdict->binding_decision();
  Gate* const counting = call.service.counting;
  if (counting != nullptr) counting->count_inline({&charge, 1}, {&decision, 1}, limiter.now());
  call.service.denials.note(limiter.now(), charge.key, *decision);
  protocol::write_decision(*decision, call.out);
}

Gate* gate_or_error(const Call& call) {
  if (call.service.gate == nullptr) {
    call.out.error(
        "ERR there are no rules: start the server with --config weir.yaml, or send a limit with "
        "WEIR.LIMIT key limit");
  }
  return call.service.gate;
}

AfterCommand reply_flag(const Call& call, const Result<bool>& flag) {
  if (!flag) return reply_error(call, flag.error());
  call.out.integer(*flag ? 1 : 0);
  return AfterCommand::go_on;
}

AfterCommand reset_rule(const Call& call) {
  const auto check = protocol::parse_fields(call.args.subspan(2));
  if (!check) return reply_error(call, check.error());
  if (check->id || check->is_peek) {
    return reply_error(call, {ErrorCode::invalid_argument, "WEIR.RESET takes only fields; remove ID and PEEK", 0});
  }
  Gate* const gate = gate_or_error(call);
  return gate == nullptr ? AfterCommand::go_on : reply_flag(call, gate->reset(call.args[1], check->request));
}

}  // namespace

AfterCommand run_cell_throttle(const Call& call) { return run_bucket<kCellBucket>(call); }
AfterCommand run_crab_throttle(const Call& call) { return run_bucket<kCrabBucket>(call); }
AfterCommand run_gcra(const Call& call) { return run_bucket<kGcraBucket>(call); }

AfterCommand run_weir_limit(const Call& call) {
  if (call.args.size() == 3) {
    const Limit* const known = call.context.limits.find(loop::LimitCache::kind_of(std::nullopt), call.args[2]);
    if (known != nullptr && is_rate(*known))
      return ask(call, RespStep::Kind::map, {.key = call.args[1], .limit = known});
  }
  const auto check = protocol::parse_limit_check(call.args.subspan(1));
  if (!check) return reply_error(call, check.error());
  if (call.is_waiting && (check->id || check->is_peek)) return AfterCommand::wait;
  const Result<Limit>& limit = call.context.limits.compile(check->quota, check->algorithm);
  if (!limit) return reply_error(call, limit.error());
  const Charge charge{.key = check->key, .limit = &*limit, .cost = check->cost};
  if (!is_rate(*limit)) {
    call.out.error(
        "ERR a concurrency limit needs POST /v1/acquire and /v1/release over HTTP; here, give a rate such as "
        "100/minute");
  } else if (check->id || check->is_peek) {
    reply_at_once(call, *check, charge);
  } else {
    return ask(call, RespStep::Kind::map, charge);
  }
  if (call.context.sessions == 0) call.context.end_round();  // no round was open, but a limit was returned
  return AfterCommand::go_on;
}

AfterCommand run_weir_check(const Call& call) {
  const auto check = protocol::parse_fields(call.args.subspan(1));
  if (!check) return reply_error(call, check.error());
  Gate* const gate = gate_or_error(call);
  if (gate == nullptr) return AfterCommand::go_on;
  const auto answer = check->is_peek ? gate->peek(check->request)
                      : check->id    ? gate->check_once(loop::bound_id(*check->id, check->request), check->request)
                                     : gate->check(check->request);
  if (!answer) return reply_error(call, answer.error());
  if (!answer->allowed && !check->is_peek) {
    call.service.denials.note(call.service.limiter.now(), *answer, check->request);
  }
  protocol::write_answer(*answer, call.out);
  return AfterCommand::go_on;
}

AfterCommand run_weir_reset(const Call& call) {
  if (call.args.size() > 2) return reset_rule(call);
  if (auto error = refuse_key(call.args[1], call.service.bounds.key_max)) {
    if (!call.service.bounds.takes_key(call.args[1])) call.service.bounds.refuse(loop::Refused::key);
    return reply_error(call, *error);
  }
  return reply_flag(call, call.service.limiter.reset(call.args[1]));
}

AfterCommand run_del(const Call& call) {
  std::int64_t gone = 0;
  for (const std::string_view key : call.args.subspan(1)) {
    const auto was_there = call.service.limiter.reset(key);
    if (!was_there) return reply_error(call, was_there.error());
    gone += *was_there ? 1 : 0;
  }
  call.out.integer(gone);
  return AfterCommand::go_on;
}

// CL.THROTTLE, GCRA and THROTTLE report a limit of 0, since their five integers have no place for a reason.
void reply_overloaded(const Call& call, const RespCommand& command) {
  const loop::ListenerBounds& bounds = call.service.bounds;
  bounds.refuse(loop::Refused::overload);
  const bool allowed = bounds.on_overload == loop::OnOverload::allow;
  const Micros retry_after = allowed ? Micros{0} : loop::kOverloadRetry;
  const Decision decision{
      .allowed = allowed, .limit = 0, .remaining = 0, .retry_after = retry_after, .reset_after = retry_after};
  if (command.run == run_weir_check || command.run == run_weir_limit) {
    protocol::write_overload(allowed, retry_after, call.out);
  } else if ((command.traits & kSheds) == 0) {
    call.out.error("ERR " + std::string(loop::kOverloaded));
  } else if (command.run == run_crab_throttle) {
    call.out.integers(protocol::crab_reply(decision));
  } else {
    call.out.integers(protocol::cell_reply(decision));
  }
}

}  // namespace weir::server::resp
