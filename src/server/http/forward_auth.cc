// Forward-auth: decides by the rules, and delays requests in the queue of a leaky bucket. See forward_auth.h.
#include "server/http/forward_auth.h"

#include <algorithm>

#include "protocol/forward_auth.h"
#include "server/http/http_check.h"

namespace weir {
namespace {

// Fields for a proxy's log, whatever the proxy does with the status.
void add_own_fields(HttpService& service, std::string_view status) {
  HttpAnswer& out = service.answer;
  out.add("X-Weir-Status", status);
  const LimitAnswer* const binding = service.by_rules.binding_limit();
  if (binding == nullptr || binding->decision.decided_by == DecidedBy::here) return;
  out.add("X-Weir-Decided-By", to_string(binding->decision.decided_by));
}

HttpNext write_allowed(HttpService& service, Micros now) {
  HttpAnswer& out = service.answer;
  write_fields(out, {.by_rules = &service.by_rules}, style_of(service.by_rules), now);
  out.content_type = {};
  add_own_fields(service, "200");
  return HttpNext::answer;
}

HttpNext write_denied(HttpService& service, Micros now) {
  const AnswerStyle& style = style_of(service.by_rules);
  write_check(service.answer, {.by_rules = &service.by_rules}, style, now, style.deny_status);
  add_own_fields(service, "429");
  return HttpNext::answer;
}

// The limit with the longest queue; null if no limit delays the request.
LimitAnswer* slowest(Answer& answer) {
  LimitAnswer* slowest = nullptr;
  for (LimitAnswer& limit : answer.limits) {
    if (limit.decision.delay > (slowest == nullptr ? Micros{0} : slowest->decision.delay)) slowest = &limit;
  }
  return slowest;
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

HttpNext forward_auth_route(const HttpCall& call, HttpService& service, HttpWork& work) {
  const auto request = original_request(call.method, call.target, call.fields, call.peer);
  if (!request) {
    write_refusal(service, request.error());
    return HttpNext::answer;
  }
  const Micros now = service.now;
  Answer& answer = service.by_rules;
  if (service.gate == nullptr) {
    answer = {};
    return write_allowed(service, now);
  }
  if (auto asked = service.gate->check(service.gate->rules(), *request, answer); !asked) {
    write_refusal(service, asked.error());
    return HttpNext::answer;
  }
  service.denials.note(now, answer, *request);
  if (!answer.allowed) return write_denied(service, now);
  LimitAnswer* const queue = slowest(answer);
  if (queue == nullptr) return write_allowed(service, now);
  const bool are_many = service.all_holds() >= service.bounds.holds_max;
  if (queue->decision.delay > style_of(answer).hold_max || are_many) {
    if (are_many) service.bounds.refuse(Refused::pipeline);
    give_back_turn(call, answer.rules, service);
    service.gate->count_reversed(*request, answer, static_cast<std::size_t>(queue - answer.limits.data()));
    deny(answer, *queue);
    service.denials.note(now, answer, *request);
    return write_denied(service, now);
  }
  work.delay = queue->decision.delay;
  write_allowed(service, now);
  return HttpNext::hold;
}

void give_back_turn(const HttpCall& call, const std::shared_ptr<const Rulebook>& rules, HttpService& service) {
  auto request = original_request(call.method, call.target, call.fields, call.peer);
  if (!request || service.gate == nullptr) return;
  request->cost = -request->cost;
  Answer ignored;
  (void)service.gate->check(rules, *request, ignored);
}

}  // namespace weir
