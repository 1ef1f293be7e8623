// Forward-auth: may the request that a proxy received pass? See http_routes.h.
//
// Answers 200 with an empty body, or the status of a denial; header fields carry the details. If a leaky bucket
// queues the request, the session delays the answer until the request's time in the queue. If that is too long, or
// too many answers are delayed already, the request leaves the queue and is denied. Tested by
// forward_auth_session_test.cc.
#include "server/http/http_routes.h"

#include <algorithm>

#include "protocol/forward_auth.h"

namespace weir::server::http {
namespace {

// Fields for a proxy's log, whatever the proxy does with the status.
void add_own_fields(HttpContext& context, std::string_view status) {
  protocol::HttpAnswer& out = context.answer;
  out.add("X-Weir-Status", status);
  const LimitAnswer* const binding = context.by_rules.binding_limit();
  if (binding == nullptr || binding->decision.decided_by == DecidedBy::here) return;
  out.add("X-Weir-Decided-By", to_string(binding->decision.decided_by));
}

HttpNext write_allowed(HttpContext& context) {
  protocol::write_fields(context.answer, {.by_rules = &context.by_rules}, style_of(context.by_rules), context.now);
  context.answer.content_type = {};
  add_own_fields(context, "200");
  return HttpNext::answer;
}

HttpNext write_denied(HttpContext& context) {
  const AnswerStyle& style = style_of(context.by_rules);
  protocol::write_check(context.answer, {.by_rules = &context.by_rules}, style, context.now, style.deny_status);
  add_own_fields(context, "429");
  return HttpNext::answer;
}

// The limit with the longest queue; null if no limit delays the request.
LimitAnswer* slowest(Answer& answer) {
  const auto delay = [](const LimitAnswer& limit) { return limit.decision.delay; };
  const auto slowest = std::ranges::max_element(answer.limits, {}, delay);
  return slowest == answer.limits.end() || delay(*slowest) <= Micros{0} ? nullptr : &*slowest;
}

// Turns the answer into a denial, as if the queue had been full.
void deny(Answer& answer, LimitAnswer& limit) {
  limit.decision.allowed = false;
  limit.decision.retry_after = limit.decision.delay;
  answer.allowed = false;
  answer.why = Why::limited;
  answer.rule = limit.rule;
  answer.binding = static_cast<std::size_t>(&limit - answer.limits.data());
  answer.retry_after = limit.decision.delay;
}

}  // namespace

HttpNext forward_auth_route(const HttpCall& call, HttpContext& context, HttpWork& work) {
  const auto request = protocol::original_request(call.method, call.target, call.fields, call.peer);
  if (!request) return refuse(context, request.error());
  Answer& answer = context.by_rules;
  if (context.service.gate == nullptr) {
    answer = {};
    return write_allowed(context);
  }
  const auto asked = context.service.gate->check(context.service.gate->rules(), *request, answer);
  if (!asked) return refuse(context, asked.error());
  context.denials.note(context.now, answer, *request);
  if (!answer.allowed) return write_denied(context);
  LimitAnswer* const queue = slowest(answer);
  if (queue == nullptr) return write_allowed(context);
  const bool are_many = context.service.holds >= context.service.bounds.holds_max;
  if (queue->decision.delay > style_of(answer).hold_max || are_many) {
    if (are_many) context.service.bounds.refuse(loop::Refused::pipeline);
    refund_held_request(call, answer.rules, context);
    context.service.gate->count_reversed(*request, answer, static_cast<std::size_t>(queue - answer.limits.data()));
    deny(answer, *queue);
    context.denials.note(context.now, answer, *request);
    return write_denied(context);
  }
  work.delay = queue->decision.delay;
  write_allowed(context);
  return HttpNext::hold;
}

void refund_held_request(const HttpCall& call, const std::shared_ptr<const policy::Rulebook>& rules,
                         HttpContext& context) {
  auto request = protocol::original_request(call.method, call.target, call.fields, call.peer);
  if (!request || context.service.gate == nullptr) return;
  request->cost = -request->cost;
  Answer ignored;
  (void)context.service.gate->check(rules, *request, ignored);
}

}  // namespace weir::server::http
