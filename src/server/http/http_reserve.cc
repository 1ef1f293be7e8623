// The routes for reservations and for permits in flight. See http_reserve.h.
#include "server/http/http_reserve.h"

#include <cstdint>
#include <string>
#include <utility>

#include "base/random_id.h"
#include "server/http/http_check.h"

namespace weir {
namespace {

// Like read_item(), but the cost must be 0 to kPermitsMax.
Result<void> read_spent(const HttpCall& call, CheckShape shape, HttpService& service) {
  if (auto read = read_item(call, shape, service); !read) return read;
  if (service.item.cost >= 0 && service.item.cost <= kPermitsMax) return {};
  return fail(ErrorCode::out_of_range,
              "\"cost\" is " + std::to_string(service.item.cost) + "; it must be 0 to " + std::to_string(kPermitsMax));
}

// Answers the error of a reservation whose request is valid: its id is in use.
HttpNext refuse_reservation(HttpService& service, const Error& error) {
  if (error.code != ErrorCode::invalid_argument) return refuse_or_404(service, error);
  service.refusal = 409;
  return refuse_or_404(service, error);
}

Error no_rules() {
  return {ErrorCode::invalid_argument,
          "there are no rules: start the server with --config weir.yaml, or send \"key\" and \"limit\"", 0};
}

HttpNext write_rules(HttpService& service, std::string_view id_name, std::string_view id, Micros now) {
  write_check(service.answer, {.by_rules = &service.by_rules, .id_name = id_name, .id = id}, style_of(service.by_rules),
              now);
  return HttpNext::answer;
}

HttpNext write_limit(HttpService& service, const LimitAnswer& told, std::string_view id_name, std::string_view id,
                     Micros now) {
  write_check(service.answer, {.by_limit = &told, .id_name = id_name, .id = id}, style_in_force(service), now);
  return HttpNext::answer;
}

// The answer has an id only if something was reserved.
std::string_view id_name_of(bool allowed) { return allowed ? "reservation" : ""; }

HttpNext reserve_by_rules(const CheckItem& item, HttpService& service, Micros now) {
  if (service.gate == nullptr) return refuse_or_404(service, no_rules());
  auto reserved = service.gate->reserve(item.request(), {.id = item.id});
  if (!reserved) return refuse_reservation(service, reserved.error());
  service.by_rules = std::move(reserved->answer);
  service.denials.note(now, service.by_rules, item.request());
  return write_rules(service, id_name_of(service.by_rules.allowed), reserved->id, now);
}

enum class Settling : std::uint8_t { commit, cancel };

HttpNext settle_by_rules(const CheckItem& item, Settling settling, HttpService& service, Micros now) {
  if (service.gate == nullptr) return refuse_or_404(service, no_rules());
  auto answer = settling == Settling::commit ? service.gate->commit(item.id, item.request())
                                             : service.gate->cancel(item.id, item.request());
  if (!answer) return refuse_or_404(service, answer.error());
  service.by_rules = *std::move(answer);
  return write_rules(service, {}, {}, now);
}

HttpNext settle(const HttpCall& call, HttpService& service, Settling settling) {
  if (auto read = read_spent(call, CheckShape::settle, service); !read) return refuse_or_404(service, read.error());
  const CheckItem& item = service.item;
  const Micros now = service.now;
  if (item.by_rules) return settle_by_rules(item, settling, service, now);
  const auto limit = inline_limit(item, WantedLimit::rate, service);
  if (!limit) return refuse_or_404(service, limit.error());
  const Charge charge{item.key, *limit, item.cost};
  const auto verdict = settling == Settling::commit ? service.limiter.commit(item.id, {&charge, 1})
                                                    : service.limiter.cancel(item.id, {&charge, 1});
  if (!verdict) return refuse_or_404(service, verdict.error());
  return write_limit(service, nameless(**limit, item.cost, verdict->decisions.front()), {}, {}, now);
}

}  // namespace

HttpNext reserve_route(const HttpCall& call, HttpService& service, HttpWork&) {
  if (auto read = read_spent(call, CheckShape::check, service); !read) return refuse_or_404(service, read.error());
  const CheckItem& item = service.item;
  const Micros now = service.now;
  if (item.by_rules) return reserve_by_rules(item, service, now);
  const auto limit = inline_limit(item, WantedLimit::rate, service);
  if (!limit) return refuse_or_404(service, limit.error());
  const Charge charge{item.key, *limit, item.cost};
  const auto reserved = service.limiter.reserve({&charge, 1}, {.id = item.id});
  if (!reserved) return refuse_reservation(service, reserved.error());
  service.denials.note(now, item.key, reserved->verdict.decisions.front());
  const LimitAnswer told = nameless(**limit, item.cost, reserved->verdict.decisions.front());
  return write_limit(service, told, id_name_of(reserved->verdict.allowed), reserved->id, now);
}

HttpNext commit_route(const HttpCall& call, HttpService& service, HttpWork&) {
  return settle(call, service, Settling::commit);
}

HttpNext cancel_route(const HttpCall& call, HttpService& service, HttpWork&) {
  return settle(call, service, Settling::cancel);
}

HttpNext acquire_route(const HttpCall& call, HttpService& service, HttpWork&) {
  if (auto read = read_item(call, CheckShape::acquire, service); !read) return refuse_or_404(service, read.error());
  const CheckItem& item = service.item;
  const auto limit = inline_limit(item, WantedLimit::in_flight, service);
  if (!limit) return refuse_or_404(service, limit.error());
  const std::string id = item.id.empty() ? random_id() : std::string(item.id);
  const Micros now = service.now;
  const auto decision = service.limiter.acquire(item.key, id, **limit, item.cost);
  if (!decision) return refuse_or_404(service, decision.error());
  service.denials.note(now, item.key, *decision);
  return write_limit(service, nameless(**limit, item.cost, *decision), decision->allowed ? "id" : "", id, now);
}

HttpNext release_route(const HttpCall& call, HttpService& service, HttpWork&) {
  if (auto read = read_item(call, CheckShape::release, service); !read) return refuse_or_404(service, read.error());
  const auto released = service.limiter.release(service.item.key, service.item.id);
  if (!released) return refuse_or_404(service, released.error());
  service.answer.body.append(*released ? "{\"released\":true}\n" : "{\"released\":false}\n");
  return HttpNext::answer;
}

}  // namespace weir
