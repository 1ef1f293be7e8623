// Admin routes for single keys: explain, reset and ban a key, and list the top keys. See admin_api.h.
//
// Tested by admin_api_test.cc and tests/server/admin.sh.
#include <array>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/nearest.h"
#include "base/sha256.h"
#include "protocol/explain_text.h"
#include "protocol/json_writer.h"
#include "protocol/query.h"
#include "server/admin/admin_api.h"
#include "server/admin/admin_service.h"

namespace weir {
namespace {

using enum AdminMember::Type;
using enum AdminMember::Need;

constexpr std::array<AdminMember, 2> kReset = {{{"rule", text, needed}, {"reason", text}}};
constexpr std::array<AdminMember, 4> kBan = {
    {{"for", text, needed}, {"reason", text}, {"force", flag}, {"cost", number}}};

// Parses a request's attributes into HttpService::item, as POST /v1/check does.
Result<Request> request_of(const std::string& attributes, HttpService& service) {
  service.texts.clear();
  if (attributes == "{}") {
    return fail(ErrorCode::invalid_argument,
                "send at least one attribute of the request, such as \"ip\":\"192.0.2.1\"");
  }
  if (auto read = parse_check(attributes, CheckShape::check, service.item, service.texts); !read) {
    return fail(std::move(read.error()));
  }
  if (service.item.by_rules) return service.item.request();
  return fail(ErrorCode::invalid_argument,
              "send attributes such as \"user\", \"ip\" and \"path\"; rules do not use \"key\" and \"limit\"");
}

// The request as text for the journal. An API key appears as its hash, as everywhere, and so does a header, which may
// contain a secret.
std::string for_people(const CheckItem& item) {
  std::string out;
  const std::string key = item.api_key.empty() ? "" : "sha256:" + hex(sha256(item.api_key));
  for (const auto& [name, value] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{{"user", item.user},
                                                                            {"api_key", key},
                                                                            {"ip", item.ip},
                                                                            {"tenant", item.tenant},
                                                                            {"plan", item.plan},
                                                                            {"method", item.method},
                                                                            {"host", item.host},
                                                                            {"path", item.path}}) {
    if (!value.empty()) out.append(out.empty() ? "" : ", ").append(name).append(":").append(value.substr(0, 200));
  }
  for (const auto* attributes : {&item.headers, &item.entries}) {
    for (const Attribute& one : *attributes) {
      if (out.size() > kReasonMax) return out;
      out.append(out.empty() ? "" : ", ").append(attributes == &item.headers ? "header:" : "entry:");
      out.append(one.name.substr(0, 100)).append("=");
      out.append(attributes == &item.headers ? short_hash(one.value) : one.value.substr(0, 200));
    }
  }
  return out;
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
  // A rule that counts by nothing needs no attributes.
  const bool has_none = body->attributes() == "{}";
  const auto request = has_none ? Result<Request>(Request{}) : request_of(body->attributes(), service);
  if (!request) return refuse_body(service, request.error());
  Control& control = *service.admin->control;
  if (const auto rules = needs_rules(service); !rules) return refuse_change(service, rules.error());
  const std::string what =
      "reset " + std::string(body->text("rule")) + ": " + (has_none ? "all" : for_people(service.item));
  const auto reset = control.reset(body->text("rule"), *request, what, *author);
  if (!reset) return refuse_change(service, reset.error());
  service.answer.body = *reset ? "{\"reset\":true}\n" : "{\"reset\":false}\n";
  return HttpNext::answer;
}

HttpNext top_route(const HttpCall& call, HttpService& service, HttpWork&) {
  constexpr std::size_t kMost = 1'000;
  TopBy by = TopBy::hits;
  std::string rule;
  std::size_t n = 20;
  const auto parameters = parse_query(split_target(call.target).query);
  if (!parameters) return refuse_body(service, parameters.error());
  for (const Parameter& parameter : *parameters) {
    if (parameter.name == "rule") {
      rule = parameter.value;
    } else if (parameter.name == "by" && (parameter.value == "hits" || parameter.value == "denied")) {
      by = parameter.value == "hits" ? TopBy::hits : TopBy::denied;
    } else if (parameter.name == "n") {
      const auto count = count_of("n", parameter.value, kMost);
      if (!count) return refuse_body(service, count.error());
      n = *count;
    } else {
      return refuse_body(service, {ErrorCode::invalid_argument,
                                   "unknown parameter " + in_quotes(parameter.name + '=' + parameter.value) +
                                       "; use by=hits, by=denied, rule=NAME or n=20",
                                   0});
    }
  }
  const Gate& gate = service.admin->control->gate();
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.number("seconds", static_cast<std::uint64_t>(gate.top_keys_cover().count() / 1'000'000));
  append_nodes(json, *service.admin);
  json.begin_array("keys");
  for (const TopKey& one : gate.top_keys(by, rule, n)) {
    json.begin_object();
    json.text("rule", one.rule);
    json.text("key", one.key);
    json.number("hits", one.hits);
    json.number("denied", one.denied);
    json.number("error", one.error);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

HttpNext ban_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto body = AdminBody::read(call.body, kBan, Others::attributes);
  if (!body) return refuse_body(service, body.error());
  if (body->has("cost")) {
    return refuse_body(service, {ErrorCode::invalid_argument, "a ban applies to any \"cost\"; leave it out", 0});
  }
  const auto author = author_of(call, *body);
  if (!author) return refuse_body(service, author.error());
  const auto lasts = lasting_of(*body);
  if (!lasts) return refuse_body(service, lasts.error());
  const auto request = request_of(body->attributes(), service);
  if (!request) return refuse_body(service, request.error());
  const Force force = body->flag("force") ? Force::yes : Force::no;
  const auto ban = service.admin->control->ban(*request, **lasts, *author, force);
  if (!ban) return refuse_change(service, ban.error());
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.number("id", ban->id);
  json.text("rule", ban->rule);
  json.text("what", ban->what);
  json.raw("until", time_or_null(ban->until.value_or(Micros{0})));
  append_reach(json, service, ban->id);
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

}  // namespace weir
