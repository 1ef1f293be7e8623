// Single keys: explained, reset, banned; and who comes most. See admin_api.h.
#include <array>
#include <string>

#include "nearest.h"
#include "protocol/explain_text.h"
#include "protocol/json_writer.h"
#include "protocol/query.h"
#include "server/admin_api.h"
#include "server/admin_service.h"

namespace weir {
namespace {

using enum AdminMember::Type;
using enum AdminMember::Need;

constexpr std::array<AdminMember, 2> kReset = {{{"rule", text, needed}, {"reason", text}}};
constexpr std::array<AdminMember, 2> kBan = {{{"for", text, needed}, {"reason", text}}};

// The attributes of a request, as POST /v1/check takes them, in HttpService::item.
Result<Request> request_of(const std::string& attributes, HttpService& service) {
  service.texts.clear();
  if (attributes == "{}") {
    return fail(ErrorCode::invalid_argument, "name a request by its attributes, such as \"ip\":\"192.0.2.1\"");
  }
  if (auto read = parse_check(attributes, CheckShape::check, service.item, service.texts); !read) {
    return fail(std::move(read.error()));
  }
  if (service.item.by_rules) return service.item.request();
  return fail(ErrorCode::invalid_argument,
              "rules look at attributes such as \"user\", \"ip\" and \"path\"; \"key\" and \"limit\" do without them");
}

Result<void> needs_rules(const HttpService& service) {
  if (service.admin->control->has_rules()) return {};
  return fail(ErrorCode::out_of_range, "there are no rules; start the server with --config weir.yaml");
}

}  // namespace

HttpNext explain_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto body = AdminBody::read(call.body, {}, Others::attributes);
  if (!body) return refuse_body(service, body.error());
  const auto request = request_of(body->attributes(), service);
  if (!request) return refuse_body(service, request.error());
  if (const auto rules = needs_rules(service); !rules) return refuse_change(service, rules.error());
  const auto explanation = service.admin->control->gate().explain(*request);
  if (!explanation) return refuse_change(service, explanation.error());
  service.answer.body = to_json(*explanation);
  return HttpNext::answer;
}

HttpNext reset_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto body = AdminBody::read(call.body, kReset, Others::attributes);
  if (!body) return refuse_body(service, body.error());
  const auto author = author_of(call, *body);
  if (!author) return refuse_body(service, author.error());
  // A rule may count by nothing, then it needs no attributes.
  const bool has_none = body->attributes() == "{}";
  const auto request = has_none ? Result<Request>(Request{}) : request_of(body->attributes(), service);
  if (!request) return refuse_body(service, request.error());
  Control& control = *service.admin->control;
  if (const auto rules = needs_rules(service); !rules) return refuse_change(service, rules.error());
  const auto reset = control.gate().reset(body->text("rule"), *request);
  if (!reset) return refuse_change(service, reset.error());
  const std::string what = "reset " + std::string(body->text("rule")) + ' ' + without_secrets(*request);
  if (const auto noted = control.note_reset(body->text("rule"), what, *author); !noted) {
    return refuse_change(service, noted.error());
  }
  service.answer.body = *reset ? "{\"reset\":true}\n" : "{\"reset\":false}\n";
  return HttpNext::answer;
}

HttpNext ban_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto body = AdminBody::read(call.body, kBan, Others::attributes);
  if (!body) return refuse_body(service, body.error());
  const auto author = author_of(call, *body);
  if (!author) return refuse_body(service, author.error());
  const auto lasts = lasting_of(*body);
  if (!lasts) return refuse_body(service, lasts.error());
  const auto request = request_of(body->attributes(), service);
  if (!request) return refuse_body(service, request.error());
  const auto ban = service.admin->control->ban(*request, **lasts, *author);
  if (!ban) return refuse_change(service, ban.error());
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.number("id", ban->id);
  json.text("rule", ban->rule);
  json.text("what", ban->what);
  json.raw("until", time_or_null(ban->until.value_or(Micros{0})));
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

}  // namespace weir
