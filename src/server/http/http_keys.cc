// Resets the counts of a rule and attributes, or of a key that checks send with their own limits. See http_routes.h.
//
//   DELETE /v1/keys/login?ip=192.0.2.1&header.x-org=acme
//   DELETE /v1/keys?key=user:42
#include "server/http/http_routes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/nearest.h"
#include "base/request_fields.h"
#include "protocol/query.h"

namespace weir::server::http {
namespace {

constexpr std::string_view kBelow = "/v1/keys/";

HttpNext answer(HttpContext& context, const Result<bool>& reset) {
  if (!reset) return refuse_or_404(context, reset.error());
  context.answer.body.append(*reset ? "{\"reset\":true}\n" : "{\"reset\":false}\n");
  return HttpNext::answer;
}

Error unknown(const std::string& name) {
  std::array<std::string_view, base::kRequestFields.size()> known;
  std::ranges::transform(base::kRequestFields, known.begin(), &base::RequestField::name);
  const std::string_view meant = base::nearest(name, known);
  return {ErrorCode::invalid_argument,
          "unknown attribute " + base::in_quotes(name) + "; " +
              (meant.empty() ? "use user, api_key, ip, tenant, plan, method, host, path, header.NAME or entry.NAME"
                             : "did you mean " + std::string(meant) + "?"),
          0};
}

std::optional<Error> take(const protocol::Parameter& parameter, Request& request, std::vector<Attribute>& headers,
                          std::vector<Attribute>& entries) {
  const std::string_view name = parameter.name;
  const std::pair<std::string_view, std::vector<Attribute>&> lists[] = {{"header.", headers}, {"entry.", entries}};
  for (const auto& [prefix, list] : lists) {
    if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
    list.push_back({name.substr(prefix.size()), parameter.value});
    return {};
  }
  const auto* const plain = std::ranges::find(base::kRequestFields, name, &base::RequestField::name);
  if (plain == base::kRequestFields.end()) return unknown(parameter.name);
  std::string_view& value = request.*plain->value;
  if (!value.empty()) {
    return Error{ErrorCode::invalid_argument, parameter.name + " is given twice; give it once", 0};
  }
  value = parameter.value;
  return {};
}

}  // namespace

HttpNext reset_key_route(const HttpCall& call, HttpContext& context, HttpWork&) {
  const auto parameters = protocol::parse_query(protocol::split_target(call.target).query);
  if (!parameters) return refuse_or_404(context, parameters.error());
  if (parameters->size() != 1 || parameters->front().name != "key") {
    return refuse_or_404(context, {ErrorCode::invalid_argument,
                                   "name a key (DELETE /v1/keys?key=user:42), or a rule and its attributes "
                                   "(DELETE /v1/keys/login?ip=192.0.2.1)",
                                   0});
  }
  const std::string& key = parameters->front().value;
  if (auto error = refuse_key(key, context.service.bounds.key_max)) {
    if (!context.service.bounds.takes_key(key)) context.service.bounds.refuse(loop::Refused::key);
    return refuse_or_404(context, *error);
  }
  return answer(context, context.service.limiter.reset(key));
}

HttpNext reset_rule_route(const HttpCall& call, HttpContext& context, HttpWork&) {
  const protocol::Target target = protocol::split_target(call.target);
  const auto rule = base::percent_decoded(target.path.substr(kBelow.size()));
  if (!rule || rule->empty()) {
    return refuse_or_404(context, {ErrorCode::invalid_argument,
                                   "name a rule and its attributes: DELETE /v1/keys/login?ip=192.0.2.1", 0});
  }
  const auto parameters = protocol::parse_query(target.query);
  if (!parameters) return refuse_or_404(context, parameters.error());
  Request request;
  std::vector<Attribute> headers, entries;
  for (const protocol::Parameter& parameter : *parameters) {
    if (const auto error = take(parameter, request, headers, entries)) return refuse_or_404(context, *error);
  }
  request.headers = headers;
  request.entries = entries;
  if (context.service.gate == nullptr) {
    return refuse_or_404(context,
                         {ErrorCode::not_found, "there are no rules; start the server with --config weir.yaml", 0});
  }
  context.refusal = 409;  // the only error left: the rule counts by other attributes
  return answer(context, context.service.gate->reset(*rule, request));
}

}  // namespace weir::server::http
