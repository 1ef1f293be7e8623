// POST /v1/check, and what several routes need to read a check and to answer it. See http_routes.h.
//
// Tested by http_check_test.cc.
#include "server/http/http_routes.h"

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "protocol/query.h"
#include "server/loop/bound_id.h"

namespace weir::server::http {
namespace {

Result<Charging> charging_of(std::string_view query) {
  if (query.empty()) return Charging::charges;
  const auto parameters = protocol::parse_query(query);
  if (!parameters) return fail(parameters.error());
  Charging charging = Charging::charges;
  for (const protocol::Parameter& parameter : *parameters) {
    if (parameter.name != "peek") {
      return fail(ErrorCode::invalid_argument,
                  "unknown parameter " + base::in_quotes(parameter.name) + "; the only parameter is peek");
    }
    if (parameter.value.empty() || parameter.value == "true" || parameter.value == "1") {
      charging = Charging::peeks;
    } else if (parameter.value != "false" && parameter.value != "0") {
      return fail(ErrorCode::invalid_argument, "peek must be true or false, found " + base::in_quotes(parameter.value));
    }
  }
  return charging;
}

Result<Decision> charge_once(const Charge& charge, std::string_view id, Limiter& limiter) {
  if (id.empty()) return limiter.check(charge.key, *charge.limit, charge.cost);
  const auto verdict = limiter.check_once(id, {&charge, 1});
  if (!verdict) return fail(verdict.error());
  return verdict->decisions.front();
}

HttpNext check_by_rules(const protocol::CheckItem& item, Charging charging, HttpContext& context) {
  if (auto asked = ask_rules(item, charging, context); !asked) return refuse(context, asked.error());
  if (charging == Charging::charges) context.denials.note(context.now, context.by_rules, item.request());
  protocol::write_check(context.answer, {.by_rules = &context.by_rules}, style_of(context.by_rules), context.now);
  return HttpNext::answer;
}

}  // namespace

Error no_rules() {
  return {ErrorCode::invalid_argument,
          "there are no rules: start the server with --config weir.yaml, or send \"key\" and \"limit\"", 0};
}

HttpNext refuse(HttpContext& context, const Error& error) {
  switch (error.code) {
    case ErrorCode::exhausted:
      context.answer.add("Retry-After", "1");
      return answer_problem(context, 503, "Out of capacity", error.message);
    case ErrorCode::unavailable:
      return answer_problem(context, 503, "Unavailable", error.message);
    case ErrorCode::invalid_argument:
    case ErrorCode::out_of_range:
    case ErrorCode::not_found:
      break;
  }
  return answer_problem(context, context.refusal, context.refusal == 409 ? "Conflict" : "Bad request", error.message);
}

HttpNext refuse_or_404(HttpContext& context, const Error& error) {
  if (error.code == ErrorCode::not_found) return answer_problem(context, 404, "Not found", error.message);
  return refuse(context, error);
}

Result<void> read_item(const HttpCall& call, protocol::CheckShape shape, HttpContext& context) {
  context.texts.clear();
  context.limits.end_round();
  protocol::CheckItem& item = context.item;
  if (auto read = protocol::parse_check(call.body, shape, item, context.texts, context.service.bounds.key_max); !read) {
    note_key(context);
    return read;
  }
  for (const Attribute& field : call.fields) {
    if (!protocol::equals_ignoring_case(field.name, "idempotency-key")) continue;
    if (field.value.empty() || field.value.size() > protocol::kIdBytesMax) {
      return fail(ErrorCode::out_of_range, "Idempotency-Key has " + std::to_string(field.value.size()) +
                                               " bytes; send 1 to " + std::to_string(protocol::kIdBytesMax));
    }
    if (!std::ranges::all_of(field.value, [](char c) { return c > ' ' && c <= '~'; })) {
      return fail(ErrorCode::invalid_argument, "Idempotency-Key is " + base::in_quotes(field.value) +
                                                   "; use visible ASCII without spaces, such as 7f3a-order-8");
    }
    if (!item.id.empty() && item.id != field.value) {
      context.refusal = 409;
      return fail(ErrorCode::invalid_argument, "Idempotency-Key is " + base::in_quotes(field.value) +
                                                   ", but \"id\" is " + base::in_quotes(item.id) + "; send only one");
    }
    item.id = field.value;
  }
  return {};
}

Result<const Limit*> inline_limit(const protocol::CheckItem& item, WantedLimit wanted, HttpContext& context) {
  const Result<Limit>& limit = context.limits.compile(item.limit, item.algorithm);
  if (!limit) return fail(limit.error().code, "\"limit\": " + limit.error().message, limit.error().column);
  const bool is_in_flight = limit->algorithm == Algorithm::concurrency;
  if (is_in_flight && wanted == WantedLimit::rate) {
    return fail(ErrorCode::invalid_argument,
                "\"limit\": a concurrency limit needs POST /v1/acquire and POST /v1/release; here, "
                "send a rate such as \"100/minute\"");
  }
  if (!is_in_flight && wanted == WantedLimit::in_flight) {
    return fail(ErrorCode::invalid_argument,
                "\"limit\": " + base::in_quotes(item.limit) +
                    " is a rate; use POST /v1/check for it; here, send a concurrency limit such as \"20 concurrent\"");
  }
  return &*limit;
}

Result<void> ask_rules(const protocol::CheckItem& item, Charging charging, HttpContext& context) {
  if (context.service.gate == nullptr) return fail(no_rules());
  const Request request = item.request();
  if (charging == Charging::charges && item.id.empty()) {
    return context.service.gate->check(context.service.gate->rules(), request, context.by_rules);
  }
  auto answer = charging == Charging::peeks
                    ? context.service.gate->peek(request)
                    : context.service.gate->check_once(loop::bound_id(item.id, request), request);
  if (!answer) return fail(std::move(answer.error()));
  context.by_rules = *std::move(answer);
  return {};
}

Result<Decision> ask_limiter(const protocol::CheckItem& item, const Limit& limit, Charging charging,
                             HttpContext& context) {
  if (charging == Charging::peeks) return context.service.limiter.preview(item.key, limit, item.cost);
  const Charge charge{item.key, &limit, item.cost};
  auto decision = charge_once(charge, item.id, context.service.limiter);
  if (context.service.counting != nullptr)
    context.service.counting->count_inline({&charge, 1}, {&decision, 1}, context.now);
  return decision;
}

HttpNext check_route(const HttpCall& call, HttpContext& context, HttpWork& work) {
  const auto charging = charging_of(protocol::split_target(call.target).query);
  if (!charging) return refuse(context, charging.error());
  if (auto read = read_item(call, protocol::CheckShape::check, context); !read) return refuse(context, read.error());
  const protocol::CheckItem& item = context.item;
  if (item.by_rules) return check_by_rules(item, *charging, context);
  const auto limit = inline_limit(item, WantedLimit::rate, context);
  if (!limit) return refuse(context, limit.error());
  if (*charging == Charging::charges && item.id.empty()) {
    work.pending.key.assign(item.key);
    work.pending.limit = **limit;
    work.pending.cost = item.cost;
    return HttpNext::ask;
  }
  const auto decision = ask_limiter(item, **limit, *charging, context);
  if (!decision) return refuse(context, decision.error());
  if (*charging == Charging::charges) context.denials.note(context.now, item.key, *decision);
  const LimitAnswer limit_answer = protocol::nameless(**limit, item.cost, *decision);
  protocol::write_check(context.answer, {.by_limit = &limit_answer}, style_in_force(context), context.now);
  return HttpNext::answer;
}

void answer_pending(const PendingCheck& pending, const Result<Decision>& decision, Micros now, HttpContext& context) {
  if (!decision) {
    refuse(context, decision.error());
    return;
  }
  context.denials.note(now, pending.key, *decision);
  const LimitAnswer limit_answer = protocol::nameless(pending.limit, pending.cost, *decision);
  protocol::write_check(context.answer, {.by_limit = &limit_answer}, style_in_force(context), now);
}

}  // namespace weir::server::http
