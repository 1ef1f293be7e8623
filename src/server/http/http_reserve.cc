// Reservations and permits in flight: POST /v1/reserve, /v1/commit, /v1/cancel, /v1/acquire and /v1/release.
//
// See http_routes.h. Tested by http_reserve_test.cc.
#include "server/http/http_routes.h"

#include <utility>

#include "base/random_id.h"

namespace weir::server::http {
namespace {

// Like read_item(), but the cost must be 0 to kPermitsMax.
Result<void> read_cost(const HttpCall& call, protocol::CheckShape shape, HttpContext& context) {
  if (auto read = read_item(call, shape, context); !read) return read;
  if (context.item.cost >= 0 && context.item.cost <= kPermitsMax) return {};
  return fail(ErrorCode::out_of_range,
              "\"cost\" is " + std::to_string(context.item.cost) + "; it must be 0 to " + std::to_string(kPermitsMax));
}

// Answers the error of a reservation whose request is valid: its id is in use.
HttpNext refuse_reservation(HttpContext& context, const Error& error) {
  if (error.code == ErrorCode::invalid_argument) context.refusal = 409;
  return refuse_or_404(context, error);
}

HttpNext write_rules(HttpContext& context, std::string_view id_name, std::string_view id) {
  protocol::write_check(context.answer, {.by_rules = &context.by_rules, .id_name = id_name, .id = id},
                        style_of(context.by_rules), context.now);
  return HttpNext::answer;
}

HttpNext write_limit(HttpContext& context, const LimitAnswer& limit_answer, std::string_view id_name,
                     std::string_view id) {
  protocol::write_check(context.answer, {.by_limit = &limit_answer, .id_name = id_name, .id = id},
                        style_in_force(context), context.now);
  return HttpNext::answer;
}

// The answer has an id only if something was reserved.
std::string_view id_name_of(bool allowed) { return allowed ? "reservation" : ""; }

HttpNext reserve_by_rules(const protocol::CheckItem& item, HttpContext& context) {
  if (context.service.gate == nullptr) return refuse_or_404(context, no_rules());
  auto reserved = context.service.gate->reserve(item.request(), {.id = item.id});
  if (!reserved) return refuse_reservation(context, reserved.error());
  context.by_rules = std::move(reserved->answer);
  context.denials.note(context.now, context.by_rules, item.request());
  return write_rules(context, id_name_of(context.by_rules.allowed), reserved->id);
}

enum class Settling : std::uint8_t { commit, cancel };

HttpNext settle_by_rules(const protocol::CheckItem& item, Settling settling, HttpContext& context) {
  if (context.service.gate == nullptr) return refuse_or_404(context, no_rules());
  auto answer = settling == Settling::commit ? context.service.gate->commit(item.id, item.request())
                                             : context.service.gate->cancel(item.id, item.request());
  if (!answer) return refuse_or_404(context, answer.error());
  context.by_rules = *std::move(answer);
  return write_rules(context, {}, {});
}

HttpNext settle(const HttpCall& call, HttpContext& context, Settling settling) {
  if (auto read = read_cost(call, protocol::CheckShape::settle, context); !read)
    return refuse_or_404(context, read.error());
  const protocol::CheckItem& item = context.item;
  if (item.by_rules) return settle_by_rules(item, settling, context);
  const auto limit = inline_limit(item, WantedLimit::rate, context);
  if (!limit) return refuse_or_404(context, limit.error());
  const Charge charge{item.key, *limit, item.cost};
  const auto verdict = settling == Settling::commit ? context.service.limiter.commit(item.id, {&charge, 1})
                                                    : context.service.limiter.cancel(item.id, {&charge, 1});
  if (!verdict) return refuse_or_404(context, verdict.error());
  return write_limit(context, protocol::nameless(**limit, item.cost, verdict->decisions.front()), {}, {});
}

}  // namespace

HttpNext reserve_route(const HttpCall& call, HttpContext& context, HttpWork&) {
  if (auto read = read_cost(call, protocol::CheckShape::check, context); !read)
    return refuse_or_404(context, read.error());
  const protocol::CheckItem& item = context.item;
  if (item.by_rules) return reserve_by_rules(item, context);
  const auto limit = inline_limit(item, WantedLimit::rate, context);
  if (!limit) return refuse_or_404(context, limit.error());
  const Charge charge{item.key, *limit, item.cost};
  const auto reserved = context.service.limiter.reserve({&charge, 1}, {.id = item.id});
  if (!reserved) return refuse_reservation(context, reserved.error());
  context.denials.note(context.now, item.key, reserved->verdict.decisions.front());
  const LimitAnswer limit_answer = protocol::nameless(**limit, item.cost, reserved->verdict.decisions.front());
  return write_limit(context, limit_answer, id_name_of(reserved->verdict.allowed), reserved->id);
}

HttpNext commit_route(const HttpCall& call, HttpContext& context, HttpWork&) {
  return settle(call, context, Settling::commit);
}

HttpNext cancel_route(const HttpCall& call, HttpContext& context, HttpWork&) {
  return settle(call, context, Settling::cancel);
}

HttpNext acquire_route(const HttpCall& call, HttpContext& context, HttpWork&) {
  if (auto read = read_item(call, protocol::CheckShape::acquire, context); !read)
    return refuse_or_404(context, read.error());
  const protocol::CheckItem& item = context.item;
  const auto limit = inline_limit(item, WantedLimit::in_flight, context);
  if (!limit) return refuse_or_404(context, limit.error());
  const std::string id = item.id.empty() ? base::random_id() : std::string(item.id);
  const auto decision = context.service.limiter.acquire(item.key, id, **limit, item.cost);
  if (!decision) return refuse_or_404(context, decision.error());
  context.denials.note(context.now, item.key, *decision);
  return write_limit(context, protocol::nameless(**limit, item.cost, *decision), decision->allowed ? "id" : "", id);
}

HttpNext release_route(const HttpCall& call, HttpContext& context, HttpWork&) {
  if (auto read = read_item(call, protocol::CheckShape::release, context); !read)
    return refuse_or_404(context, read.error());
  const auto released = context.service.limiter.release(context.item.key, context.item.id);
  if (!released) return refuse_or_404(context, released.error());
  context.answer.body.append(*released ? "{\"released\":true}\n" : "{\"released\":false}\n");
  return HttpNext::answer;
}

}  // namespace weir::server::http
