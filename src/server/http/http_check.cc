// POST /v1/check. See http_check.h.
#include "server/http/http_check.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/nearest.h"
#include "protocol/http1.h"
#include "protocol/query.h"
#include "server/http/bound_id.h"

namespace weir {
namespace {

constexpr std::string_view kNoRules =
    "there are no rules: start the server with --config weir.yaml, or send \"key\" and \"limit\"";

Result<Charging> charging_of(std::string_view query) {
  if (query.empty()) return Charging::charges;
  const auto parameters = parse_query(query);
  if (!parameters) return fail(parameters.error());
  Charging charging = Charging::charges;
  for (const Parameter& parameter : *parameters) {
    if (parameter.name != "peek") {
      return fail(ErrorCode::invalid_argument,
                  "unknown parameter " + in_quotes(parameter.name) + "; the only parameter is peek");
    }
    if (parameter.value.empty() || parameter.value == "true" || parameter.value == "1") {
      charging = Charging::peeks;
    } else if (parameter.value != "false" && parameter.value != "0") {
      return fail(ErrorCode::invalid_argument, "peek must be true or false, found " + in_quotes(parameter.value));
    }
  }
  return charging;
}

HttpNext refuse(HttpService& service, const Error& error) {
  write_refusal(service, error);
  return HttpNext::answer;
}

HttpNext check_by_rules(const CheckItem& item, Charging charging, HttpService& service) {
  const Micros now = service.now;
  if (auto asked = ask_rules(item, charging, service); !asked) return refuse(service, asked.error());
  if (charging == Charging::charges) service.denials.note(now, service.by_rules, item.request());
  write_check(service.answer, {.by_rules = &service.by_rules}, style_of(service.by_rules), now);
  return HttpNext::answer;
}

}  // namespace

void write_refusal(HttpService& service, const Error& error) {
  HttpAnswer& out = service.answer;
  switch (error.code) {
    case ErrorCode::exhausted:
      out.add("Retry-After", "1");
      return write_problem(out, 503, "Out of capacity", error.message);
    case ErrorCode::unavailable:
      return write_problem(out, 503, "Unavailable", error.message);
    case ErrorCode::invalid_argument:
    case ErrorCode::out_of_range:
    case ErrorCode::not_found:
      break;
  }
  write_problem(out, service.refusal, service.refusal == 409 ? "Conflict" : "Bad request", error.message);
}

HttpNext refuse_or_404(HttpService& service, const Error& error) {
  if (error.code == ErrorCode::not_found) {
    write_problem(service.answer, 404, "Not found", error.message);
  } else {
    write_refusal(service, error);
  }
  return HttpNext::answer;
}

Result<void> read_item(const HttpCall& call, CheckShape shape, HttpService& service) {
  service.texts.clear();
  service.limits.begin_request();
  CheckItem& item = service.item;
  if (auto read = parse_check(call.body, shape, item, service.texts, service.bounds.key_max); !read) {
    note_key(service);
    return read;
  }
  for (const Attribute& field : call.fields) {
    if (!equals_ignoring_case(field.name, "idempotency-key")) continue;
    if (field.value.empty() || field.value.size() > kIdBytesMax) {
      return fail(ErrorCode::out_of_range, "Idempotency-Key has " + std::to_string(field.value.size()) +
                                               " bytes; send 1 to " + std::to_string(kIdBytesMax));
    }
    if (!std::ranges::all_of(field.value, [](char c) { return c > ' ' && c <= '~'; })) {
      return fail(ErrorCode::invalid_argument, "Idempotency-Key is " + in_quotes(field.value) +
                                                   "; use visible ASCII without spaces, such as 7f3a-order-8");
    }
    if (!item.id.empty() && item.id != field.value) {
      service.refusal = 409;
      return fail(ErrorCode::invalid_argument, "Idempotency-Key is " + in_quotes(field.value) + ", but \"id\" is " +
                                                   in_quotes(item.id) + "; send only one");
    }
    item.id = field.value;
  }
  return {};
}

Result<const Limit*> inline_limit(const CheckItem& item, WantedLimit wanted, HttpService& service) {
  const Result<Limit>& limit = service.limits.compile(item.limit, item.algorithm);
  if (!limit) return fail(limit.error().code, "\"limit\": " + limit.error().message, limit.error().column);
  const bool is_in_flight = limit->algorithm == Algorithm::concurrency;
  if (is_in_flight && wanted == WantedLimit::rate) {
    return fail(ErrorCode::invalid_argument,
                "\"limit\": a concurrency limit needs POST /v1/acquire and POST /v1/release; here, "
                "send a rate such as \"100/minute\"");
  }
  if (!is_in_flight && wanted == WantedLimit::in_flight) {
    return fail(ErrorCode::invalid_argument,
                "\"limit\": " + in_quotes(item.limit) +
                    " is a rate; use POST /v1/check for it; here, send a concurrency limit such as \"20 concurrent\"");
  }
  return &*limit;
}

Result<void> ask_rules(const CheckItem& item, Charging charging, HttpService& service) {
  if (service.gate == nullptr) return fail(ErrorCode::invalid_argument, std::string(kNoRules));
  const Request request = item.request();
  if (charging == Charging::charges && item.id.empty()) {
    return service.gate->check(service.gate->rules(), request, service.by_rules);
  }
  auto answer = charging == Charging::peeks ? service.gate->peek(request)
                                            : service.gate->check_once(bound_id(item.id, request), request);
  if (!answer) return fail(std::move(answer.error()));
  service.by_rules = *std::move(answer);
  return {};
}

namespace {

Result<Decision> charge_once(const Charge& charge, std::string_view id, Limiter& limiter) {
  if (id.empty()) return limiter.check(charge.key, *charge.limit, charge.cost);
  const auto verdict = limiter.check_once(id, {&charge, 1});
  if (!verdict) return fail(verdict.error());
  return verdict->decisions.front();
}

}  // namespace

Result<Decision> ask_limiter(const CheckItem& item, const Limit& limit, Charging charging, HttpService& service) {
  if (charging == Charging::peeks) return service.limiter.preview(item.key, limit, item.cost);
  const Charge charge{item.key, &limit, item.cost};
  auto decision = charge_once(charge, item.id, service.limiter);
  if (service.counting != nullptr) service.counting->count_inline({&charge, 1}, {&decision, 1}, service.now);
  return decision;
}

HttpNext check_route(const HttpCall& call, HttpService& service, HttpWork& work) {
  const auto charging = charging_of(split_target(call.target).query);
  if (!charging) return refuse(service, charging.error());
  if (auto read = read_item(call, CheckShape::check, service); !read) return refuse(service, read.error());
  const CheckItem& item = service.item;
  if (item.by_rules) return check_by_rules(item, *charging, service);
  const auto limit = inline_limit(item, WantedLimit::rate, service);
  if (!limit) return refuse(service, limit.error());
  if (*charging == Charging::charges && item.id.empty()) {
    work.pending.key.assign(item.key);
    work.pending.limit = **limit;
    work.pending.cost = item.cost;
    return HttpNext::ask;
  }
  const Micros now = service.now;
  const auto decision = ask_limiter(item, **limit, *charging, service);
  if (!decision) return refuse(service, decision.error());
  if (*charging == Charging::charges) service.denials.note(now, item.key, *decision);
  const LimitAnswer told = nameless(**limit, item.cost, *decision);
  write_check(service.answer, {.by_limit = &told}, style_in_force(service), now);
  return HttpNext::answer;
}

void answer_pending(const PendingCheck& pending, const Result<Decision>& decision, Micros now, HttpService& service) {
  if (!decision) return write_refusal(service, decision.error());
  service.denials.note(now, pending.key, *decision);
  const LimitAnswer told = nameless(pending.limit, pending.cost, *decision);
  write_check(service.answer, {.by_limit = &told}, style_in_force(service), now);
}

}  // namespace weir
